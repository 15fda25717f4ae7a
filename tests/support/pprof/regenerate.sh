#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes profile.pb-c.[ch] from profile.proto. Both are kept, as in proto/.
set -euo pipefail
cd "$(dirname "$0")"
protoc-c --proto_path=. --c_out=. profile.proto

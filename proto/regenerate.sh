#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the *.pb-c.[ch] files of this folder from the pinned .proto files beside
# them (opentelemetry-proto 1.11.0, unchanged). Both are kept in the repository,
# so that a build needs no protoc. Run it after exchanging the .proto files.
set -euo pipefail
cd "$(dirname "$0")"
protoc-c --proto_path=. --c_out=. \
    opentelemetry/proto/common/v1/common.proto \
    opentelemetry/proto/resource/v1/resource.proto \
    opentelemetry/proto/trace/v1/trace.proto \
    opentelemetry/proto/collector/trace/v1/trace_service.proto \
    opentelemetry/proto/profiles/v1development/profiles.proto \
    opentelemetry/proto/collector/profiles/v1development/profiles_service.proto \
    pprof/profile.proto

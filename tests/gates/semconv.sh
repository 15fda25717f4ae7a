#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The headers of semantic conventions are what scripts/semconv.sh makes of the published model.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

scripts/semconv.sh --check || wrong "include/otel/semconv*.h: write them with scripts/semconv.sh"

finish "include/otel/semconv.h, include/otel/semconv_incubating.h"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs/COMPLIANCE.md is what the tests say, and every row of the specification has a test or a
# reason. spec: Q11
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if ! output=$(python3 scripts/compliance.py --check); then
    while IFS= read -r line; do
        wrong "$line"
    done <<<"$output"
fi

finish "$(tail -n 1 <<<"$output")"

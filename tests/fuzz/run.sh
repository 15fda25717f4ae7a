#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# One fuzz target as a test: the inputs that are kept, and then new ones for a minute; only for a few
# seconds when the same machine code has had its minute here before, in any build tree. With
# OTEL_TEST_LONG=1 always for ten minutes.
#
#   run.sh PROGRAM NAME
#
# What it finds on the way is kept beside the other things that serve every tree, and used again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib.sh

program=$1
name=$2
found=$(cache_dir)/fuzz/$name
stamps=$(cache_dir)/fuzz/had-a-minute
mkdir -p "$found" "$stamps"
find "$stamps" -type f -mtime +30 -delete

stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
objcopy --strip-all --remove-section .note.gnu.build-id "$program" "$stripped"
stamp=$stamps/$name-$(sha256sum <"$stripped" | cut -c1-40)

seconds=60
[[ ! -e $stamp ]] || seconds=5
[[ -z ${OTEL_TEST_LONG:-} ]] || seconds=600
"$program" -max_total_time="$seconds" -timeout=5 -print_final_stats=1 "$found" "tests/fuzz/corpus/$name"
touch "$stamp"

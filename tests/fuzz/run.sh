#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# One fuzz target as a test: the inputs that are kept, and then new ones for 20 seconds; for a few
# only when the same machine code has had them here before, in any build tree. With
# OTEL_TEST_LONG=1 always for ten minutes.
#
#   run.sh PROGRAM NAME
#
# What it finds on the way is kept beside the other things that serve every tree, and used again.
#
# Chance begins at the same point each time but in the long form: who runs it twice without such a
# folder tries the same inputs, as far as the time goes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib.sh

program=$1
name=$2
found=$(cache_dir)/fuzz/$name
stamps=$(cache_dir)/fuzz/had-their-time
mkdir -p "$found" "$stamps"
find "$stamps" -ignore_readdir_race -type f -mtime +30 -delete # others do so meanwhile

stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
objcopy --strip-all --remove-section .note.gnu.build-id "$program" "$stripped"
stamp=$stamps/$name-$(sha256sum <"$stripped" | cut -c1-40)

seconds=20
[[ ! -e $stamp ]] || seconds=5
seed=1
[[ -z ${OTEL_TEST_LONG:-} ]] || seconds=600 seed=0
"$program" -seed="$seed" -max_total_time="$seconds" -timeout=25 -print_final_stats=1 "$found" "tests/fuzz/corpus/$name"
touch "$stamp"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# One fuzz target as a test: the inputs of its corpus, then 100,000 that are made from them, or as many
# as 20 seconds allow. They are the same ones every time for the same machine code, so that a run
# that has passed need not be repeated: its stamp is kept, for all build trees. With OTEL_TEST_LONG=1
# ten minutes of other inputs each time, which build on what earlier long runs have found.
#
#   run.sh PROGRAM NAME
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib.sh

program=$1
name=$2
corpus=tests/fuzz/corpus/$name
options=(-timeout=25 -print_final_stats=1)

if [[ -n ${OTEL_TEST_LONG:-} ]]; then
    found=$(cache_dir)/fuzz/$name
    mkdir -p "$found"
    exec "$program" -seed=0 -max_total_time=600 "${options[@]}" "$found" "$corpus"
fi

stamps=$(cache_dir)/fuzz/passed
mkdir -p "$stamps"
find "$stamps" -ignore_readdir_race -type f -mtime +30 -delete # others do so meanwhile
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
objcopy --strip-all --remove-section .note.gnu.build-id "$program" "$work/stripped"
sum=$(cat "$work/stripped" "$corpus"/* "${BASH_SOURCE[0]}" | sha256sum)
stamp=$stamps/$name-${sum:0:40}
if [[ -e $stamp ]]; then
    echo "$name: has passed with the same machine code and corpus"
else
    mkdir "$work/found"
    "$program" -seed=1 -runs=100000 -max_total_time=20 "${options[@]}" "$work/found" "$corpus"
fi
touch "$stamp"

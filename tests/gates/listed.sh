#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Nothing is globbed, so a source that no CMakeLists.txt, and nothing in cmake/, names is never
# built, and a test that none names never fails. Each source and each program that a test may be is
# named somewhere.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# What all of them say, as words: otel_test(wire) makes the words otel_test and wire.
words=$(find . -path './build*' -prune -o \( -name CMakeLists.txt -o -path './cmake/*.cmake' \) \
    -exec cat {} + | grep -v '^ *#' | grep -oE '[A-Za-z0-9_./-]+' | sort -u)
named() {
    grep -qxF -- "$1" <<<"$words"
}

count=0
while IFS= read -r file; do
    name=${file##*/}
    base=${name%.*}
    count=$((count + 1))
    case $file in
    tests/unit/*_test.c | tests/integration/*_test.c | tests/blackbox/*_test.c) named "${base%_test}" || named "$name" ;;
    tests/integration/*.c) named "$base" || named "$name" ;;
    tests/blackbox/programs/*.c | tests/stress/*.c | tests/fuzz/*.c | tests/model/*.c | benchmarks/*.c | examples/*.c)
        named "$base" || named "$name" ;;
    tests/gates/lib.sh | tests/gates/tidy_stamps.py) true ;; # parts of gates
    tests/gates/*.sh) named "$base" ;;
    *) named "$name" || grep -qE "/${name//./\\.}\$" <<<"$words" ;;
    esac || wrong "$file:1: no CMakeLists.txt and no cmake/*.cmake names it"
done < <(find common api sdk exporters functions config profiling proto tools examples benchmarks tests -type f \
    \( -name '*.c' -o -path 'tests/*' -perm -u+x \) 2>/dev/null | sort)

finish "$count sources"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Each public header compiles alone, twice over, as C and as C++, without a warning; otel.hpp as C++17
# and newer.
# The private headers do so as C11. COMPILERS in the environment replaces the list.
#
# spec: Q7
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

read -ra compilers <<<"${COMPILERS:-gcc $(llvm clang)}"
need "${compilers[@]}"
flags=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -fsyntax-only -Iinclude)
count=0

# compiles COMPILER LANGUAGE STANDARD HEADER [FLAG...]
compiles() {
    local compiler=$1 language=$2 standard=$3 header=$4 output
    shift 4
    count=$((count + 1))
    if ! output=$(printf '#include "%s"\n#include "%s"\nextern int nothing;\n' "$header" "$header" |
        "$compiler" -x "$language" "-std=$standard" "${flags[@]}" "$@" - 2>&1); then
        wrong "$header: does not compile alone with $compiler -std=$standard"
        head -n 5 <<<"$output" >&2
    fi
}

mapfile -t public < <(cd include && find otel -name '*.h' | sort)
for compiler in "${compilers[@]}"; do
    for header in "${public[@]}"; do
        for standard in c11 c17; do
            compiles "$compiler" c "$standard" "$header"
        done
        for standard in c++11 c++17; do
            compiles "$compiler" c++ "$standard" "$header" -Wzero-as-null-pointer-constant
        done
    done
    for standard in c++17 c++20 c++2b; do
        compiles "$compiler" c++ "$standard" otel/otel.hpp -Wzero-as-null-pointer-constant
        compiles "$compiler" c++ "$standard" otel/otel.hpp -fno-exceptions -fno-rtti
    done
done
# A small compiler, without GNU C. It removes what is where its output goes, and root can remove /dev/null.
if command -v tcc >/dev/null; then
    output_directory=$(mktemp -d)
    trap 'rm -rf "$output_directory"' EXIT
    for header in "${public[@]}"; do
        count=$((count + 1))
        output=$(printf '#include "%s"\nextern int nothing;\n' "$header" |
            tcc -Iinclude -c -o "$output_directory/object" - 2>&1) || wrong "$header: does not compile with tcc: $output"
    done
fi
mapfile -t private < <(c_files "${library_directories[@]}" | grep '\.h$')
for header in "${private[@]}"; do
    compiles "${compilers[0]}" c c11 "$header" -D_GNU_SOURCE -I. -isystem proto
done

finish "$count compilations"

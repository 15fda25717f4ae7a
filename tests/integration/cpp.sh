#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# otel/otel.hpp: cpp/behaviour.cpp compiles without a warning and passes, in each language that the
# header is for; and a span costs no more instructions than in C.
#
#   cpp.sh BUILD      with the shared libraries of a build directory
source "$(dirname "${BASH_SOURCE[0]}")/../gates/lib.sh"

build=$(cd "${1:?the build directory}" && pwd)
need g++ objdump
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources=tests/integration/cpp
flags=(-O2 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -Wzero-as-null-pointer-constant
    -Iinclude)
libraries=("-L$build" -lotel -lotel-sdk -lotel-api "-Wl,-rpath,$build")
passed=0 # builds

# behaves COMPILER FLAG...
behaves() {
    if ! "$@" "${flags[@]}" "$sources/behaviour.cpp" -o "$work/behaviour" "${libraries[@]}" ||
        ! "$work/behaviour"; then
        wrong "$sources/behaviour.cpp: $*"
    fi
    passed=$((passed + 1))
}

# How many instructions a function of an object has, without padding, in any section but a cold one.
instructions_of() {
    objdump -d --no-show-raw-insn "$1" | awk -v name="<$2>:" '
        /^[0-9a-f]+ <.*>:$/ { inside = $2 == name; next }
        inside && NF && !/nop|xchg +%ax,%ax/ { count++ }
        END { print count + 0 }'
}

# The same functions, in C and with otel.hpp. Without exceptions, since C has none that a call could
# let through.
costs_the_same() {
    local function c cpp
    "$1" -x c -O2 -Iinclude -c "$sources/same.cpp" -o "$work/c.o"
    "$2" -std=c++17 -fno-exceptions "${flags[@]}" -c "$sources/same.cpp" -o "$work/cpp.o"
    for function in scoped several detached; do
        c=$(instructions_of "$work/c.o" "$function")
        cpp=$(instructions_of "$work/cpp.o" "$function")
        [[ $c -gt 0 && $cpp -gt 0 && $cpp -le $c ]] ||
            wrong "$sources/same.cpp: $2: $function has $cpp instructions, and $c in C with $1"
        printf '%s: %s: %d instructions, in C %d\n' "$2" "$function" "$cpp" "$c"
    done
}

for compiler in g++ "$(llvm clang++)"; do
    command -v "$compiler" >/dev/null || continue
    for standard in c++17 c++20 c++2b; do
        behaves "$compiler" "-std=$standard"
    done
    behaves "$compiler" -std=c++17 -fno-exceptions
    behaves "$compiler" -std=c++17 -fno-rtti
    behaves "$compiler" -std=c++17 -fno-exceptions -fno-rtti
done
costs_the_same gcc g++
! command -v "$(llvm clang++)" >/dev/null || costs_the_same "$(llvm clang)" "$(llvm clang++)"

finish "$passed builds"

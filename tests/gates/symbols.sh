#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The libraries export what cmake/symbols/ lists and nothing else; the static ones
# define the same names.
#
#   symbols.sh DIRECTORY            check the libraries in a build directory
#   symbols.sh --update DIRECTORY   write the lists from them; read the difference
#
# spec: Q8
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

update=false
if [[ ${1:-} == --update ]]; then
    update=true
    shift
fi
build=${1:?the build directory}
libraries=(otel-api otel-sdk)
[[ ! -e $build/libotel.so ]] || libraries+=(otel-otlp otel)
[[ ! -e $build/libotel-functions.so ]] || libraries+=(otel-functions)
[[ ! -e $build/libotel-config.so ]] || libraries+=(otel-config)
[[ ! -e $build/libotel-profiling.so ]] || libraries+=(otel-profiling)
need nm

# Name and version node of each exported symbol, without the nodes themselves.
exported() {
    nm -D --defined-only --with-symbol-versions "$1" | awk '$2 != "A" { print $3 }' |
        sed 's/@@*/ /' | sort
}

total=0
for library in "${libraries[@]}"; do
    list=cmake/symbols/$library.txt
    actual=$(exported "$build/lib$library.so")
    if $update; then
        {
            printf '# SPDX-License-Identifier: Apache-2.0\n'
            printf '# What lib%s.so exports: name, version node. Written by\n' "$library"
            printf '# tests/gates/symbols.sh --update; read the difference before you keep it.\n'
            printf '%s\n' "$actual"
        } >"$list"
    fi
    if ! difference=$(diff <(grep -v '^#' "$list") <(printf '%s\n' "$actual")); then
        while read -r line; do
            case $line in
            '<'*) wrong "lib$library.so: no longer exports ${line#< }" ;;
            '>'*) wrong "lib$library.so: exports ${line#> }, which $list does not have" ;;
            esac
        done <<<"$difference"
    fi
    while read -r name node; do
        case $name in
        otel_*) [[ $node == OTEL_0.1 ]] || wrong "lib$library.so: $name is under $node" ;;
        __cyg_profile_func_enter | __cyg_profile_func_exit)
            # Of no version, so that they take the place of the C library's.
            [[ $library == otel-functions && -z $node ]] || wrong "lib$library.so: exports $name" ;;
        oteli_*) [[ $node == OTEL_PRIVATE ]] || wrong "lib$library.so: $name is under $node" ;;
        *) wrong "lib$library.so: exports the foreign name $name" ;;
        esac
    done <<<"$actual"
    if ! difference=$(diff <(cut -d' ' -f1 <<<"$actual") \
        <(nm -g --defined-only "$build/lib$library.a" | awk 'NF == 3 { print $3 }' | sort)); then
        wrong "lib$library.a: not the names of lib$library.so: $(grep '^[<>]' <<<"$difference" |
            head -n 5 | tr '\n' ' ')"
    fi
    # A public variable may be copied into the program, so -Bsymbolic must not bind it.
    while read -r name; do
        grep -qE "^ +$name;" cmake/public-data.list ||
            wrong "lib$library.so: the variable $name is not in cmake/public-data.list"
    done < <(nm -D --defined-only "$build/lib$library.so" |
        awk '$2 ~ /^[BDRGSVu]$/ && $3 ~ /^otel_/ { sub(/@.*/, "", $3); print $3 }')
    total=$((total + $(wc -l <<<"$actual")))
done

finish "$total names"

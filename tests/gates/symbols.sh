#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The libraries export what cmake/<library>.map lists, and nothing else: each public function that
# is compiled is listed there. The static libraries define the same names.
#
#   symbols.sh DIRECTORY            check the libraries in a build directory
#   symbols.sh --update DIRECTORY   list the public names that its objects have; build again then
#
# spec: Q8
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

update=false
if [[ ${1:-} == --update ]]; then
    update=true
    shift
fi
build=${1:?the build directory}
need nm readelf
version=$(sed -n 's/^#define OTEL_VERSION "\(.*\)"/\1/p' include/otel/base.h)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Name and version node of each exported symbol, without the nodes themselves.
exported() {
    nm -D --defined-only --with-symbol-versions "$1" | awk '$2 != "A" { print $3 }' |
        sed 's/@@*/ /' | sort
}

# The same of a version script.
listed() {
    awk -v version="$version" '
        / \{$/ { node = $1; sub(/@PROJECT_VERSION@/, version, node) }
        /^ +oteli?_[a-z0-9_]*;$/ { sub(/;/, "", $1); print $1, node }' "$1" | sort
}

# The names that are compiled as public ones: OTEL_API, and no other library of ours.
public() {
    local objects
    mapfile -t objects < <(objects_of "$build" "$1")
    readelf -sW "${objects[@]}" | awk '$5 != "LOCAL" && $6 == "DEFAULT" && $7 != "UND" { print $8 }' |
        grep '^otel_' | sort -u
}

# update_map MAP: the last node of public names gets the new ones, in order; names that are gone go.
update_map() {
    local last
    while read -r name; do
        sed -i "/^ *$name;\$/d" "$1"
    done < <(comm -23 "$work/listed" "$work/public")
    last=$(grep -n '^OTEL_[0-9].* {$' "$1" | tail -n 1 | cut -d: -f1)
    while read -r name; do
        sed -i "$((last + 1))a\\        $name;" "$1"
    done < <(comm -13 "$work/listed" "$work/public")
    # From behind its "global:" to its "local:" or its end the node is sorted.
    awk -v last="$last" '
        NR > last + 1 && !done && !/;$/ { close("sort"); done = 1 }
        NR > last + 1 && !done && /\*;$/ { close("sort"); done = 1 }
        NR > last + 1 && !done { print | "sort"; next }
        { print; fflush() }' "$1" >"$work/map"
    cat "$work/map" >"$1"
}

total=0
for library in "${libraries[@]}"; do
    [[ -e $build/lib$library.so ]] || continue
    map=cmake/$library.map
    public "$library" >"$work/public"
    listed "$map" | sed -n 's/^\(otel_[^ ]*\) .*/\1/p' >"$work/listed"
    if $update; then
        update_map "$map"
        continue
    fi
    while read -r name; do
        wrong "$map: does not list $name, which is public (symbols.sh --update)"
    done < <(comm -13 "$work/listed" "$work/public")
    actual=$(exported "$build/lib$library.so")
    while read -r line; do
        case $line in
        '<'*) wrong "$map: lists ${line#< }, which lib$library.so does not export" ;;
        '>'*) wrong "lib$library.so: exports ${line#> }, which $map does not list" ;;
        esac
    done < <(diff <(listed "$map") <(grep -v '^__cyg_profile_func_e[a-z]* *$' <<<"$actual") || true)
    while read -r name node; do
        case $name in
        otel_*) [[ $node =~ ^OTEL_[0-9.]+$ ]] || wrong "lib$library.so: $name is under $node" ;;
        __cyg_profile_func_enter | __cyg_profile_func_exit)
            # Of no version, so that they take the place of the C library's.
            [[ $library == otel-functions && -z $node ]] || wrong "lib$library.so: exports $name" ;;
        oteli_*) [[ $node == "OTEL_PRIVATE_$version" ]] || wrong "lib$library.so: $name is under $node" ;;
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

$update || finish "$total names"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Each library lends the private names that the others use, and no more: the node
# OTEL_PRIVATE of cmake/<library>.map. Looks at objects, so it also works, and helps, when
# the libraries do not link.
#
#   lent.sh DIRECTORY             check a build directory
#   lent.sh --update DIRECTORY    write the nodes
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

update=false
if [[ ${1:-} == --update ]]; then
    update=true
    shift
fi
build=${1:?the build directory}
need nm readelf

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for library in "${libraries[@]}"; do
    mapfile -t objects < <(objects_of "$build" "$library")
    : >"$work/$library.has"
    : >"$work/$library.wants"
    [[ ${#objects[@]} -gt 0 ]] || continue
    nm "${objects[@]}" | awk 'NF >= 2 && $NF ~ /^oteli_/ && $(NF-1) ~ /^[A-TV-Z]$/ { print $NF }' |
        sort -u >"$work/$library.has"
    nm "${objects[@]}" | awk '$NF ~ /^oteli_/ && $(NF-1) == "U" { print $NF }' | sort -u |
        comm -23 - "$work/$library.has" >"$work/$library.wants"
    readelf -sW "${objects[@]}" | awk '$6 == "HIDDEN" && $7 != "UND" { print $8 }' |
        sort -u >"$work/$library.hidden"
done

total=0
for library in "${libraries[@]}"; do
    map=cmake/$library.map
    sort -u "$work"/*.wants | comm -12 - "$work/$library.has" >"$work/$library.lends"
    if $update; then
        sed -i '/^OTEL_PRIVATE/,$d' "$map"
        sed -i -e :a -e '/^\n*$/{$d;N;ba' -e '}' "$map"
        if [[ -s $work/$library.lends ]]; then
            printf '\nOTEL_PRIVATE_@PROJECT_VERSION@ {\n    global:\n%s\n};\n' \
                "$(sed 's/.*/        &;/' "$work/$library.lends")" >>"$map"
        fi
    fi
    sed -n '/^OTEL_PRIVATE/,$s/^ *\(oteli_[a-z0-9_]*\);$/\1/p' "$map" | sort >"$work/$library.listed"
    while read -r name; do
        wrong "$map: does not list $name, which another library uses (lent.sh --update)"
    done < <(comm -23 "$work/$library.lends" "$work/$library.listed")
    while read -r name; do
        wrong "$map: lists $name, which no other library uses (lent.sh --update)"
    done < <(comm -13 "$work/$library.lends" "$work/$library.listed")
    while read -r name; do
        wrong "$name: lent by $library but hidden: its declaration needs OTELI_INTERNAL_API"
    done < <([[ ! -s $work/$library.lends ]] || comm -12 "$work/$library.lends" "$work/$library.hidden")
    total=$((total + $(wc -l <"$work/$library.lends")))
done

finish "$total names are lent"

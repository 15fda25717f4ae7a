#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Small enough to be read: files, public headers, functions, the median of files, and columns (but
# for a line that is one string, or one name that is longer than that).
# And each file says its licence in its first lines.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

file_lines=700 header_lines=300 function_lines=60 median_lines=250

mapfile -t files < <(written_files "${directories[@]}")
while read -r lines file; do
    case $file in
    include/*) limit=$header_lines ;;
    *) limit=$file_lines ;;
    esac
    [[ $lines -le $limit ]] || wrong "$file:$lines: $lines lines, more than $limit"
done < <(wc -l "${files[@]}" | grep -v ' total$')

median=$(wc -l "${files[@]}" | grep -v ' total$' | sort -n |
    awk '{ n[NR] = $1 } END { print n[int((NR + 1) / 2)] }')
[[ $median -le $median_lines ]] || wrong "the median file has $median lines, more than $median_lines"

while IFS= read -r hit; do
    [[ -z $hit ]] || wrong "$hit"
done < <(LC_ALL=C.UTF-8 grep -nE '^.{101}' "${files[@]}" |
    grep -vE '^[^:]*:[0-9]*: +("|[a-z0-9_]*\(?$|.*__##name)' | sed -E 's/^([^:]*:[0-9]*):.*/\1: more than 100 columns/' || true)

# The formatter puts the braces of a function, and of nothing else, into column 1.
while IFS= read -r hit; do
    [[ -z $hit ]] || wrong "$hit"
done < <(awk -v limit=$function_lines '
    FNR == 1 { start = 0 }
    /^\{/ { start = FNR; head = before }
    /^\}/ && start {
        lines = FNR - start - 1
        if (lines > limit)
            printf "%s:%d: %d lines in %s, more than %d\n", FILENAME, start, lines, head, limit
        start = 0
    }
    /^[a-z]/ { before = $0; sub(/\(.*/, "", before); sub(/.*[ *]/, "", before) }
' "${files[@]}")

while IFS= read -r file; do
    case $file in
    *.md | *.json | *.txt.in | LICENSE | *.png | *.svg | *.pc.in | *corpus* | */go.sum) continue ;;
    tests/*/expected/* | tests/*/data/*) continue ;;
    esac
    [[ $(head -n 3 "$file") == *'SPDX-License-Identifier: Apache-2.0'* ]] ||
        wrong "$file:1: no SPDX line"
done < <(text_files)

finish "${#files[@]} files, median $median lines"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Our C and C++ look as .clang-format says, and no text has trailing blanks or tabs (gofmt uses tabs).
# `tests/gates/format.sh --fix` formats it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

formatter=$(llvm clang-format)
need $formatter
mapfile -t files < <(written_files "${directories[@]}")

if [[ ${1:-} == --fix ]]; then
    $formatter -i "${files[@]}"
fi
while IFS= read -r hit; do
    [[ -z $hit ]] || wrong "${hit%%: *}: not formatted (tests/gates/format.sh --fix)"
done < <($formatter --dry-run "${files[@]}" 2>&1 | grep 'clang-format-violations' |
    sort -u -t: -k1,1 || true)

mapfile -t texts < <(text_files | grep -vE '\.(png|svg|pb|bin|map|json|patch|go|mod)$|^tests/fuzz/.*corpus')
while IFS= read -r hit; do
    [[ -z $hit ]] || wrong "${hit%:*}: trailing blanks or tabs"
done < <(grep -InHE $'[ \t]+$|\t' "${texts[@]}" | cut -d: -f1,2 | sed 's/$/:/' || true)

finish "${#files[@]} sources, ${#texts[@]} texts"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The rows of the table in docs/CONFIGURATION.md are those of the table of settings.
#
#   docs_fresh.sh GENERATOR             check
#   docs_fresh.sh --update GENERATOR    put the rows into the document
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

update=false
if [[ ${1:-} == --update ]]; then
    update=true
    shift
fi
generator=${1:?the generator}
document=docs/CONFIGURATION.md
begin='^|---|---|---|---|---|---|$' # the rows are behind this line, up to an empty one

fresh=$(sed -e "/$begin/,/^\$/ { /^| /d }" "$document" | sed "/$begin/r "<("$generator"))
if $update; then
    printf '%s\n' "$fresh" >"$document"
elif ! difference=$(diff "$document" - <<<"$fresh"); then
    wrong "$document:$(grep -oE '^[0-9]+' <<<"$difference" | head -n 1): not what gen-config-doc writes"
fi

finish "$document"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs/CONFIGURATION.md is what the table of settings says.
#
#   docs_fresh.sh GENERATOR
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

generator=${1:?the generator}
document=docs/CONFIGURATION.md
if [[ ! -e $document ]]; then
    wrong "$document: not there; write it with: gen-config-doc >$document"
elif ! difference=$("$generator" | diff "$document" -); then
    wrong "$document:$(grep -oE '^[0-9]+' <<<"$difference" | head -n 1): not what gen-config-doc writes"
fi

finish "$document"

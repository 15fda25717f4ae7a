#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Nothing is left for later in the sources, and nothing in them belongs to one person's
# machine: no notes to self, authors, or paths of a home directory.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# never PATTERN WHY
never() {
    local file line
    while IFS=: read -r file line _; do
        wrong "$file:$line: $2"
    done < <(grep -InHE -- "$1" "${files[@]}" || true)
}

mapfile -t files < <(text_files | grep -vE '^tests/gates/(words|selftest)\.sh$|corpus/')
never '\b(TODO|FIXME|XXX|HACK)\b' "a note to self: do it, or open an issue"
never '@author|\\author|Created by|Signed-off-by' "who wrote it is in the history"
never '(^|[^A-Za-z0-9_.}])/(work|home/[a-z]+|root|Users)/' "a directory of one machine"
never '^(<<<<<<<|>>>>>>>|=======)($| )' "an unfinished merge"

finish "${#files[@]} texts"

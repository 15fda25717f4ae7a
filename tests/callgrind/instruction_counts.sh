#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# How many instructions does a span cost the thread that makes it? The cases of `bench span`
# run under callgrind, which counts the same wherever it runs, against the shared libraries as
# they are shipped. Wrong is a case that needs more than 10 % more than docs/PERFORMANCE.md
# says, or is not there; and a family of cases (nested_1, nested_10 ...) that is not flat
# within 20 %.
#
#   instruction_counts.sh PROGRAM LIBRARY COMPILER FLAGS [--update]
#
# PROGRAM is made of instruction_counts.c and LIBRARY is libotel-api.so. COMPILER, as in
# "GNU 12.2.0 x86_64", and FLAGS made both. --update writes the table anew instead.
source "$(dirname "${BASH_SOURCE[0]}")/../gates/lib.sh"

program=${1:?the program} library=${2:?libotel-api.so} compiler=${3:?the compiler} flags=${4-}
mode=${5:-check}
document=docs/PERFORMANCE.md
begin='<!-- instruction counts -->'
end='<!-- end of instruction counts -->'
growth_percent=10 flat_percent=20

# The counts are those of one compiler's code. CI has it.
skip() {
    printf '%s: skipped: %s\n' "${0##*/}" "$*" >&2
    [[ -z ${CI:-} ]] || exit 1
    exit 77
}

need valgrind nm
[[ $compiler =~ ^GNU\ 12\..*\ x86_64$ ]] ||
    skip "the counts are of gcc 12 for x86_64, and this was built by $compiler"
shipped=$(xargs -n 1 <<<"$flags" | grep -vxE -- '-g|-DNDEBUG' | xargs || true)
[[ $shipped == -O2 ]] || skip "the libraries are shipped with -O2, and these were built with $flags"
! nm --dynamic --undefined-only "$library" | grep __assert_fail >/dev/null ||
    { wrong "$library has assertions, which the shipped one has not"; finish; }
nm "$library" | grep ' oteli_ticks_slow$' >/dev/null ||
    { wrong "$library has no oteli_ticks_slow, so a slow clock could not be told any more"; finish; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Writes "case instructions", one case a line, and leaves callgrind's files in $work/WORLD.
count_world() {
    local world=$1 name operations part=0 total
    mkdir "$work/$world"
    # Names in full: otherwise each file has only those that the ones before it had not.
    valgrind --tool=callgrind --quiet --compress-strings=no --toggle-collect=measured_run \
        --dump-after=measured_run --callgrind-out-file="$work/$world/part" \
        "$program" "$world" >"$work/$world/cases"
    while read -r name operations; do
        part=$((part + 1))
        total=$(sed -n 's/^totals: //p' "$work/$world/part.$part")
        awk -v name="$name" -v total="$total" -v operations="$operations" \
            'BEGIN { if (total + 0 == 0) exit 1; printf "%s %.1f\n", name, total / operations }'
    done <"$work/$world/cases"
}

for world in sampled unsampled ratio no_sdk; do
    count_world "$world" >>"$work/counts" || { wrong "the world $world could not be counted"; finish; }
    if grep -qxE 'c?fn=oteli_ticks_slow' "$work/$world"/part.*; then
        wrong "spans did not take their times from the processor's counter, which is the way" \
            "to be counted: see instruction_counts.c about clocks"
        finish
    fi
done

# Families are told by the number at the end of their names.
flatness=$(awk -v limit=$flat_percent '
    $1 ~ /_[0-9]+$/ && $1 !~ /^one_/ {
        family = $1
        sub(/_[0-9]+$/, "", family)
        if (!(family in least) || $2 < least[family]) least[family] = $2
        if ($2 > most[family]) most[family] = $2
    }
    END {
        for (family in least)
            if (most[family] > least[family] * (1 + limit / 100))
                printf "%s spans cost %s to %s instructions, depending on how many there are\n",
                    family, least[family], most[family]
    }' "$work/counts")
while IFS= read -r line; do
    [[ -z $line ]] || wrong "$line"
done <<<"$flatness"

if [[ $mode == --update ]]; then
    [[ $(grep -cxF -e "$begin" -e "$end" "$document") -eq 2 ]] ||
        { wrong "$document has no place for the counts: $begin ... $end"; finish; }
    {
        sed "/^$begin\$/q" "$document"
        printf '| case | instructions |\n|---|---:|\n'
        sed -E 's/^([^ ]+) (.*)$/| `\1` | \2 |/' "$work/counts"
        sed -n "/^$end\$/,\$p" "$document"
    } >"$work/document"
    cat "$work/document" >"$document"
    finish "$(wc -l <"$work/counts") counts written to $document"
fi

# Rows look like "| `enter_end` | 213.5 |".
sed -n "/^$begin\$/,/^$end\$/s/^| \`\([a-z0-9_]*\)\` | \([0-9.]*\) |\$/\1 \2/p" "$document" \
    >"$work/known"
while IFS= read -r line; do
    case $line in
    "") ;;
    note:*) printf '%s\n' "$line" ;;
    *) wrong "$line" ;;
    esac
done < <(awk -v limit=$growth_percent -v document="$document" '
    FILENAME == ARGV[1] { known[$1] = $2; next }
    !($1 in known) { printf "%s: not in the table of %s\n", $1, document; next }
    {
        percent = ($2 / known[$1] - 1) * 100
        if (percent > limit)
            printf "%s: %s instructions, %.1f %% more than the %s in %s\n", $1, $2, percent,
                known[$1], document
        else if (percent < -limit)
            printf "note: %s: %s instructions, %.1f %% less than the %s in %s\n", $1, $2,
                -percent, known[$1], document
        delete known[$1]
    }
    END { for (name in known) printf "%s: in the table of %s only\n", name, document }
' "$work/known" "$work/counts")
[[ $wrong_things -eq 0 ]] ||
    printf 'If that is how it has to be: cmake --build BUILD --target update-instruction-counts\n' >&2
finish "$(wc -l <"$work/counts") cases"

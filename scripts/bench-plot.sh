#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the benchmarks of which there is a picture, and draws it: `scripts/bench.sh plot`.
#
#   scripts/bench-plot.sh [--old] [OPTION...] [NAME...]
#
#   NAME         service or span; none: all of them
#   --old        draw what the last run has measured, and measure nothing
#   OPTION       is handed to the benchmarks (--quick, --rounds N)
#
# Into build/bench/ go NAME.jsonl with the figures and NAME.svg with the picture; what was
# drawn is printed on stdout. A new picture is a name in `studies`, a function draw_NAME
# that takes its data out of NAME.jsonl, and benchmarks/plot/NAME.gp.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

studies=(service span)
output=build/bench
old=false
names=()
options=()
while [[ $# -gt 0 ]]; do
    case $1 in
    -h | --help)
        sed -n '3,/^set /{s/^# \{0,1\}//;/^set /d;p}' scripts/bench-plot.sh
        exit
        ;;
    --old) old=true ;;
    --rounds)
        options+=("$1" "${2:?--rounds wants a number}")
        shift
        ;;
    -*) options+=("$1") ;;
    *)
        [[ " ${studies[*]} " == *" $1 "* ]] || die "there are pictures of ${studies[*]}, and none of \"$1\""
        names+=("$1")
        ;;
    esac
    shift
done
[[ ${#names[@]} -gt 0 ]] || names=("${studies[@]}")

# The machine, for the line below the title.
machine=$(sed -nE 's/^model name[ \t]*: *//p' /proc/cpuinfo | head -n 1)
machine="${machine:-$(uname -m)}, $(nproc) cores"

# table NAME SUFFIX FILTER: what jq's FILTER makes of the figures, as a file for gnuplot.
# Names are in quotes, because they may have blanks in them.
table() {
    jq --raw-output --slurp "$3 | @sh" "$output/$1.jsonl" | tr "'" '"' >"$output/$1.$2"
}

# paint NAME ABOUT [gnuplot assignment...]
paint() {
    local name=$1 about=$2
    shift 2
    gnuplot -e "image = '$output/$name.svg'; about = '$about'; $*" "benchmarks/plot/$name.gp"
}

draw_service() {
    local about
    table service rates '.[] | select(.case | startswith("loss") | not) |
        [{bare: "no tracing", off: "traced,\\nno SDK", on: "traced,\\nexported"}[.case],
         .requests_per_s, .q1_requests_per_s, .q3_requests_per_s, .best_requests_per_s]'
    table service losses 'map({(.case): .}) | add | .loss as $apart | .loss_unpinned as $any |
        ["throughput,\\nno SDK", ($apart | .off_throughput_loss_percent,
            .q1_off_throughput_loss_percent, .q3_off_throughput_loss_percent)],
        ["exported,\\nown core", ($apart | .throughput_loss_percent,
            .q1_throughput_loss_percent, .q3_throughput_loss_percent)],
        ["exported,\\nany core", ($any | .throughput_loss_percent,
            .q1_throughput_loss_percent, .q3_throughput_loss_percent)],
        ["CPU, exporter\\nthread and all", ($apart | .cpu_increase_percent,
            .q1_cpu_increase_percent, .q3_cpu_increase_percent)]'
    about=$(jq --raw-output 'select(.case == "loss") |
        "\(.us_per_request * 10 | round / 10) µs a request, \(.spans_per_request) spans with " +
        "\(.attributes_per_span) attributes each, \(.slices) interleaved slices"' \
        "$output/service.jsonl")
    paint service "$about; $machine" \
        "rates = '$output/service.rates'; losses = '$output/service.losses'"
}

draw_span() {
    # Shapes of traces differ too little for a picture: nested_10, sequential_1000 ...
    table span cases '.[] | select(.case | test("^(nested|sequential)(_|$)") | not) |
        [.case, .ratio_to_two_tsc_reads, .min_ns]'
    paint span "minima; $machine" "cases = '$output/span.cases'"
}

scripts/setup.sh --plot-deps >&2
mkdir -p "$output"
for name in "${names[@]}"; do
    if ! $old; then
        scripts/bench.sh "$name" "${options[@]}" >"$output/$name.new"
        mv "$output/$name.new" "$output/$name.jsonl"
    fi
    [[ -s $output/$name.jsonl ]] || die "nothing has been measured yet: leave --old out"
    "draw_$name"
    printf '%s\n' "$output/$name.svg"
done

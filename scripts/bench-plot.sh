#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the benchmarks of which there is a picture, and draws it: `scripts/bench.sh plot`.
#
#   scripts/bench-plot.sh [--old] [--docs] [OPTION...] [NAME...]
#
#   NAME         service, span, processor or processor_system; none: all of them
#   --old        draw what the last run has measured, and measure nothing
#   --docs       also copy the pictures into docs/images/, and the figures of processor and
#                processor_system into docs/PROCESSOR.md
#   OPTION       is handed to the benchmarks (--quick, --rounds N)
#
# Into build/bench/ go NAME.jsonl with the figures and the pictures; what was drawn is printed
# on stdout. A new picture is a name in `studies`, a function draw_NAME that takes its data
# out of NAME.jsonl, and a file in benchmarks/plot/ for each picture that it paints.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

studies=(service span processor processor_system)
output=build/bench
old=false
docs=false
names=()
options=()
while [[ $# -gt 0 ]]; do
    case $1 in
    -h | --help)
        sed -n '3,/^set /{s/^# \{0,1\}//;/^set /d;p}' scripts/bench-plot.sh
        exit
        ;;
    --old) old=true ;;
    --docs) docs=true ;;
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
machine=$(sed -nE '/^model name[ \t]*: */{s///p;q}' /proc/cpuinfo)
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
    printf '%s\n' "$output/$name.svg"
    if $docs; then
        cp "$output/$name.svg" docs/images/
    fi
}

# write_down NAME: what stands on stdin into docs/PROCESSOR.md, between the marks of that name.
write_down() {
    if ! $docs; then
        cat >/dev/null
        return
    fi
    cat >"$output/figures.md"
    awk -v name="$1" -v figures="$output/figures.md" '
        $0 == "<!-- " name ": end -->" { inside = 0 }
        !inside
        $0 == "<!-- " name ": begin -->" {
            inside = 1
            print ""
            while ((getline line < figures) > 0)
                print line
            print ""
        }' docs/PROCESSOR.md >"$output/PROCESSOR.md"
    cp "$output/PROCESSOR.md" docs/PROCESSOR.md
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

# columns LOAD FIGURE SUFFIX: one row for each number of threads, one column for each design.
columns() {
    table processor "$3" '{mutex_signal: "mutex ring, signal a span",
            fifo_signal: "lock-free list, signal a span",
            padded_block: "Disruptor, signal a span",
            padded_sleep: "Disruptor, no signals",
            mutex_batched: "mutex ring, signal a batch",
            fifo_batched: "lock-free list, signal a batch",
            mpsc_batched: "JCTools ring, signal a batch",
            ck_ring_batched: "ck_ring, signal a batch",
            ring_span: "our ring, a span each",
            lines: "otel-c: lines of spans",
            control: "no queue at all"} as $words |
        [.[] | select(.load == "'"$1"'")] | ([.[].design] |
            reduce .[] as $one ([]; if index($one) then . else . + [$one] end)) as $designs |
        (["threads"] + ($designs | map($words[.]))),
        (group_by(.threads)[] | . as $row | [$row[0].threads] + [$designs[] as $design |
            first($row[] | select(.design == $design)).'"$2"' // "-"])'
}

# The figures of docs/PROCESSOR.md: at each number of threads, by design.
processor_figures() {
    jq --raw-output --slurp '
        def rounded($digits): pow(10; $digits) as $unit |
            if . == null then "–" else . * $unit | round / $unit end;
        def row: "| " + (map(tostring) | join(" | ")) + " |";
        . as $lines | ([.[].threads] | unique) as $threads |
        (reduce .[].design as $one ([]; if index($one) then . else . + [$one] end)) as $designs |
        (["max, million exports a second", "max", "exported_per_s", 1e6, 2],
         ["steady, worker CPU, % of a core", "steady", "worker_cpu_percent", 1, 2],
         ["steady, worker wake-ups a second", "steady", "worker_wakeups_per_s", 1, 0],
         ["steady, p99.9 of an end, µs", "steady", "end_p999_us", 1, 2],
         ["steady, longest end, µs", "steady", "end_max_us", 1, 1]) as
            [$title, $load, $figure, $unit, $digits] |
        ([$title] + ($threads | map("\(.) thread" + if . == 1 then "" else "s" end)) | row),
        (["---"] + ($threads | map("---:")) | row),
        ($designs[] as $design | [$threads[] as $count | first($lines[] |
            select(.design == $design and .load == $load and .threads == $count))[$figure]] |
            select(any(. != null)) |
            ["`\($design)`"] + map(if . == null then . else . / $unit end | rounded($digits)) |
            row),
        ""' "$output/processor.jsonl"
}

draw_processor() {
    local about
    about="median of $(jq --raw-output --slurp '.[0].rounds' "$output/processor.jsonl") rounds; $machine"
    columns max exported_per_s rates
    columns steady worker_cpu_percent cpu
    columns steady worker_wakeups_per_s wakeups
    columns steady end_p999_us p999
    columns steady end_max_us longest
    paint processor-throughput "$about" "rates = '$output/processor.rates'"
    paint processor-cpu "$about" "cpu = '$output/processor.cpu'; wakeups = '$output/processor.wakeups'"
    paint processor-end "$about" "p999 = '$output/processor.p999'; longest = '$output/processor.longest'"
    processor_figures | sed -e '$d' | write_down figures
}

draw_processor_system() {
    local about
    table processor_system bars '.[] | [{off: "exporter off", mutex_signal: "mutex ring,\\na signal a span",
            mpsc_batched: "JCTools ring,\\na signal a batch", lines: "otel-c"}[.case],
        .process_cpu_percent, .q1_process_cpu_percent, .q3_process_cpu_percent,
        .exporter_cpu_percent // 0]'
    about=$(jq --raw-output --slurp '.[0] | "\(.pages_per_s) pages and \(.spans_per_s) spans a " +
        "second, exporter that forgets, \(.rounds) interleaved slices"' "$output/processor_system.jsonl")
    paint processor-system "$about; $machine" "bars = '$output/processor_system.bars'"
    jq --raw-output --slurp '
        def show: if . == null then "–" else tostring end;
        "| | process CPU, % of a core | µs CPU a page | more than off, % of a core | µs CPU more a span | exporter thread CPU % | its wake-ups/s |",
        "|---|---:|---:|---:|---:|---:|---:|",
        (.[] | "| `\(.case)` | \(.process_cpu_percent) | \(.cpu_us_per_page) | " +
            "\(.more_than_off_percent) | " +
            "\(.more_than_off_us_per_span) | \(.exporter_cpu_percent | show) | " +
            "\(.exporter_wakeups_per_s | show) |")' "$output/processor_system.jsonl" |
        write_down system
}

scripts/setup.sh --plot-deps >&2
mkdir -p "$output"
for name in "${names[@]}"; do
    if ! $old; then
        # shellcheck disable=SC2086 # processor_system is two words there
        scripts/bench.sh ${name/_/ --} "${options[@]}" >"$output/$name.new"
        mv "$output/$name.new" "$output/$name.jsonl"
    fi
    [[ -s $output/$name.jsonl ]] || die "nothing has been measured yet: leave --old out"
    "draw_$name"
done

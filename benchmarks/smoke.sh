#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Does a benchmark run, and print what it promises? Every line must be JSON, every case
# there once, every figure a number (or null where a machine may refuse it). What the
# figures are is not looked at: a machine that runs tests measures nothing.
#
#   smoke.sh NAME PROGRAM
set -euo pipefail

name=${1:?span, worker, e2e or clock}
program=${2:?the program}
maybe='[]' # keys that may be null

case $name in
span)
    cases='["two_tsc_reads","two_clock_gettime","enter_end","enter_end_child","enter_end_draining",
            "enter_end_5attr","start_end","start_end_5attr","unsampled","unsampled_5attr",
            "no_sdk"]'
    keys='["min_ns","median_ns","ratio_to_two_tsc_reads","allocations","instructions"]'
    maybe='["instructions"]'
    ;;
worker)
    cases='["drain_encode_5attr","encode_5attr","protobuf_c_5attr"]'
    keys='["ns_per_span","median_ns_per_span","bytes_per_span"]'
    ;;
e2e)
    cases='["e2e"]'
    keys='["spans_per_s","median_spans_per_s","cpu_us_per_span","median_cpu_us_per_span",
           "max_rss_kib","requests","spans","dropped"]'
    ;;
clock)
    cases='["ticks","monotonic","coarse","realtime","ticks_to_wall",
            "ticks_to_wall_first_anchor"]'
    keys='["min_ns","p50_ns","p99_ns","max_ns"]'
    ;;
*)
    printf 'no benchmark is called %s\n' "$name" >&2
    exit 2
    ;;
esac

if ! command -v jq >/dev/null; then
    printf 'jq is not installed\n' >&2
    exit 77
fi

output=$("$program" --quick)
printf '%s\n' "$output"
printf '%s\n' "$output" | jq --slurp --exit-status --arg bench "$name" --argjson cases "$cases" \
    --argjson keys "$keys" --argjson maybe "$maybe" '
    # A machine without a counter to trust takes its ticks from the monotonic clock.
    def plain: if . == "ticks_are_monotonic" then "ticks" else . end;
    . as $lines |
    (map(.case | plain) == $cases) and
    all($lines[]; . as $line | .bench == $bench and all($keys[]; . as $key |
        ($line[$key] | type == "number" and . >= 0) or
        ($line[$key] == null and ($maybe | index($key)) != null)))' >/dev/null || {
    printf 'these are not the lines that %s promises\n' "$name" >&2
    exit 1
}

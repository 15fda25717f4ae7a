#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Does a benchmark run, and print what it promises? Every line must be JSON, every case
# there once, every figure a number (or null where a machine may refuse it). What the
# figures are is not looked at: a machine that runs tests measures nothing.
#
#   smoke.sh NAME PROGRAM [WORD...]
#
# spec: Q12
set -euo pipefail

name=${1:?the name of a benchmark}
program=("${2:?the program}" "${@:3}")
maybe='[]'  # keys that may be null
holds='true' # of all lines, what else has to hold

case $name in
span)
    cases='["two_tsc_reads","two_clock_gettime","enter_end","enter_end_child","enter_end_draining",
            "enter_end_kind","enter_end_5attr","enter_end_5attr_mixed","enter_end_5attr_options",
            "enter_end_remote","enter_end_none_exporter","http_server","http_server_peer",
            "http_server_by_hand","one_int","one_bool","one_double","one_string","one_string_150",
            "one_string_300","one_string_utf8",
            "one_key_again","one_status_ok","one_status_error","one_event","one_exception",
            "one_name_60","one_name_100","start_end","start_end_5attr","unsampled",
            "unsampled_5attr","unsampled_ratio","unsampled_ratio_5attr_options",
            "no_sdk","no_sdk_kind","attach_detach","held_kept","held_cancelled",
            "lines_mount","nested_1","nested_10","nested_100","nested_1000","nested_10000",
            "sequential_1","sequential_10","sequential_100","sequential_1000",
            "sequential_10000","nested","sequential"]'
    # The last two lines are about those before them.
    keys='[]'
    holds='all(.[:-2][]; (.instructions | type == "number" or . == null) and
            all(.min_ns, .median_ns, .ratio_to_two_tsc_reads, .allocations;
                type == "number" and . >= 0)) and
        all(.[-2:][]; .least_min_ns > 0 and .most_min_ns > 0 and .flat_within_percent >= 0)'
    ;;
cold)
    cases='[("hot","data","code","both") as $work |
        ("two_tsc_reads","floor_inline","floor_library","enter_0","enter_2","enter_2_options",
         "enter_5","enter_5_options","start_0","start_2","start_2_options","start_5",
         "start_5_options") | "\(.)_\($work)"] + ["working_set"]'
    keys='[]'
    holds='all(.[:-1][]; all(.added_ns, .lower_quartile_ns, .upper_quartile_ns,
            .ratio_to_two_tsc_reads, .ratio_to_floor_library; type == "number") and .work_ns > 0) and
        all(.[-1:][]; .data_bytes > 0 and .code_bytes > 0 and .branches > 0)'
    ;;
worker)
    cases='["drain_encode_5attr","encode_5attr","protobuf_c_5attr"]'
    keys='["ns_per_span","median_ns_per_span","bytes_per_span"]'
    ;;
e2e)
    cases='["e2e","libcurl_alone","raw_socket"]'
    keys='["spans_per_s","median_spans_per_s","cpu_us_per_span","median_cpu_us_per_span","requests"]'
    holds='all(.[0]; all(.made_ns_per_span, .max_rss_kib, .spans; type == "number" and . > 0) and
            .dropped == 0)'
    ;;
service)
    cases='["bare","off","on","loss","loss_unpinned"]'
    keys='["us_per_request"]'
    # A loss may be below zero where nothing is to be lost, and is more than all for nobody.
    holds='all(.[:3][]; .requests_per_s > 0 and .cpu_us_per_request > 0) and
        all(.[3:][]; .throughput_loss_percent < 100 and .off_throughput_loss_percent < 100 and
            .cpu_increase_percent > -100 and .spans > 0 and .spans == .delivered and
            .dropped == 0 and .spans_per_request == 8 and .attributes_per_span == 2 and
            .sink_requests > 0 and .bytes_per_span > 50)'
    ;;
processor)
    # Quick, it leaves out 10 and 20 threads.
    cases='[("max", "steady") as $load | (1, 2, 5) as $threads |
        ("mutex_signal", "fifo_signal", "padded_block", "padded_sleep", "mutex_batched",
         "fifo_batched", "mpsc_batched", "ck_ring_batched", "ring_span", "lines", "control",
         "control_copy") |
        "\(.)_\($threads)_\($load)"]'
    keys='["offered_per_s","exported_per_s","dropped_percent","worker_cpu_percent",
           "worker_wakeups_per_s","process_cpu_percent","end_p50_us","end_p999_us","end_max_us"]'
    # A control has no exporter, and in so short a time it may be that nothing was timed.
    maybe=$keys
    holds='all(.case == "\(.design)_\(.threads)_\(.load)" and
            (.offered_per_s | type == "number") and (.process_cpu_percent >= 0) and
            (.dropped_percent == null or .dropped_percent <= 100) and
            ((.design | startswith("control")) or all(.exported_per_s, .dropped_percent, .worker_cpu_percent,
                .worker_wakeups_per_s; type == "number")))'
    ;;
processor_system)
    cases='["off","mutex_signal","mpsc_batched","lines"]'
    keys='["pages_per_s","spans_per_s","process_cpu_percent","exporter_cpu_percent",
           "exporter_wakeups_per_s","page_p50_us"]'
    maybe='["exporter_cpu_percent","exporter_wakeups_per_s","page_p50_us"]' # too short a time for a page
    holds='all(.pages_per_s >= 0 and .process_cpu_percent >= 0 and
            (.case == "off") == (.exporter_cpu_percent == null))'
    ;;
wakeup)
    cases='["signal","timer","signal","timer","signal","timer"]'
    keys='["sleeper_cpu_us","least_sleeper_cpu_us","waker_cpu_us"]'
    holds='all(.sleeper_cpu_us > 0 and (.waker_cpu_us > 0) == (.case == "signal"))'
    ;;
delay)
    cases='["oldest_of_a_batch","oldest_of_a_batch"]'
    keys='["threads","batches","p50_ms","p99_ms","max_ms"]'
    ;;
profile)
    cases='["indirect_call","apply","apply_1000_labels","apply_shared",
            "apply_empty_shared","label_acquire_release","clock_read",
            "attach_detach","sampler_99hz","sampler_1000hz"]'
    keys='[]'
    # What a sampler costs, and its thread, may be less than what a machine and two clocks are uneven by.
    holds='all(.[:8][]; all(.min_ns, .median_ns; type == "number" and . >= 0)) and
        all(.[8:][]; all(.cpu_percent, .median_cpu_percent; type == "number") and
            (.own_thread_cpu_percent | type == "number") and .samples_per_cpu_second >= 0 and
            (.source == "perf" or .source == "signal"))'
    ;;
clock)
    cases='["ticks","monotonic","coarse","realtime","convert","start","renew",
            "measure_offsets","ticks_to_wall",
            "ticks_to_wall_first_anchor","ticks_to_wall_in_process"]'
    keys='["min_ns","p50_ns","p99_ns","max_ns"]'
    ;;
processes)
    cases='["bare","api","linked","threadless","thread","static","file","file_static","file_alone",
            "connection_bare","connection_postmaster","connection_backend","start","start_after_curl","curl"]'
    keys='[]'
    holds='all(.runs > 0 and all(.wall_us, .cpu_us; length == 3 and .[0] >= 0)) and all(.wall_us[0] > 0)'
    ;;
nginx)
    command -v wrk >/dev/null && [[ -e ${NGINX_SOURCE:-/usr/share/nginx/src}/configure ]] || {
        printf 'nginx-dev or wrk is not installed\n' >&2
        exit 77
    }
    cases='["bare","off","disabled","sampled_1","all"]'
    keys='[]'
    holds='all(.slices == 2 and all(.requests_per_s, .cpu_ns, .worker_ns; length == 4 and .[0] > 0)) and
        all(.[1:][]; all(.cpu_increase_percent, .worker_increase_percent; length == 4)) and
        all(.[:3][]; .spans == null) and all(.exporter_ns == [0, 0, 0, 0]) and
        all(.[3:][]; .spans > 0 and .spans == .delivered + .dropped and .posts > 0) and
        all(.[4:][]; .spans > 10 * .posts)'
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

output=$("${program[@]}" --quick)
printf '%s\n' "$output"
printf '%s\n' "$output" | jq --slurp --exit-status --arg bench "$name" \
    --argjson cases "$(jq --null-input "$cases")" \
    --argjson keys "$keys" --argjson maybe "$maybe" '
    # A machine without a counter to trust takes its ticks from the monotonic clock.
    def plain: if . == "ticks_are_monotonic" then "ticks" else . end;
    . as $lines |
    (map(.case | plain) == $cases) and
    all($lines[]; . as $line | .bench == $bench and all($keys[]; . as $key |
        ($line[$key] | type == "number" and . >= 0) or
        ($line[$key] == null and ($maybe | index($key)) != null))) and
    ('"$holds"')' >/dev/null || {
    printf 'these are not the lines that %s promises\n' "$name" >&2
    exit 1
}

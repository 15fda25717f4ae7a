#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds and runs one benchmark. Prints its figures as JSON lines on stdout, and nothing
# else there; docs/PERFORMANCE.md says what they mean. Or runs those that make a picture,
# and draws it.
#
#   scripts/bench.sh span     what a span costs the thread that makes it
#   scripts/bench.sh cold     what it costs between the work of a program, with cold caches
#   scripts/bench.sh worker   what it costs the exporter thread
#   scripts/bench.sh processor  which queue should be before the exporter thread: the study of
#                               docs/PROCESSOR.md, about 9 minutes; with --system, what the
#                               queue costs a whole service
#   scripts/bench.sh wakeup   what one wake-up of a thread costs it, and who wakes it
#   scripts/bench.sh delay    how long spans wait for their batch
#   scripts/bench.sh e2e      200,000 spans through OTLP/HTTP to a sink on loopback
#   scripts/bench.sh service  what a real program loses when all of it is traced
#   scripts/bench.sh clock    what clocks cost, and how exact the spans' times are
#   scripts/bench.sh profile  what a label, a context and the sampling of processor time cost
#   scripts/bench.sh nginx    what a request costs in nginx, by thread: without the module, with it
#                               off, disabled, sampling 1 %, and tracing all, about 4 minutes; with
#                               --account, where that time goes (perf); --rival MODULE.so HOST:PORT
#                               also measures nginx's own module, exporting to that receiver
#   scripts/bench.sh processes  what otel-c costs programs of a moment, and a process for each
#                               connection; what otel_start takes of the thread that calls it
#   scripts/bench.sh redis    the same of a command in redis, 16 at a time, with a span for each
#   scripts/bench.sh plot     runs service, span, processor and processor --system, or those that
#                             are named, and draws them into build/bench/; over 10 minutes for all
#
#   --quick      does it run at all? The figures mean little
#   --rounds N   measure every case N times (all but delay)
#   --design NAME, --threads N, --load max|steady
#                of processor: only these; each may be given more than once
#
# What a build needs is installed first (see scripts/setup.sh). The build is Release, in
# build-bench/, with shared libraries as they are shipped.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

name=${1:-}
case $name in
span | cold | worker | e2e | service | clock | wakeup | delay | profile | nginx | redis | processes) shift ;;
processor)
    shift
    if [[ ${1:-} == --system ]]; then
        name=processor_system
        shift
    fi
    ;;
plot)
    shift
    exec scripts/bench-plot.sh "$@"
    ;;
-h | --help)
    sed -n '4,/^set /{s/^# \{0,1\}//;/^set /d;p}' scripts/bench.sh
    exit
    ;;
*)
    say "${name:+there is no benchmark \"$name\": }name one of span, cold, worker, processor, wakeup, delay, e2e, service, clock, profile, nginx, redis, processes; or plot, which draws them"
    exit 2
    ;;
esac

logs=$(cache_dir)/logs
deps=(--bench-deps)
target=bench-$name
command=("build-bench/benchmarks/bench-$name")
if [[ $name == nginx || $name == redis ]]; then
    deps+=(--server-deps)
    target=bench-servers
    command=(benchmarks/servers.py "$name" build-bench)
elif [[ $name == processes ]]; then
    command=(benchmarks/processes.py build-bench)
fi
scripts/setup.sh "${deps[@]}" >&2
need_own_tree build-bench
run_quiet "configuring" "$logs/configure-bench.log" \
    cmake --preset bench -DOTEL_BUILD_TOOLS=OFF -DOTEL_BUILD_EXAMPLES=OFF ||
    die "the build could not be configured"
run_quiet "building" "$logs/build-bench.log" \
    cmake --build --preset bench --target "$target" -j "$(nproc)" ||
    die "the benchmark could not be built"
say "running $name"
exec "${command[@]}" "$@"

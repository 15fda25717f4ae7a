#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What programs that trace cost the agent of their machine: the figures of docs/SCALING.md.
#
#   scripts/scaling.sh                     four cases of 20 s
#   scripts/scaling.sh --case 10x1000      10 programs with 1,000 spans a second each
#   scripts/scaling.sh --seconds 5
#
# OTEL_EXPORTER_OTLP_PROTOCOL and _COMPRESSION say how the programs send. What is missing is built
# first: the programs as a release, in build-bench/, and a collector (scripts/setup.sh
# --collector-contrib). Close everything else on the machine.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

case ${1:-} in
-h | --help)
    sed -n '3,/^set /{s/^# \{0,1\}//;/^set /d;p}' scripts/scaling.sh
    exit
    ;;
esac

logs=$(cache_dir)/logs
scripts/setup.sh --bench-deps >&2
collector=$(scripts/setup.sh --collector-contrib)
need_own_tree build-bench
run_quiet "configuring" "$logs/configure-bench.log" \
    cmake --preset bench -DOTEL_BUILD_TOOLS=OFF -DOTEL_BUILD_EXAMPLES=OFF ||
    die "the build could not be configured"
run_quiet "building" "$logs/build-bench.log" \
    cmake --build --preset bench --target bench-load -j "$(nproc)" ||
    die "the program could not be built"
say "running"
exec benchmarks/scaling.py build-bench/benchmarks/bench-load "$collector" "$@"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The way from a program to its profile per query: the example is sampled, by its environment alone,
# and otel-flame says which route had how much of the time. What the kernel refuses is the signal's.
# Its seconds are those of the processor, so there are as many samples on a machine that is busy.
#
#   query_server.sh PATH-OF-QUERY-SERVER PATH-OF-OTEL-FLAME
set -euo pipefail

server=${1:?the example}
flame=${2:?otel-flame}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for source in on signal; do
    mkdir "$work/$source"
    OTEL_TRACES_EXPORTER=none OTEL_C_PROFILER=$source OTEL_C_PROFILER_HZ=110 \
        OTEL_C_PROFILER_OUT=$work/$source "$server" 2 >"$work/said"
    cat "$work/said"
    grep -q '^profiler: .* samples, ' "$work/said"
    "$flame" --label http.route --out "$work/$source.html" "$work/$source"/query_server-*.pb.gz \
        >"$work/shares"
    cat "$work/shares"
    # Both routes are there, and the one that has most of the processor is the first.
    awk '/http.route=\// { print $NF }' "$work/shares" >"$work/routes"
    diff - "$work/routes" <<<$'http.route=/customers/top\nhttp.route=/orders/{note}'
    grep -q 'find_order' "$work/$source.html"
    grep -q 'add_up_orders' "$work/$source.html"
done

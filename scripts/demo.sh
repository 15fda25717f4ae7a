#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh checkout to a trace on the screen: installs what is missing, builds
# otel-c, and runs the example service (examples/service.c), whose two processes send
# their spans to otel-view, which draws them. Ends with the line
#
#   delivered N of N spans
#
# and exit status 0, or says what failed and exits 1. The second N is how many spans the
# two services ended, by their own count; the first is how many otel-view received.
#
# If OTEL_EXPORTER_OTLP_ENDPOINT is set, the spans go there instead, under the settings of
# the environment, and the first N is how many the receiver took. otel-view does not run
# then: the traces are to be seen where they were sent.
#
#   scripts/demo.sh profile
#
# shows the other half: where the processor time of a server goes, by query
# (examples/query_server.c). It prints the share of each, by the threads' own clocks and by the
# profile, and where the flame graph of each query is.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/lib.sh
source "$here/lib.sh"

readonly root=${here%/*}
readonly build=$root/build
readonly requests=2

work=
service_pid=
view_pid=

# end PID: end a process of ours. One that has just been forked may still have this
# script's handler for the signal, so it is asked until it is gone.
end() {
    while kill "$1" 2>/dev/null; do
        sleep 0.05
    done
    wait "$1" 2>/dev/null || true
}

clean_up() {
    trap '' INT TERM
    [[ -z $service_pid ]] || end "$service_pid"
    [[ -z $view_pid ]] || end "$view_pid"
    [[ -z $work ]] || rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

build_all() {
    local options=(-DCMAKE_BUILD_TYPE=Release -DOTEL_WITH_OTLP=ON -DOTEL_BUILD_TOOLS=ON
        -DOTEL_BUILD_EXAMPLES=ON)
    # A new build does without the tests, which need more packages.
    [[ -e $build/CMakeCache.txt ]] || options+=(-G Ninja -DOTEL_BUILD_TESTING=OFF)
    need_own_tree "$build"
    run_quiet "configuring a release build in $build" "$build/logs/demo-configure.log" \
        cmake -S "$root" -B "$build" "${options[@]}" || die "CMake could not configure the build"
    run_quiet "building" "$build/logs/demo-build.log" cmake --build "$build" --parallel ||
        die "the build failed"
}

# Starts otel-view on a free port; the environment then leads there and nowhere else.
start_view() {
    local address tries
    : >"$work/view"
    "$build/tools/otel-view" --port 0 --idle-exit 60000 2>"$work/view" &
    view_pid=$!
    for ((tries = 0; tries < 600; tries++)); do
        address=$(sed -n 's/^otel-view: listening on \([^,]*\).*/\1/p' "$work/view")
        [[ -z $address ]] || break
        kill -0 "$view_pid" 2>/dev/null || break
        sleep 0.1
    done
    [[ -n $address ]] || die "otel-view did not start: $(cat "$work/view")"
    # shellcheck disable=SC2086 # each variable's name is a word
    unset ${!OTEL_@}
    export OTEL_EXPORTER_OTLP_ENDPOINT=$address
    export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
    say "otel-view listens on $address"
}

run_service() {
    local status=0
    say "running the example service: $requests requests, the last one fails"
    OTEL_TRACES_EXPORTER=otlp "$build/examples/service" --demo "$requests" \
        >"$work/service" 2>"$work/service.err" &
    service_pid=$!
    wait "$service_pid" || status=$?
    service_pid=
    if [[ $status -ne 0 ]]; then
        cat "$work/service" "$work/service.err" >&2
        die "the example service failed with status $status, or not all of its spans were delivered"
    fi
}

# The end of otel-view draws what is left; what it counted is the last line it says.
stop_view() {
    local status=0
    kill "$view_pid" 2>/dev/null || true
    wait "$view_pid" || status=$?
    view_pid=
    if [[ $status -ne 0 ]]; then
        cat "$work/view" >&2
        die "otel-view failed with status $status"
    fi
    sed -n 's/^received \([0-9]*\) spans.*/\1/p' "$work/view"
}

# sum FIELD: of the lines "shop: delivered N of M spans" that the two services print.
sum() {
    awk -v field="$1" '$2 == "delivered" { total += $field } END { print total + 0 }' "$work/service"
}

# The server is sampled for some seconds of its processor time, by its environment alone, and more
# often than by default: a few hundred samples would give the shares to some points only.
run_profile() {
    local out=$build/profile page=$build/profile/flame.html
    rm -rf "$out"
    mkdir -p "$out"
    say "running the example server for 10 seconds of processor time, two kinds of queries"
    OTEL_TRACES_EXPORTER=none OTEL_C_PROFILER=on OTEL_C_PROFILER_OUT=$out OTEL_C_PROFILER_HZ=499 \
        "$build/examples/query_server" 10 || die "the example server failed"
    printf 'by the profile:\n'
    "$build/tools/otel-flame" --label http.route --title "query_server, by query" --out "$page" \
        "$out"/query_server-*.pb.gz || die "there is no profile"
    printf 'to look at it: file://%s\n' "$page"
}

main() {
    local with_view=true ended delivered
    case ${1:-} in
    -h | --help)
        sed -n '4,/^set /{s/^# \{0,1\}//;/^set /d;p}' "${BASH_SOURCE[0]}"
        exit
        ;;
    esac
    [[ $# -eq 0 || ($# -eq 1 && $1 == profile) ]] ||
        die "this script takes no argument, or the word profile"
    [[ -z ${OTEL_EXPORTER_OTLP_ENDPOINT:-} ]] || with_view=false

    if command -v apt-get >/dev/null; then
        "$here/setup.sh" --build-deps || die "what the build needs could not be installed"
    fi
    build_all
    if [[ ${1:-} == profile ]]; then
        run_profile
        return
    fi
    work=$(mktemp -d)
    if $with_view; then
        start_view
    else
        say "sending to $OTEL_EXPORTER_OTLP_ENDPOINT"
    fi
    run_service
    ended=$(sum 5)
    delivered=$(sum 3)
    if $with_view; then
        stop_view >"$work/received"
        delivered=$(cat "$work/received")
    fi
    [[ $ended -gt 0 ]] || die "the services recorded no spans; is that what the environment asks for?"
    [[ $delivered -eq $ended ]] || die "only $delivered of $ended spans arrived"
    printf 'delivered %d of %d spans\n' "$delivered" "$ended"
}

main "$@"

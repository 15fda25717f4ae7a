#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds otel-c and runs its tests: everything that has to pass before a change lands.
#
#   scripts/test.sh           what CI runs: the black-box suite against what is installed; unit,
#                             stress, integration and package tests, the gates and valgrind with
#                             gcc; the tests again under ASan+UBSan; with clang the stress tests
#                             under TSan, and a little fuzzing
#   scripts/test.sh --long    the same with the long forms of the stress tests: the soak, for one,
#                             takes 15 seconds otherwise, and then ten minutes
#   scripts/test.sh --quick   gcc only, no sanitizers: while working on something
#
# Installs what is missing first (see scripts/setup.sh), the real collectors included.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

jobs=$(nproc)
logs=$(cache_dir)/logs
mode=normal
case "${1:-}" in
"") ;;
--long) mode=long && export OTEL_TEST_LONG=1 ;;
--quick) mode=quick ;;
-h | --help)
    sed -n '4,/^set /{s/^# \{0,1\}//;/^set /d;p}' scripts/test.sh
    exit
    ;;
*) die "unknown option $1: see the head of scripts/test.sh" ;;
esac
mkdir -p "$logs"

# build PRESET: configure and build one of CMakePresets.json.
build() {
    run_quiet "configuring $1" "$logs/configure-$1.log" cmake --preset "$1"
    run_quiet "building $1" "$logs/build-$1.log" cmake --build --preset "$1" -j "$jobs"
}

# run_tests PRESET CTEST-ARGUMENT...: fails with the output of what failed. The closing
# lines of every run stay visible.
run_tests() {
    local preset=$1
    shift
    say "testing $preset"
    (cd "build-$preset" && ctest --output-on-failure -j "$jobs" "$@")
}

if [ "$mode" = quick ]; then
    scripts/setup.sh --test-deps >/dev/null
else
    scripts/setup.sh --all >/dev/null
fi
if [ "$mode" = long ]; then
    scripts/setup.sh --collector-contrib >/dev/null
fi

build dev
say "testing what is installed: tests/blackbox"
tests/blackbox/run.sh build-dev
if [ "$mode" = quick ]; then
    run_tests dev
    exit
fi
build asan
build tsan
build fuzz
run_tests fuzz
run_tests tsan -L stress
run_tests asan -L 'unit|integration|example'
run_tests dev

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds otel-c and runs its tests, step by step. What a step needs is installed first.
#
#   scripts/test.sh            the first tier: what finds most defects, in minutes
#   scripts/test.sh --full     every other step: other compilers and tools, real receivers, other SDKs
#   scripts/test.sh STEP...    these steps
#   scripts/test.sh --list     prints the names of the steps, and what each of them does
#   scripts/test.sh --mutants  600 seeded changes, run against all of the first tier; continues where
#                              it was interrupted
#   scripts/test.sh --soak     the long forms (OTEL_TEST_LONG=1) of the stress tests, of the tests with
#                              real receivers and of the models: hours
#
# The first step that fails is the last one. The closing lines say what to run to repeat the failure.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

# NAME: what the step does. Those before the empty line are the first tier. step_NAME runs it.
steps="unit: the unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
blackbox: tests/blackbox against the installed libraries and tools
gates: quick checks of the sources, of the libraries and of what is installed
examples: every example
integration: whole programs against the project's own receivers

format: clang-format
reference: HTML and man pages of every public function, by Doxygen
tidy: clang-tidy, on what has changed since it was last run on this machine
packages: all ways to build a program against what is installed; the module for nginx; headers; the ABI
sdks: the SDKs of Python and Go, prices under valgrind, one root in a million
receivers: the OpenTelemetry Collector, Rotel and Go's pprof
stress: many threads, and the unit tests, without sanitizers
asan: examples and whole programs under AddressSanitizer and UndefinedBehaviorSanitizer
tsan: many threads under ThreadSanitizer, with clang
valgrind: memory that is left behind, by valgrind
callgrind: the number of instructions of a span
models: the models of the protocols between threads, by Spin
aarch64: tests for AArch64, under QEMU
fuzz: every fuzz target that has changed since it was last run on this machine
timing: tests that measure time, and a short run of each benchmark, one at a time
faults: planted faults, each of which tests/blackbox has to find
mutants: 30 seeded changes of the sources, most of which the unit tests have to find"
full=${steps#*$'\n\n'}
first=${steps%$'\n\n'*}

jobs=$(nproc)
tests_at_once=$((2 * jobs)) # most of them wait
logs=$(cache_dir)/logs
stop=()     # how ctest ends in the first tier
again=      # the command that repeats what failed
built=" "   # what this run has built

# names STEPS: their names, one a line.
names() {
    cut -d : -f 1 <<<"$1"
}

setup() {
    again="scripts/setup.sh $*"
    scripts/setup.sh "$@" >/dev/null
}

# build PRESET [TARGET...]: configures and builds a preset of CMakePresets.json, all of it or targets.
build() {
    local preset=$1
    [[ $built != *" $* "* ]] || return 0
    need_own_tree "build-$preset"
    again="cmake --preset $preset"
    run_quiet "configuring build-$preset" "$logs/configure-$preset.log" cmake --preset "$preset" ||
        return
    built+="$* "
    shift
    again="cmake --build build-$preset${*:+ --target $*}"
    run_quiet "building build-$preset${*:+: $*}" "$logs/build-$preset.log" \
        cmake --build "build-$preset" -j "$jobs" ${1:+--target "$@"}
}

# build_light: what the first tier needs without sanitizers: all but unit and stress tests.
build_light() {
    setup --test-deps --interop &&
        build dev otel-libraries tools/all examples/all tests/integration/all make_certificates
}

# run TREE CTEST-ARGUMENT...
run() {
    local tree=$1
    shift
    again="ctest --test-dir $tree --rerun-failed --output-on-failure"
    ctest --test-dir "$tree" --output-on-failure --no-tests=error -j "$tests_at_once" "${stop[@]}" "$@"
}

# run_blackbox CTEST-ARGUMENT...
run_blackbox() {
    again="tests/blackbox/run.sh build-dev --rerun-failed"
    tests/blackbox/run.sh build-dev --no-tests=error "${stop[@]}" "$@"
}

step_unit() {
    setup --test-deps && build asan tests/unit/all && run build-asan -L '^unit$' -LE 'timing|full'
}
step_blackbox() { build_light && run_blackbox -LE 'full|timing'; }
step_gates() { build_light && run build-dev -L gate -LE full; }
step_examples() { build_light && run build-dev -L example; }
step_integration() { build_light && run build-dev -L integration -LE 'full|timing'; }

build_dev() { setup --full-deps --aarch64 && build dev; }
step_format() { build_dev && run build-dev -R '^gate\.format$'; }
step_reference() { build_dev && run build-dev -R '^gate\.reference$'; }
step_tidy() { build_dev && run build-dev -R '^gate\.tidy$'; }
step_packages() {
    build_dev && setup --interop &&
        run build-dev -R '^package\.|^gate\.(abi.*|headers|semconv)$|^integration\.(trampolines|nginx|nginx_storm)$'
}
step_sdks() { build_dev && setup --interop && run build-dev -L sdks && run_blackbox -L full; }
step_receivers() {
    build_dev && setup --interop --collector --rotel && run build-dev -L receivers -LE timing
}
step_stress() { build_dev && run build-dev -L '^(unit|stress)$' -LE timing; }
step_asan() {
    build_dev && setup --interop --collector --rotel &&
        build asan tools/all examples/all tests/integration/all tests/interop/all make_certificates \
            random_strings_stress &&
        run build-asan -L 'example|integration'
}
step_tsan() {
    setup --full-deps && build tsan tests/stress/all && run build-tsan -L stress
}
step_valgrind() { build_dev && run build-dev -R '^valgrind\.'; }
step_callgrind() { build_dev && run build-dev -R '^callgrind\.'; }
step_models() { build_dev && run build-dev -L model; }
step_aarch64() { build_dev && run build-dev -L aarch64; }
step_fuzz() { setup --full-deps && build fuzz && run build-fuzz; }
step_timing() { build_dev && run build-dev -L 'timing|bench-smoke'; }
step_faults() {
    setup --test-deps && again="scripts/test.sh faults" && tests/blackbox/faults.py build-faults
}
step_mutants() { # 30 are few: the bound is that of chance, not that of docs/RELIABILITY.md
    setup --full-deps && again="scripts/test.sh mutants" &&
        tests/mutants/run.py build-mutants --sample 30 --seconds 5 --bound 50
}

run_steps() {
    local step began
    for step in "$@"; do
        grep -q "^$step: " <<<"$steps" || die "there is no step $step: see scripts/test.sh --list"
    done
    mkdir -p "$logs"
    for step in "$@"; do
        began=$SECONDS
        say "$(grep "^$step: " <<<"$steps")"
        "step_$step" || die "$step: failed after $((SECONDS - began)) s; to repeat it: $again"
        say "$step: passed, $((SECONDS - began)) s"
    done
}

case ${1:-} in
-h | --help) sed -n '4,/^set /{s/^# \{0,1\}//;/^set /d;p}' "$0" ;;
--list) printf '%s\n' "$steps" ;;
--soak)
    export OTEL_TEST_LONG=1
    setup --collector-contrib
    run_steps stress timing receivers models fuzz
    ;;
--mutants)
    setup --full-deps --interop
    measure="tests/mutants/run.py build-mutants --sample 600"
    $measure
    $measure --tests '^(unit|example|integration|blackbox)\.'
    exec $measure --sanitize --bound 85
    ;;
--full)
    # shellcheck disable=SC2046
    run_steps $(names "$full")
    ;;
--*) die "there is no option $1: see scripts/test.sh --help" ;;
"")
    stop=(--stop-on-failure)
    # shellcheck disable=SC2046
    run_steps $(names "$first")
    say "the first tier has passed, $SECONDS s; scripts/test.sh --full runs the rest"
    ;;
*) run_steps "$@" ;;
esac

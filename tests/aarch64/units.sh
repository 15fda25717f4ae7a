#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds all libraries for AArch64, with warnings as errors, and runs the unit tests there of the
# folders whose code depends on the processor: what threads share, clocks, the thread context.
#
#   units.sh BUILD LIBRARIES
#
# QEMU's emulator of programs cannot start threads in a forked child, nor let one program look into
# another: tests that need it are left out here, or leave it out themselves.
source "$(dirname "${BASH_SOURCE[0]}")/../gates/lib.sh"

build=$1 libraries=$2
programs=(unit-api unit-common unit-sdk)
left_out='api\.(asan_fork|thread_context)|sdk\.(fork|lifecycle|process_context|record|spec_processor)'

# quietly LOG COMMAND...: shows the output only when the command fails.
quietly() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 || {
        grep -E 'error|FAILED|undefined|\*\*\*' "$log" >&2 || tail -n 30 "$log" >&2
        echo "failed: $*" >&2
        exit 1
    }
}

mkdir -p "$build"
# Executables that need libcurl are only linked: what it needs itself is not there.
quietly "$build/configure.log" cmake -S . -B "$build" -G Ninja \
    --toolchain "$PWD/cmake/aarch64-linux-gnu.cmake" -DOTEL_AARCH64_ROOT="$libraries" \
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 \
    -DCMAKE_EXE_LINKER_FLAGS=-Wl,--as-needed,--allow-shlib-undefined \
    -DOTEL_WITH_FUNCTIONS=OFF -DOTEL_BUILD_CONFIG=OFF -DOTEL_BUILD_TOOLS=OFF \
    -DOTEL_BUILD_EXAMPLES=OFF -DOTEL_WITH_ZSTD=OFF
libraries_of_ours=(otel-api-shared otel-sdk-shared otel-otlp-shared otel-shared)
! grep -q 'otel-profiling-shared' "$build/build.ninja" || libraries_of_ours+=(otel-profiling-shared)
quietly "$build/build.log" cmake --build "$build" -j 2 \
    --target "${libraries_of_ours[@]}" "${programs[@]}"
cd "$build"
export OTEL_TEST_EMULATED=1
quietly tests.log ctest -j 2 --no-tests=error --output-on-failure -R '^unit\.(api|common|sdk)\.' \
    -E "^unit\.($left_out)\$"
echo "units.sh: ok, $(grep -c ' Passed ' tests.log) tests"

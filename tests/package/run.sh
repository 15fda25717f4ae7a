#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the build and builds a consumer against it, as users do.
#
#   run.sh install BUILD WORK     into WORK/prefix, then move that to WORK/moved
#   run.sh WAY BUILD WORK         pkgconfig, pkgconfig_static, cmake, cmake_static,
#                                 subdirectory
#
# Everything is used from WORK/moved, where it was not installed.
#
# spec: Q2 Q8
source "$(dirname "${BASH_SOURCE[0]}")/../gates/lib.sh"

way=$1 build=$2 work=$3
consumer=$(pwd)/tests/package/consumer
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
moved=$work/moved
out=$work/$way

die() {
    printf '%s: %s\n' "$way" "$*" >&2
    exit 1
}

# quietly LOG COMMAND...: shows the output only when the command fails.
quietly() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 || {
        cat "$log" >&2
        die "failed: $*"
    }
}

install_and_move() {
    rm -rf "$work"
    mkdir -p "$work"
    quietly "$work/install.log" cmake --install "$build" --prefix "$work/prefix"
    mv "$work/prefix" "$moved"
    # What is installed must not say where it was built or installed.
    local file
    while IFS= read -r file; do
        ! grep -qF -e "$build" -e "$work" "$file" || die "$file names a directory of this machine"
    done < <(find "$moved" -name '*.cmake' -o -name '*.pc' -o -name '*.h')
    printf '%s: %s files\n' "$way" "$(find "$moved" -type f | wc -l)"
    exit 0
}

# pkg_config DIRECTORY ARGUMENT...: only ever finds what is in DIRECTORY.
pkg_config() {
    local directory=$1
    shift
    PKG_CONFIG_LIBDIR=$directory pkg-config "$@"
}

library_directory() {
    dirname "$(find "$1" -name pkgconfig -type d)"
}

build_with_pkgconfig() {
    local libraries
    libraries=$(library_directory "$moved")
    pkg_config "$libraries/pkgconfig" --validate otel otel-otlp otel-sdk otel-api
    # Unquoted on purpose: these are words of a command line.
    # shellcheck disable=SC2046
    quietly "$out/build.log" "$compiler" -o "$out/consumer" "$consumer/main.c" \
        $(pkg_config "$libraries/pkgconfig" --cflags --libs otel) "-Wl,-rpath,$libraries"
}

# The same from C++.
build_with_cxx() {
    local libraries cxx
    libraries=$(library_directory "$moved")
    for cxx in g++ clang++-14; do
        if ! command -v "$cxx" >/dev/null; then
            [[ -z ${CI:-} ]] || die "there is no $cxx"
            continue
        fi
        # shellcheck disable=SC2046
        quietly "$out/build.log" "$cxx" -std=c++11 -Wall -Wextra -Wpedantic -Werror \
            -o "$out/from-$cxx" "$consumer/main.cc" \
            $(pkg_config "$libraries/pkgconfig" --cflags --libs otel) "-Wl,-rpath,$libraries"
        env -u LD_LIBRARY_PATH "$out/from-$cxx" || die "what $cxx made ran and failed"
    done
}

# A tree of only archives: what --static names must then be enough.
build_with_pkgconfig_static() {
    local libraries
    cp -a "$moved" "$out/tree"
    find "$out/tree" -name 'libotel*.so*' -delete
    libraries=$(library_directory "$out/tree")
    # shellcheck disable=SC2046
    quietly "$out/build.log" "$compiler" -o "$out/consumer" "$consumer/main.c" \
        $(pkg_config "$libraries/pkgconfig" --static --cflags --libs otel)
}

# The same program with all its functions traced, where otel-functions was built.
build_traced() {
    local libraries
    libraries=$(library_directory "$1")
    shift
    [[ -e $libraries/pkgconfig/otel-functions.pc ]] || return 0
    # shellcheck disable=SC2046
    quietly "$out/build.log" "$compiler" -finstrument-functions -o "$out/traced" \
        "$consumer/main.c" $(pkg_config "$libraries/pkgconfig" "$@" otel-functions otel) \
        "-Wl,-rpath,$libraries"
}

# A program that is sampled, where otel-profiling was built.
build_profiled() {
    local libraries
    libraries=$(library_directory "$1")
    shift
    [[ -e $libraries/pkgconfig/otel-profiling.pc ]] || return 0
    # shellcheck disable=SC2046
    quietly "$out/build.log" "$compiler" -o "$out/profiled" "$consumer/profiled.c" \
        $(pkg_config "$libraries/pkgconfig" "$@" otel-profiling) "-Wl,-rpath,$libraries"
}

# build_with_cmake SOURCE OPTION...
build_with_cmake() {
    local source=$1
    shift
    quietly "$out/configure.log" cmake -S "$source" -B "$out" -G Ninja \
        -DCMAKE_C_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=RelWithDebInfo "$@"
    quietly "$out/build.log" cmake --build "$out" -j 2
}

[[ $way != install ]] || install_and_move
rm -rf "$out"
mkdir -p "$out"
case $way in
pkgconfig)
    build_with_pkgconfig
    build_with_cxx
    build_traced "$moved" --cflags --libs
    build_profiled "$moved" --cflags --libs
    ;;
pkgconfig_static)
    build_with_pkgconfig_static
    build_traced "$out/tree" --static --cflags --libs
    build_profiled "$out/tree" --static --cflags --libs
    ;;
cmake) build_with_cmake "$consumer" -DCMAKE_PREFIX_PATH="$moved" ;;
cmake_static) build_with_cmake "$consumer" -DCMAKE_PREFIX_PATH="$moved" -DKIND=_static ;;
subdirectory)
    build_with_cmake "$(pwd)/tests/package/subdirectory" -DOTEL_SOURCES="$(pwd)"
    ;;
*) die "no such way" ;;
esac

env -u LD_LIBRARY_PATH "$out/consumer" || die "the consumer ran and failed"
if [[ -e $out/traced ]]; then
    # It looks for its own span and no other.
    env -u LD_LIBRARY_PATH OTEL_C_FUNCTIONS_EXCLUDE='*' "$out/traced" ||
        die "the traced consumer ran and failed"
    nm "$out/traced" | grep -q 'U __cyg_profile_func_enter@GLIBC' &&
        die "the traced consumer has the hooks of the C library"
fi
# A program that is linked statically has to show profilers where its threads' contexts are.
exports=$(readelf -W --dyn-syms "$out/consumer" | grep -cE ' TLS .* otel_thread_ctx_v1$' || true)
needed=$(readelf -dW "$out/consumer" | sed -nE 's/.*\(NEEDED\).*\[(libotel.*)\]/\1/p')
case $way in
pkgconfig | cmake) [[ -n $needed ]] || die "the consumer is not linked with the shared libraries" ;;
*)
    [[ -z $needed ]] || die "the consumer needs $needed although it is linked statically"
    [[ $exports == 1 ]] || die "the consumer does not export otel_thread_ctx_v1"
    ;;
esac

# Who does not ask for the profiler has none of it.
[[ $needed != *otel-profiling* ]] || die "the consumer is linked with otel-profiling"
! nm "$out/consumer" | grep -q ' [TtDdBb] otel_profile' || die "the consumer has a part of otel-profiling"
[[ -e $out/profiled ]] || exit 0
env -u LD_LIBRARY_PATH "$out/profiled" || die "the profiled program ran and failed"
needed=$(readelf -dW "$out/profiled" | sed -nE 's/.*\(NEEDED\).*\[(libotel-profiling.*)\]/\1/p')
mkdir "$out/profiles"
env -u LD_LIBRARY_PATH OTEL_C_PROFILER=on OTEL_C_PROFILER_OUT="$out/profiles" "$out/consumer" \
    >"$out/said" 2>&1 || die "the consumer failed with a profiler: $(cat "$out/said")"
case $way in
pkgconfig | cmake) # is found beside the other libraries
    [[ -n $needed ]] || die "the profiled program is not linked with the shared library"
    ! grep 'no profiler' "$out/said" || die "otel_start did not find the profiler"
    ;;
*)
    [[ -z $needed ]] || die "the profiled program needs $needed although it is linked statically"
    grep -q 'no profiler: .* cannot be loaded' "$out/said" ||
        die "otel_start does not say that there is no profiler: $(cat "$out/said")"
    ;;
esac

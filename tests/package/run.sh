#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the build and builds a consumer against it, as users do.
#
#   run.sh install BUILD WORK     into WORK/prefix, then move that to WORK/moved
#   run.sh WAY BUILD WORK         pkgconfig, pkgconfig_static, cmake, cmake_static,
#                                 subdirectory, subdirectory_static, subdirectory_shared,
#                                 lto_gcc, lto_clang, cgo, oldest_cmake, elsewhere
#
# Everything is used from WORK/moved, where it was not installed.
#
# spec: Q2 Q8
source "$(dirname "${BASH_SOURCE[0]}")/../gates/lib.sh"
source scripts/lib.sh

way=$1 build=$2 work=$3
consumer=$(pwd)/tests/package/consumer
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
moved=$work/moved
out=$work/$way
targets=(all)

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
    local file
    for file in LICENSE README.md CHANGELOG.md docs/CONFIGURATION.md examples/hello.c \
        examples/ffi/hello.py; do
        [[ -e $moved/share/doc/otel-c/$file ]] || die "$file is not installed"
    done
    ! grep -r --include='*.cmake' --include='*.pc' protobuf "$moved" ||
        die "a program that uses what is installed is told to link protobuf-c"
    # What is installed must not say where it was built or installed.
    while IFS= read -r file; do
        ! grep -qF -e "$build" -e "$work" "$file" || die "$file names a directory of this machine"
    done < <(find "$moved" -name '*.cmake' -o -name '*.pc' -o -name '*.h' -o -name '*.hpp')
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
    for cxx in g++ "$(llvm clang++)"; do
        command -v "$cxx" >/dev/null || continue
        # shellcheck disable=SC2046
        quietly "$out/build.log" "$cxx" -std=c++11 -Wall -Wextra -Wpedantic -Werror \
            -Wzero-as-null-pointer-constant \
            -o "$out/from-$cxx" "$consumer/main.cc" \
            $(pkg_config "$libraries/pkgconfig" --cflags --libs otel) "-Wl,-rpath,$libraries"
        env -u LD_LIBRARY_PATH "$out/from-$cxx" || die "what $cxx made ran and failed"
        # shellcheck disable=SC2046
        quietly "$out/build.log" "$cxx" -std=c++17 -Wall -Wextra -Werror \
            -o "$out/hello-$cxx" examples/ffi/hello.cpp \
            $(pkg_config "$libraries/pkgconfig" --cflags --libs otel) "-Wl,-rpath,$libraries"
        OTEL_TRACES_EXPORTER=none env -u LD_LIBRARY_PATH "$out/hello-$cxx" || die "hello.cpp failed"
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
    quietly "$out/build.log" cmake --build "$out" -j 2 --target "${targets[@]}"
}

# A project that contains otel-c says which kind of library it wants, ON or OFF, and installs it with
# one of its own; another project finds both.
build_in_project() {
    build_with_cmake "$(pwd)/tests/package/subdirectory" -DOTEL_SOURCES="$(pwd)" -DKIND= \
        -DBUILD_SHARED_LIBS="$1" -DCMAKE_INSTALL_LIBDIR=lib
    quietly "$out/install.log" cmake --install "$out" --prefix "$out/prefix"
    env -u LD_LIBRARY_PATH "$out/consumer" || die "the consumer in the project ran and failed"
    other=$(find "$out/prefix" -name "libotel*.$2")
    [[ -z $other ]] || die "BUILD_SHARED_LIBS=$1 installs ${other##*/}"
    while IFS= read -r library; do
        ! readelf -dW "$library" | grep -E 'RPATH|RUNPATH' || die "${library##*/} has a path for libraries"
    done < <(find "$out/prefix" -name 'libotel*.so')
    local installed=$out/prefix
    out=$out/outer
    mkdir "$out"
    build_with_cmake "$(pwd)/tests/package/outer" -DOTEL_SOURCES="$(pwd)" \
        -DCMAKE_PREFIX_PATH="$installed"
    # shellcheck disable=SC2046
    quietly "$work/$way.log" "$compiler" -o "$out/by-pkg-config" "$consumer/main.c" \
        $(pkg_config "$installed/lib/pkgconfig" --cflags --libs otel)
    export LD_LIBRARY_PATH=$installed/lib
    "$out/counts" || die "the traced library failed"
    "$out/by-pkg-config" || die "the consumer that pkg-config built failed"
}

# build_with_lto COMPILER LINKER-OPTION: in a project that is optimised when it is linked, with both
# kinds of libraries; by the flag that people set, and by what CMake has for it.
build_with_lto() {
    local compiler=$1 ipo=ON
    need "$compiler"
    [[ $compiler == gcc ]] || ipo=OFF # which would want another ar
    targets=(consumer)
    build_with_cmake "$(pwd)/tests/package/subdirectory" -DOTEL_SOURCES="$(pwd)" -DKIND= \
        -DCMAKE_C_FLAGS=-flto -DCMAKE_EXE_LINKER_FLAGS="$2" -DCMAKE_SHARED_LINKER_FLAGS="$2" \
        -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=$ipo
    env -u LD_LIBRARY_PATH "$out/consumer" || die "the consumer of shared libraries failed"
    quietly "$out/configure.log" cmake "$out" -DKIND=_static
    quietly "$out/build.log" cmake --build "$out" -j 2 --target consumer
}

# cgo takes the flags of pkg-config only where it knows them.
build_with_cgo() {
    local libraries
    need go
    libraries=$(library_directory "$moved")
    # go's cache does not look at what pkg-config answers: the source has to be another one.
    {
        printf '// %s\n' "$(pkg_config "$libraries/pkgconfig" --cflags --libs otel)"
        cat tests/package/go/main.go
    } >"$out/main.go"
    quietly "$out/build.log" env PKG_CONFIG_LIBDIR="$libraries/pkgconfig" CC="$compiler" \
        go build -o "$out/consumer" "$out/main.go"
    LD_LIBRARY_PATH=$libraries OTEL_TRACES_EXPORTER=none "$out/consumer" ||
        die "the program in Go failed"
    exit 0
}

# Where otel-c does not run, one sentence says so: for 32 bits, and for a processor it does not know.
refuse_elsewhere() {
    local flags
    for flags in -m32 -U__x86_64__\ -U__aarch64__; do
        rm -rf "$out"
        mkdir "$out"
        ! cmake -S . -B "$out" -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY \
            -DCMAKE_C_FLAGS="$flags" >"$out/said" 2>&1 || die "$flags: is configured"
        grep -q 'otel-c is for Linux on x86-64 and AArch64' "$out/said" ||
            die "$flags: $(cat "$out/said")"
    done
    exit 0
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
    targets=(consumer)
    build_with_cmake "$(pwd)/tests/package/subdirectory" -DOTEL_SOURCES="$(pwd)" -DKIND=_static
    ;;
lto_gcc) build_with_lto gcc "" ;;
lto_clang)
    lld=$(llvm ld.lld)
    need "$lld"
    build_with_lto "$(llvm clang)" "-fuse-ld=${lld#ld.}"
    ;;
cgo) build_with_cgo ;;
elsewhere) refuse_elsewhere ;;
subdirectory_static) build_in_project OFF so ;;
subdirectory_shared) build_in_project ON a ;;
oldest_cmake)
    # scripts/setup.sh --interop brings it.
    peers=$(cache_dir)/peers-$(sha256sum <tests/interop/requirements.txt | cut -c 1-12)
    PATH=$(echo "$peers"/lib/python3*/site-packages/cmake/data/bin):$PATH
    need "${PATH%%:*}/cmake"
    for preset in dev asan; do
        quietly "$work/$way.log" cmake --preset "$preset" -B "$out/$preset"
    done
    targets=(consumer)
    build_with_cmake "$(pwd)/tests/package/subdirectory" -DOTEL_SOURCES="$(pwd)" -DKIND=_static
    ;;
*) die "no such way" ;;
esac

[[ $way == subdirectory_shared ]] || unset LD_LIBRARY_PATH
"$out/consumer" || die "the consumer ran and failed"
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
# Only otel-view, tests and benchmarks decode with protobuf-c.
! readelf -dW "$out/consumer" | grep protobuf-c || die "the consumer needs protobuf-c"
case $way in
pkgconfig | cmake | subdirectory_shared)
    [[ -n $needed ]] || die "the consumer is not linked with the shared libraries"
    # A new minor version may break its users before 1.0, so it has another name.
    ! grep -vE '\.so\.(0\.[0-9]+|[1-9][0-9]*)$' <<<"$needed" || die "not the name of a 0.x library"
    ;;
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

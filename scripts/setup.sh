#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Gets a machine ready to build and test otel-c. Made for Debian 12; every step
# does only what is still missing, so running it again costs next to nothing.
#
#   --build-deps  Debian packages that a build of the library needs: compilers,
#                 CMake and Ninja, and the libraries it is made with (libck,
#                 libcurl, zlib, libzstd; libdw for otel-functions; libfyaml for otel-config;
#                 libmicrohttpd for otel-view and the examples, protobuf-c and nghttp2 for otel-view,
#                 OpenSSL for certificates of tests)
#   --bench-deps  the same, and what the benchmarks work with (SQLite, zlib)
#   --server-deps what the benchmarks of servers work with: nginx with its headers, wrk, perf, and
#                 the libraries that redis is built with
#   --plot-deps   what draws their figures (gnuplot, jq)
#   --test-deps   those that a build needs, and what the first tier of scripts/test.sh uses: cmocka
#                 (unit tests), Python with protobuf (an independent decoder), and --bench-deps
#   --full-deps   all of the above, and what the other steps of scripts/test.sh use: Doxygen, clang 14
#                 (OTEL_LLVM_VERSION) with its tools and runtime (sanitizers, fuzzing, lint,
#                 format), tcc, valgrind, Spin, gdb, libabigail, man, Go (pprof), nginx with its headers, wrk,
#                 the libraries that redis is built with
#   --aarch64     what builds and runs the tests of aarch64.*: a compiler for that processor, QEMU's
#                 emulator of programs, and the libraries those tests are linked with
#   --collector   the OpenTelemetry Collector, made with its own builder from
#                 scripts/receivers/otelcol-builder.yaml
#   --interop     OpenTelemetry's Python SDK, for tests/interop, and gRPC for a receiver
#                 of tests/blackbox, in a virtual environment; the versions are in
#                 tests/interop/requirements.txt
#   --rotel       Rotel, a second OTLP receiver, which is stricter than the
#                 Collector (it refuses strings that are not UTF-8)
#   --collector-contrib
#                 another Collector, with what examples/collector needs, from
#                 scripts/receivers/otelcol-contrib-builder.yaml; large, so it is
#                 not part of --all
#
# The two receivers are programs the tests send spans to. They are kept in a
# cache outside of any build tree and their paths are printed on stdout;
# everything else this script says goes to stderr.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/lib.sh
source "$here/lib.sh"

readonly llvm=${OTEL_LLVM_VERSION:-14}
readonly build_packages=(
    gcc g++ libc6-dev make cmake ninja-build pkg-config
    libck-dev libprotobuf-c-dev libcurl4-openssl-dev
    zlib1g-dev libzstd-dev libmicrohttpd-dev libnghttp2-dev libssl-dev libdw-dev libfyaml-dev
    ca-certificates
)
readonly bench_packages=(libsqlite3-dev)
readonly server_packages=(
    nginx-dev wrk linux-perf python3
    dpkg-dev patch libhiredis-dev libjemalloc-dev liblua5.1-0-dev liblzf-dev lua-bitop-dev lua-cjson-dev # redis
)
readonly plot_packages=(gnuplot-nox jq)
readonly test_packages=(
    libcmocka-dev protobuf-compiler git python3 python3-protobuf python3-venv
)
readonly full_packages=(
    doxygen man-db
    "clang-$llvm" "clang-tidy-$llvm" "clang-format-$llvm" "libclang-rt-$llvm-dev" "lld-$llvm"
    "python3-clang-$llvm"
    valgrind tcc spin gdb luajit rustc abigail-tools curl
)

# The compiler comes with its C library; the rest is of the other architecture, for which nothing
# is installed: those packages are only unpacked.
readonly cross_packages=(gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
readonly aarch64_list=$here/aarch64-packages.txt

readonly all_packages=(
    "${build_packages[@]}" "${bench_packages[@]}" "${plot_packages[@]}" "${test_packages[@]}"
    "${server_packages[@]}" "${full_packages[@]}"
)

readonly collector_manifest=$here/receivers/otelcol-builder.yaml
readonly contrib_manifest=$here/receivers/otelcol-contrib-builder.yaml
readonly collector_needs_go=1.25  # the "go" line of the builder's go.mod
readonly go_toolchain=go1.25.14   # fetched where the machine's Go is older

cache=$(cache_dir)
[[ $cache == /* ]] || cache=$PWD/$cache
readonly cache
work= # this run's temporary directory, if any

usage() {
    cat <<END
usage: scripts/setup.sh OPTION...

  --build-deps  install the Debian packages that a build needs
  --bench-deps  the same, and those that the benchmarks need
  --server-deps those that the benchmarks of servers need
  --plot-deps   those that draw the figures of the benchmarks
  --test-deps   those that a build needs, and those of the first tier of scripts/test.sh
  --full-deps   all of these, and those of all its other steps
  --aarch64     install what builds and runs tests for that processor, and print the path of
                the libraries they are linked with
  --collector   build the OpenTelemetry Collector and print its path
  --rotel       fetch the Rotel receiver and print its path
  --interop     install the peers of the tests that are Python and print the path of theirs
  --all         all of the above
  --collector-contrib
                build the collector that examples/collector is for and print its path
  --help        print this

Packages are installed through apt-get, as root or with sudo, only if some are
missing. The receivers are kept in $cache
(set OTEL_C_CACHE to have them elsewhere), with the logs in logs/ there.
END
}

# --- Debian packages ---------------------------------------------------------

# Prints those of the named packages that are not installed.
missing_packages() {
    local installed package
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null) || true
    for package in "$@"; do
        grep -qxF "installed $package" <<<"$installed" || printf '%s\n' "$package"
    done
}

# Whether apt-get has reached no server, by its logs.
is_offline() {
    grep -qE 'Temporary failure resolving|Could not (resolve|connect)|Unable to connect|Cannot initiate the connection|Connection (failed|timed out|refused)|[Nn]etwork is unreachable|No route to host' "$@"
}

# install_packages PACKAGE…: those of them that are missing.
install_packages() {
    local missing prefix run_quiet_lines=5
    local updated=$cache/logs/apt-update.log installed=$cache/logs/apt-install.log
    if ! command -v apt-get >/dev/null; then
        die "this is no Debian-like system; install what provides these Debian packages: $*"
    fi
    mapfile -t missing < <(missing_packages "$@")
    [[ ${#missing[@]} -gt 0 ]] || return 0
    prefix=$(need_root_prefix "installing ${missing[*]}")
    # Lists that could be refreshed only in part are often good enough.
    run_quiet "updating apt's package lists" "$updated" \
        ${prefix:+"$prefix"} apt-get -q update || say "going on with the package lists there are"
    say "installing ${missing[*]}"
    forbid_servers "$prefix"
    run_quiet "installing packages" "$installed" \
        ${prefix:+"$prefix"} env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        --no-install-recommends -o DPkg::Lock::Timeout=300 install "${missing[@]}" && return
    ! is_offline "$updated" "$installed" ||
        die "the servers of Debian packages cannot be reached: connect this machine to a network, or set http_proxy, or install these in another way: ${missing[*]}"
    die "apt-get could not install ${missing[*]}; see $installed"
    allow_servers
}

# While packages are installed, those with a server, such as nginx, do not start it. Debian's
# way to say so is a script of this name, which packages ask; a machine that has one keeps it.
readonly policy=/usr/sbin/policy-rc.d
our_policy= # how it is removed, if it is ours

# forbid_servers PREFIX
forbid_servers() {
    [[ ! -e $policy ]] || return 0
    our_policy="${1:+$1 }rm -f $policy"
    printf '#!/bin/sh\nexit 101\n' | ${1:+"$1"} tee "$policy" >/dev/null
    ${1:+"$1"} chmod 755 "$policy"
}

allow_servers() {
    $our_policy
    our_policy=
}

# --- The cache ---------------------------------------------------------------

remove_work() {
    [[ -z $work ]] || rm -rf "$work"
    work=
}
trap 'remove_work; allow_servers' EXIT

# provide NAME FILE MAKE
# Prints the path of FILE in the cache's directory NAME. If it is not there yet,
# the function MAKE, called in $work, has to leave it as out/FILE; that directory
# is then renamed, so what is in the cache is always whole. One run at a time
# does this.
provide() {
    local name=$1 file=$2 make=$3 lock
    if [[ ! -x $cache/$name/$file ]]; then
        mkdir -p "$cache/logs" || die "cannot create $cache; set OTEL_C_CACHE to a directory that can be written"
        exec {lock}>"$cache/$name.lock"
        if ! flock -n "$lock"; then
            say "waiting for another run that is making $name"
            flock "$lock"
        fi
        [[ -x $cache/$name/$file ]] || make_in_cache "$name" "$make"
        exec {lock}>&-
    fi
    printf '%s\n' "$cache/$name/$file"
}

make_in_cache() {
    local name=$1 make=$2
    rm -rf "$cache/.making-$name."* "${cache:?}/$name" # left by a killed run
    work=$(mktemp -d "$cache/.making-$name.XXXXXX")
    mkdir "$work/out"
    (
        cd "$work"
        "$make"
    )
    chmod 755 "$work/out"
    mv -T "$work/out" "$cache/$name"
    remove_work
}

# --- Libraries for AArch64 ----------------------------------------------------

# A directory for each list of them, and release they are of; cmake/OtelAarch64.cmake knows its name
# too.
aarch64_name() {
    printf 'aarch64-%s-%.12s\n' "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" \
        "$(sha256sum <"$aarch64_list")"
}

# Tests are linked with these. apt gets lists of its own for them, so that the machine's
# packages stay of one architecture. Debian's ck_md.h differs between the two: the tree's own
# comes from here too.
make_aarch64() {
    local log=$cache/logs/aarch64.log package packages
    mapfile -t packages < <(grep -v '^#' "$aarch64_list")
    local apt=(apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64
        -o "Dir::State::Lists=$work/lists" -o Dir::State::status=/dev/null -o "Dir::Cache=$work/cache"
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o Acquire::Languages=none
        -o "APT::Sandbox::User=")
    mkdir -p lists/partial cache/archives/partial
    run_quiet "reading apt's package lists for AArch64" "$log" "${apt[@]}" update ||
        say "going on with the package lists there are"
    run_quiet "fetching ${packages[*]} for AArch64" "$log" \
        "${apt[@]}" download "${packages[@]}" ||
        die "apt-get could not fetch ${packages[*]}; see $log"
    for package in ./*.deb; do
        dpkg-deb --extract "$package" out
    done
    [[ -e out/usr/include/ck_md.h && -e out/usr/lib/aarch64-linux-gnu/libcmocka.so ]] ||
        die "what apt-get fetched for AArch64 is not what the tests are linked with"
}

# --- The OpenTelemetry Collector ---------------------------------------------

collector_version() {
    sed -n 's/^  version: *\([0-9.]*\).*/\1/p' "$collector_manifest"
}

# Is the Go on the PATH there, and new enough for the collector?
go_is_new_enough() {
    local version
    version=$(cd / && GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || return 1
    printf '%s\n' "$collector_needs_go" "${version#go}" | sort -V -C
}

# Puts a Go that can build the collector on the PATH. An older one, such as
# Debian 12's 1.19, cannot build it but can fetch a newer one as a module.
find_go() {
    ! go_is_new_enough || return 0
    command -v go >/dev/null || install_packages golang-go
    local module dir
    export GOTOOLCHAIN=local
    unset GOROOT
    module=golang.org/toolchain@v0.0.1-$go_toolchain.linux-$(go env GOARCH)
    dir=$(go env GOMODCACHE)/$module
    run_quiet "fetching $go_toolchain" "$cache/logs/go-toolchain.log" go mod download "$module" ||
        die "$go_toolchain could not be fetched as a Go module; see $cache/logs/go-toolchain.log"
    finish_toolchain "$dir"
    PATH=$dir/bin:$PATH
    go_is_new_enough || die "the Go in $dir does not work; try: $dir/bin/go version"
}

# A module holds neither executables nor nested go.mod files. A Go that knows
# about toolchains sets this right after unpacking one; do the same.
finish_toolchain() {
    local dir=$1 file parent
    while read -r file; do
        parent=${file%/*}
        [[ ! -e $parent/go.mod ]] || continue
        chmod u+w "$parent"
        cp "$file" "$parent/go.mod"
        chmod u-w "$parent"
    done < <(find "$dir" -name _go.mod)
    find "$dir/pkg/tool" "$dir/bin" -type f -exec chmod a+x {} +
}

make_collector() { build_collector "$collector_manifest"; }
make_contrib() { build_collector "$contrib_manifest"; }

# A directory for each manifest: which components there are is not in the version.
contrib_name() {
    printf 'contrib-otelcol-%.12s\n' "$(sha256sum <"$contrib_manifest")"
}

# build_collector MANIFEST
build_collector() {
    local manifest=$1 version
    version=$(collector_version)
    unset GOOS GOARCH
    find_go
    # The compiler's cache goes away with $work; the modules stay in Go's own
    # cache. The settings are those the builder compiles with, so that it and
    # the collector share what has been compiled of the standard library.
    export GOCACHE=$work/gocache GOBIN=$work/bin TMPDIR=$work/tmp
    export CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off GOFLAGS=-buildvcs=false
    mkdir "$TMPDIR"
    run_quiet "building the collector's builder $version" "$cache/logs/otelcol-builder.log" \
        go install -trimpath "go.opentelemetry.io/collector/cmd/builder@v$version" ||
        die "the collector's builder could not be built; see $cache/logs/otelcol-builder.log"
    run_quiet "building the collector $version (takes some minutes)" "$cache/logs/otelcol.log" \
        "$GOBIN/builder" --ldflags "-s -w" --config "$manifest" ||
        die "the collector could not be built; see $cache/logs/otelcol.log"
    mv otelcol/otelcol out/otelcol
    out/otelcol --version >>"$cache/logs/otelcol.log" 2>&1 ||
        die "the collector was built but does not start; see $cache/logs/otelcol.log"
}

# --- Rotel -------------------------------------------------------------------

# Version, npm package and the SHA-512 of its archive, for this machine.
rotel_package() {
    case $(uname -m) in
    x86_64)
        printf '%s\n' 0.0.8-alpha @streamfold/rotel-linux-x64 \
            fccdfbd97eb1c6552728e30744708cef97f76a38c784fbf838e6655e5a9aeadacbae1f0cc509216e4e95e87ae075e618b8d8c8e729f9f09207ef4fb58898ab13
        ;;
    aarch64)
        printf '%s\n' 0.0.6-alpha @streamfold/rotel-linux-arm64 \
            d0152b049bc929fb4862227f92730c49bb7285534381039931491a88ffd651fd0ff4f8e0c733e37f73c4ee8502f46a0e49d66cebaa82bdfdca0aaccedfe279d7
        ;;
    *)
        die "there is no Rotel for $(uname -m)"
        ;;
    esac
}

# Rotel comes as a ready-made binary in npm packages; npm only fetches the
# archive, nothing is installed and no script of the package is run.
make_rotel() {
    local about version package sum log=$cache/logs/rotel.log
    about=$(rotel_package)
    { read -r version; read -r package; read -r sum; } <<<"$about"
    command -v npm >/dev/null || install_packages npm
    run_quiet "fetching Rotel $version" "$log" \
        npm pack --ignore-scripts --no-update-notifier --cache "$work/npm" "$package@$version" ||
        die "npm could not fetch $package@$version; see $log"
    echo "$sum  $(echo ./*.tgz)" | sha512sum --check --status - ||
        die "what npm fetched as $package@$version is not the archive this script was written for"
    tar -xzf ./*.tgz package/bin/rotel-agent
    install -m 755 package/bin/rotel-agent out/rotel-agent
    out/rotel-agent --help >>"$log" 2>&1 ||
        die "Rotel was fetched but does not start (it needs glibc 2.34 or newer); see $log"
}

# --- The peers of tests/interop ----------------------------------------------

readonly peers_requirements=$here/../tests/interop/requirements.txt

# A directory for each set of versions; tests/interop/peers.py knows its name too.
peers_name() {
    printf 'peers-%.12s\n' "$(sha256sum <"$peers_requirements")"
}

make_peers() {
    local log=$cache/logs/peers.log python=/usr/bin/python3
    "$python" -c 'import ensurepip' 2>/dev/null || install_packages python3-venv
    "$python" -m venv out
    run_quiet "fetching the peers of tests/interop" "$log" \
        out/bin/python -m pip install --disable-pip-version-check --no-deps \
        --requirement "$peers_requirements" ||
        die "pip could not fetch what $peers_requirements names; see $log"
    out/bin/python -c 'import opentelemetry.sdk.trace, opentelemetry.propagators.b3, grpc' ||
        die "the peers were fetched but cannot be imported"
}

# --- The command line --------------------------------------------------------

main() {
    local packages=() collector=false contrib=false rotel=false interop=false about
    local aarch64=false go=false
    [[ $# -gt 0 ]] || { usage >&2; exit 2; }
    while [[ $# -gt 0 ]]; do
        case $1 in
        --build-deps) packages+=("${build_packages[@]}") ;;
        --bench-deps) packages+=("${build_packages[@]}" "${bench_packages[@]}") ;;
        --plot-deps) packages+=("${plot_packages[@]}") ;;
        --test-deps) packages+=("${build_packages[@]}" "${bench_packages[@]}" "${test_packages[@]}") ;;
        --server-deps) packages+=("${server_packages[@]}") ;;
        --full-deps) packages+=("${all_packages[@]}") go=true ;;
        --aarch64) aarch64=true ;;
        --collector) collector=true ;;
        --collector-contrib) contrib=true ;;
        --rotel) rotel=true ;;
        --interop) interop=true ;;
        --all)
            packages+=("${all_packages[@]}")
            go=true aarch64=true collector=true rotel=true interop=true
            ;;
        --help | -h) usage; exit 0 ;;
        *) say "unknown option: $1"; usage >&2; exit 2 ;;
        esac
        shift
    done
    # On such a machine the tests themselves are what these stand for.
    [[ $(uname -m) != aarch64 ]] || aarch64=false
    ! $aarch64 || packages+=("${cross_packages[@]}")
    # Go's pprof reads profiles in a test; any Go has it.
    if $go && ! command -v go >/dev/null && [[ ! -x /usr/local/go/bin/go ]]; then
        packages+=(golang-go)
    fi
    if [[ ${#packages[@]} -gt 0 ]]; then
        install_packages "${packages[@]}"
    fi
    if $aarch64; then
        provide "$(aarch64_name)" usr make_aarch64
    fi
    if $collector; then
        provide "otelcol-$(collector_version)" otelcol make_collector
    fi
    if $contrib; then
        provide "$(contrib_name)" otelcol make_contrib
    fi
    if $rotel; then
        about=$(rotel_package)
        provide "rotel-${about%%$'\n'*}" rotel-agent make_rotel
    fi
    if $interop; then
        provide "$(peers_name)" bin/python make_peers
    fi
}

main "$@"

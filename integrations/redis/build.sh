#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds a redis that traces, from Debian's source and otel.patch; otel-c is what pkg-config finds.
#
#   integrations/redis/build.sh FOLDER [COMPILER-OPTION...]
#
# leaves redis-server, redis-cli and redis-benchmark in FOLDER, unless they are there. The source is
# that of Debian 12's package, which apt-get fetches without root and without `deb-src` in the
# machine's lists, or a copy of the folder that REDIS_SOURCE names. REDIS_BARE=1 leaves the patch
# out, to compare. Status 3: there is no source.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1:?where to build}
shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
readonly source=$folder/redis log=$folder/build.log

die() {
    printf 'build.sh: %s\n' "$1" >&2
    exit "${2:-1}"
}

# The machine's own lists, as lists of sources in a folder of their own.
fetch_source() {
    local apt=$folder/apt file
    rm -rf "$apt"
    mkdir -p "$apt/lists/partial" "$apt/parts" "$apt/source"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
        [[ ! -f $file ]] || sed -E 's/^Types: .*/Types: deb-src/; s/^deb /deb-src /' "$file" \
            >"$apt/parts/debian.${file##*.}"
    done
    cd "$apt/source"
    set -- -q -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$apt/parts" \
        -o "Dir::State::Lists=$apt/lists" -o Acquire::Languages=none -o APT::Sandbox::User=
    { apt-get "$@" update && apt-get "$@" source redis; } >"$log" 2>&1 || { tail -5 "$log" >&2; return 1; }
    mv redis-*/ "$source"
    cd "$folder"
    rm -rf "$apt"
}

if [[ ! -f $folder/is-patched || $here/otel.patch -nt $folder/is-patched ]]; then
    rm -rf "$source"
    if [[ -n ${REDIS_SOURCE:-} ]]; then
        cp -r "$REDIS_SOURCE" "$source"
    else
        fetch_source || die "apt-get cannot fetch Debian's source of redis; REDIS_SOURCE names a folder with it" 3
    fi
    [[ -n ${REDIS_BARE:-} ]] || patch -p1 -d "$source" <"$here/otel.patch" >"$log" ||
        die "otel.patch is for redis 7.0.15 as Debian 12 has it, see $log"
    touch "$folder/is-patched"
fi
[[ ! $folder/redis-benchmark -nt $folder/is-patched ]] || exit 0 # redis's make would build all again

# The libraries are Debian's where Debian's changes are in the source, as in its package.
options=(OPTIMIZATION=-O2 "CFLAGS=$*" "LDFLAGS=$*")
[[ ! -d $source/debian ]] || options=(
    OPTIMIZATION=-O2 "CFLAGS=-I/usr/include/liblzf $*" "LDFLAGS=-Wl,-no-as-needed -ldl -latomic -llzf $*"
    USE_JEMALLOC=yes USE_SYSTEM_JEMALLOC=yes)
[[ "$*" != *-fsanitize* ]] || options+=(USE_JEMALLOC=no) # a sanitizer has its own malloc
make -C "$source/src" -j"$(nproc)" "${options[@]}" redis-server redis-cli redis-benchmark >"$log" 2>&1 ||
    { tail "$log" >&2; exit 1; }
cp "$source"/src/redis-{server,cli,benchmark} "$folder/"

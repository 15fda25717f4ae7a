#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The shared libraries need libc, libcurl, zlib and, where it was built in, libzstd
# (and otel-functions libdw and libelf, and otel-config libfyaml) and nothing else, are
# sealed after relocation, can be unloaded, and are small.
#
#   needed.sh DIRECTORY [KIB]    all of them stripped together, at most KIB (592), but for
#                                otel-config, which has 96 of its own, and otel-profiling,
#                                which has 256
#
# spec: Q2
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

build=${1:?the build directory}
limit=${2:-592}
need readelf strip

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
total=0
for library in "$build"/libotel*.so; do
    name=${library##*/}
    dynamic=$(readelf -dW "$library")
    while read -r other; do
        case $name:$other in
        *:libc.so.6 | *:libpthread.so.0 | *:ld-linux-*) ;;
        *:libotel-api.so.* | *:libotel-sdk.so.* | *:libotel-otlp.so.*) ;;
        libotel-functions.so:libdw.so.1 | libotel-functions.so:libelf.so.1) ;;
        libotel-config.so:libotel.so.* | libotel-config.so:libfyaml.so.0) ;;
        libotel-profiling.so:libz.so.1 | libotel-profiling.so:libgcc_s.so.1) ;; # exceptions
        libotel-otlp.so:libcurl.so.4 | libotel-otlp.so:libz.so.1 | libotel-otlp.so:libzstd.so.1) ;;
        *) wrong "$name: needs $other" ;;
        esac
    done < <(sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' <<<"$dynamic")
    grep -q 'BIND_NOW\|FLAGS.*NOW' <<<"$dynamic" || wrong "$name: not linked with -z now"
    case $name in # the others pin themselves while they have to stay
    libotel-functions.so* | libotel-profiling.so*) grep -q NODELETE <<<"$dynamic" || wrong "$name: without -z nodelete" ;;
    *) ! grep -q NODELETE <<<"$dynamic" || wrong "$name: linked with -z nodelete" ;;
    esac
    ! grep -q TEXTREL <<<"$dynamic" || wrong "$name: has text relocations"
    segments=$(readelf -lW "$library")
    grep -q GNU_RELRO <<<"$segments" || wrong "$name: not linked with -z relro"
    ! grep -qE 'GNU_STACK.*E' <<<"$segments" || wrong "$name: asks for an executable stack"
    strip -o "$work/$name" "$library"
    size=$(stat -c %s "$work/$name")
    case $name in # only where somebody wants a file
    libotel-config.so*) [[ $size -le 98304 ]] || wrong "$name: has $size bytes, more than 96 KiB" ;;
    libotel-profiling.so*) # half of it is trampolines, with what unwinders want to know of them
        [[ $size -le 262144 ]] || wrong "$name: has $size bytes, more than 256 KiB" ;;
    *) total=$((total + size)) ;;
    esac
done
kib=$(((total + 1023) / 1024))
[[ $kib -gt 0 ]] || wrong "$build: no libraries"
[[ $kib -le $limit ]] || wrong "the libraries have $kib KiB together, more than $limit"

finish "$kib KiB of $limit"

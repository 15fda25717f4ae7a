#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the scripts say on a machine without a network, and about a build tree that was copied. What
# they would run (apt-get, dpkg-query, sudo) is made here.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/tree/build"
cp -r scripts "$work/tree"
export PATH=$work/bin:$PATH OTEL_C_CACHE=$work/cache

# command NAME LINE...: a program of that name.
command_of() {
    printf '%s\n' '#!/bin/sh' "${@:2}" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

# says STATUS LAST-LINE COMMAND...: the status, and a pattern for all of its last line of output.
says() {
    local status=0 output
    output=$("${@:3}" 2>&1 </dev/null) || status=$?
    [[ $status -eq $1 && ${output##*$'\n'} =~ ^$2$ ]] || wrong "$3: status $status, $output"
    [[ $(wc -l <<<"$output") -le 20 ]] || wrong "$3: more than 20 lines"
}

command_of sudo 'exec "$@"'
command_of dpkg-query
command_of apt-get \
    'for i in 1 2 3 4 5 6 7 8 9; do echo "W: Failed to fetch x  Temporary failure resolving x"; done' \
    'case $* in *update*) exit 0 ;; esac' 'echo "E: Unable to locate package gcc"; exit 100'
says 1 'setup.sh: the servers of Debian packages cannot be reached: connect this machine .*: gcc g\+\+ .*' \
    "$work/tree/scripts/setup.sh" --build-deps
says 1 'demo.sh: what the build needs could not be installed' "$work/tree/scripts/demo.sh"

command_of apt-get 'echo "E: Unable to locate package gcc"; exit 100'
says 1 'setup.sh: apt-get could not install gcc .*; see .*/apt-install.log' \
    "$work/tree/scripts/setup.sh" --build-deps

command_of dpkg-query 'for name; do echo "installed $name"; done'
printf '%s\n' "CMAKE_CACHEFILE_DIR:INTERNAL=$work/tree/elsewhere" \
    "CMAKE_HOME_DIRECTORY:INTERNAL=$work/tree" >"$work/tree/build/CMakeCache.txt"
says 1 'demo.sh: .*/build was made as .*/elsewhere, for the sources in .*, and cannot be used here: .*' \
    "$work/tree/scripts/demo.sh"
sed -i "s,/elsewhere,/build,; s,=$work/tree\$,=$work," "$work/tree/build/CMakeCache.txt"
says 1 'demo.sh: .*/build was made as .*/build, for the sources in .*, and cannot be used here: .*' \
    "$work/tree/scripts/demo.sh"
sed -i "s,=$work\$,=$work/tree," "$work/tree/build/CMakeCache.txt"
says 1 'demo.sh: CMake could not configure the build' "$work/tree/scripts/demo.sh"

finish "setup.sh and demo.sh"

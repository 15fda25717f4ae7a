# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Helpers that the scripts of this directory share. Source it from bash:
#
#   source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
#
#   say TEXT…              one progress line, to stderr
#   die TEXT…              say it and exit 1
#   cache_dir              prints where things fetched or built once are kept
#   need_root_prefix WHAT  prints "sudo", or nothing when already root
#   run_quiet LABEL LOG COMMAND…   runs a command that may take long
#   need_own_tree BUILD    dies if CMake has made this build tree elsewhere
#
# Results go to stdout, everything meant for a person to stderr.

say() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die() {
    say "$*"
    exit 1
}

# The directory for what is fetched or built once and serves every build tree.
# It may not exist yet.
cache_dir() {
    printf '%s\n' "${OTEL_C_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/otel-c}"
}

# need_root_prefix [WHAT]
# What to put before a command that needs root, so that WHAT can be done. Use it
# like this, for an empty prefix to be no word:
#   prefix=$(need_root_prefix "installing x")
#   ${prefix:+"$prefix"} apt-get …
need_root_prefix() {
    if [[ $EUID -eq 0 ]]; then
        return 0
    elif command -v sudo >/dev/null; then
        printf 'sudo\n'
    else
        die "${1:-this step} needs root: run the script as root, or install sudo"
    fi
}

# need_own_tree BUILD
# A build tree that was copied here, or whose sources were moved, is of no use to CMake, which says
# so in words of its own.
need_own_tree() {
    local cache=$1/CMakeCache.txt made sources
    [[ -e $cache ]] || return 0
    made=$(sed -n 's/^CMAKE_CACHEFILE_DIR:INTERNAL=//p' "$cache")
    sources=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache")
    [[ $made -ef $1 && $sources -ef $(dirname "${BASH_SOURCE[0]}")/.. ]] ||
        die "$1 was made as $made, for the sources in $sources, and cannot be used here: remove it and run this again"
}

# run_quiet LABEL LOG COMMAND…
# Runs COMMAND with its output in LOG (overwritten) and no input, says LABEL at
# the start and how long it has been at it every 15 s. When COMMAND fails, shows
# the last lines of LOG (run_quiet_lines, or 30) and returns COMMAND's status; the caller says what that
# means:   run_quiet "building x" "$log" make x || die "x could not be built"
# COMMAND may be a function, but errexit ("set -e") has no effect inside it.
run_quiet() {
    local label=$1 log=$2 ticker status=0
    shift 2
    if ! mkdir -p "$(dirname "$log")" || ! : >"$log"; then
        die "$label: there is no place for its output; is ${log%/*} yours?"
    fi
    say "$label"
    _run_quiet_tick "$label" "$SECONDS" &
    ticker=$!
    "$@" >"$log" 2>&1 </dev/null || status=$?
    kill "$ticker" 2>/dev/null || true
    wait "$ticker" 2>/dev/null || true
    if [[ $status -ne 0 ]]; then
        say "$label: failed with status $status; the end of $log:"
        tail -n "${run_quiet_lines:-30}" "$log" | sed 's/^/    | /' >&2
    fi
    return "$status"
}

# The progress lines of run_quiet. Ends when told to, or within a second of the
# script's end; its sleep must not keep the script's stdout and stderr open.
_run_quiet_tick() {
    local label=$1 start=$2 next=15 seconds
    while sleep 1 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        seconds=$((SECONDS - start))
        if ((seconds >= next)); then
            say "$label: $seconds s so far"
            next=$((next + 15))
        fi
    done
}

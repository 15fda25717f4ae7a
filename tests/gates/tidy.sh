#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# clang-tidy has nothing to say about our code (.clang-tidy chooses what it looks for).
#
#   tidy.sh BUILD [FILE...]    the sources that BUILD compiles, or some of them
#
# A file is looked at again when it, a header that it includes, its compiler's arguments or what is
# looked for has changed: what was found clean is remembered beside the other things that serve
# every build tree (scripts/lib.sh, cache_dir). The first time takes many minutes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source scripts/lib.sh

build=${1:?the build directory}
shift
tidy=$(llvm clang-tidy)
need "$tidy" python3
[[ -e $build/compile_commands.json ]] || wrong "$build: no compile_commands.json"

root=$(pwd)
wanted=("${@/#/$root/}")
stamps=$(cache_dir)/tidy
mkdir -p "$stamps"
find "$stamps" -ignore_readdir_race -type f -mtime +30 -delete # others do so meanwhile

# look_at BUILD STAMP FILE: what clang-tidy finds; the stamp is set if it is nothing. A database
# written by gcc may hold flags of its own. With OTELI_TSAN atomics are the compiler's, which the
# analyser understands; CK's are inline assembly, where it loses every pointer.
look_at() {
    local output status=0
    output=$("$tidy" --quiet -p "$1" --extra-arg=-Wno-unknown-warning-option \
        --extra-arg=-Wno-ignored-optimization-argument --extra-arg=-DOTELI_TSAN=1 "$3" 2>/dev/null) ||
        status=$?
    if ! grep -E "^$(pwd)/.*: (warning|error): " <<<"$output"; then
        if [[ $status -le 1 ]]; then # 1: there are flags of gcc that it does not know
            touch "$2"
        else
            printf '%s: clang-tidy ended with %d\n' "$3" "$status"
        fi
    fi
}
export tidy
export -f look_at

checked=0
due=()
while read -r number file; do
    [[ ${#wanted[@]} -eq 0 || " ${wanted[*]} " == *" $file "* ]] || continue
    checked=$((checked + 1))
    if [[ -e $stamps/$number ]]; then
        touch "$stamps/$number" # it is of use
    else
        due+=("$stamps/$number" "$file")
    fi
done < <(tests/gates/tidy_stamps.py "$build/compile_commands.json" .clang-tidy tests/.clang-tidy \
    "${BASH_SOURCE[0]}")
[[ $checked -ne 0 ]] || wrong "$build: no file to look at"

# One process a file, two at a time.
while IFS= read -r hit; do
    wrong "${hit#"$root/"}"
done < <(printf '%s\n' "${due[@]}" | BUILD=$build xargs -r -P "${TIDY_JOBS:-2}" -n 2 \
    bash -c '[[ $# -lt 2 ]] || look_at "$BUILD" "$1" "$2"' look_at | sort -u)

finish "$checked files, $((${#due[@]} / 2)) of them new"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# clang-tidy has nothing to say about our code (.clang-tidy chooses what it looks for).
#
#   tidy.sh BUILD [FILE...]    the sources that BUILD compiles, or some of them
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

build=${1:?the build directory}
shift
need clang-tidy-14
[[ -e $build/compile_commands.json ]] || wrong "$build: no compile_commands.json"

root=$(pwd)
if [[ $# -gt 0 ]]; then
    files=("${@/#/$root/}")
else
    mapfile -t files < <(sed -nE 's/^ *"file": "(.*)",?$/\1/p' "$build/compile_commands.json" |
        grep -F "$root/" | grep -vE '\.pb-c\.c$|/CMakeFiles/' | sort -u)
fi

# A file is looked at again when it, any header, or what is looked for has changed.
stamps=$build/tidy-clean
mkdir -p "$stamps"
everywhere=$({ c_files "${directories[@]}" proto | grep '\.h$' | xargs cat; cat .clang-tidy \
    tests/.clang-tidy "${BASH_SOURCE[0]}"; } | sha256sum)
stamp_of() {
    printf '%s/%s\n' "$stamps" "$({ printf '%s %s' "$1" "$everywhere"; cat "$1"; } | sha256sum | cut -c1-40)"
}
due=()
for file in "${files[@]}"; do
    [[ -e $(stamp_of "$file") ]] || due+=("$file")
done

# One process a file, two at a time; a database written by gcc may hold flags of its own.
# With OTELI_TSAN atomics are the compiler's, which the analyser understands; CK's are
# inline assembly, where it loses every pointer.
output=$(printf '%s\n' "${due[@]}" | xargs -r -P "${TIDY_JOBS:-2}" -n 1 clang-tidy-14 \
    --quiet -p "$build" --extra-arg=-Wno-unknown-warning-option \
    --extra-arg=-Wno-ignored-optimization-argument --extra-arg=-DOTELI_TSAN=1 2>/dev/null) || true
while IFS= read -r hit; do
    [[ -z $hit ]] || wrong "${hit#"$root/"}"
done < <(grep -E "^$root/.*: (warning|error): " <<<"$output" | sort -u || true)
if [[ $wrong_things -eq 0 ]]; then
    rm -f "$stamps"/*
    for file in "${files[@]}"; do
        touch "$(stamp_of "$file")"
    done
else
    # With something wrong in a header, which file it came from is not known: a file is
    # clean when nothing names it and nothing names a header.
    if ! grep -qE "^$root/.*\.h:[0-9]+:.*: (warning|error): " <<<"$output"; then
        for file in "${due[@]}"; do
            grep -qE "^$file:.*: (warning|error): " <<<"$output" || touch "$(stamp_of "$file")"
        done
    fi
fi

finish "${#files[@]} files, ${#due[@]} of them new"

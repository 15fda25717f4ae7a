# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the gates share. A gate runs in the root of the repository (or in OTEL_GATE_ROOT,
# for the test of the gates themselves), says each thing that is wrong in one line,
# `file:line: why`, and exits 1 if there was one.

set -euo pipefail
LC_ALL=C
export LC_ALL
cd "${OTEL_GATE_ROOT:-$(dirname "${BASH_SOURCE[0]}")/../..}"

wrong_things=0

wrong() {
    printf '%s\n' "$*" >&2
    wrong_things=$((wrong_things + 1))
}

# The last line of a gate: finish "what was checked".
finish() {
    if [[ $wrong_things -ne 0 ]]; then
        printf '%s: %d wrong\n' "${0##*/}" "$wrong_things" >&2
        exit 1
    fi
    printf '%s: ok, %s\n' "${0##*/}" "$*"
}

# need COMMAND...: without them the gate is skipped, but never in CI.
need() {
    local command
    for command in "$@"; do
        if ! command -v "$command" >/dev/null; then
            printf '%s: %s is not installed\n' "${0##*/}" "$command" >&2
            [[ -z ${CI:-} ]] || exit 1
            exit 77
        fi
    done
}

# llvm TOOL: what a tool of LLVM is called here, clang-14 for example. OTEL_LLVM_VERSION chooses
# another version; the plain name is taken where there is no such one.
llvm() {
    local name=$1-${OTEL_LLVM_VERSION:-14}
    command -v "$name" >/dev/null || name=$1
    printf '%s\n' "$name"
}

libraries=(otel-api otel-sdk otel-otlp otel otel-functions otel-config otel-profiling)

# objects_of BUILD LIBRARY: the objects that a library is made of, one a line. Below tests there are
# builds of tests, whose objects come and go.
objects_of() {
    local component
    declare -A components=([otel-api]="common api" [otel-sdk]="sdk memory trace console otlp_json file"
        [otel-otlp]="otlp proto" [otel]="start" [otel-functions]="functions"
        [otel-config]="config" [otel-profiling]="profiling")
    for component in ${components[$2]}; do
        find "$1" -path "$1/tests" -prune -o -path "$1/blackbox" -prune -o \
            -name '*.o' -path "*/otel-objects-$component.dir/*" -print
    done
}

# Directories with code of ours; library_directories are those that go into libraries.
library_directories=(common api sdk exporters functions config profiling)
directories=(include "${library_directories[@]}" integrations tools examples benchmarks tests)

# written_files DIRECTORY...: sources and headers in them that people wrote, one a line; c_files:
# those of C alone.
written_files() {
    local directory
    for directory in "$@"; do
        [[ ! -d $directory ]] || find "$directory" -type f -regex '.*\.\(c\|h\|cc\|[ch]pp\)' \
            ! -name '*.pb-c.[ch]' ! -path 'include/otel/semconv*.h'
    done | sort
}
c_files() {
    written_files "$@" | grep '\.[ch]$' || true
}

# Every file of ours that is text, also what is not compiled, as paths without "./". It does not go
# into build trees, where other tests make and remove directories meanwhile.
text_files() {
    find . \( -path './.git' -o -path './build*' -o -path './.cache' -o -name __pycache__ \) -prune \
        -o -type f ! -name '*.pb-c.[ch]' ! -name '*.proto' -print | sed 's|^\./||' | sort
}

# strip_comments DIRECTORY FILE...: copies below DIRECTORY of the files with comments and the text of
# strings blanked, lines kept, so that what greps for code finds neither prose nor messages. Include
# lines keep their names.
strip_comments() {
    local directory=$1
    shift
    [[ $# -ne 0 ]] || return 0
    printf '%s\n' "$@" | sed "s|[^/]*$||;s|^|$directory/|" | sort -u | xargs mkdir -p
    awk -v directory="$directory" '
    FNR == 1 {
        close(target)
        target = directory "/" FILENAME
        printf "" >target
        in_comment = 0
    }
    {
        out = ""; n = length($0); quote = ""
        keep_strings = $0 ~ /^[ \t]*#[ \t]*include/
        for (i = 1; i <= n; i++) {
            c = substr($0, i, 1); two = substr($0, i, 2)
            if (in_comment) { if (two == "*/") { in_comment = 0; i++ } }
            else if (quote != "") {
                if (c == "\\") i++
                else if (c == quote) { quote = ""; out = out c }
            }
            else if (two == "/*") { in_comment = 1; i++; out = out " " }
            else if (two == "//") break
            else { if (!keep_strings && (c == "\"" || c == "\047")) quote = c; out = out c }
        }
        print out >target
    }' "$@"
}

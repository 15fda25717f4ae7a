#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Can the gates fail? A small tree that breaks each rule once, line by line, and the
# complaints that must come of it. A rule that nothing here breaks is not tested.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

gates=$(pwd)/tests/gates
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
spdx='/* SPDX-License-Identifier: Apache-2.0 */'
expected=()

# plant FILE WHY CODE: a line of CODE in FILE that must be found, for a reason like WHY;
# with an empty WHY it must not be found.
plant() {
    mkdir -p "$tree/$(dirname "$1")"
    [[ -e $tree/$1 ]] || printf '%s\n' "$spdx" >"$tree/$1"
    printf '%s\n' "$3" >>"$tree/$1"
    [[ -z $2 ]] || expected+=("$1:$(wc -l <"$tree/$1"): .*$2")
}

# judge GATE ARGUMENT...: each expected complaint is there, once, and there is no other.
judge() {
    local gate=$1 output line pattern
    shift
    [[ $gate == *.py ]] || gate+=.sh
    if output=$(OTEL_GATE_ROOT=$tree "$gates/$gate" "$@" 2>&1); then
        wrong "$gate: is content with a tree that breaks its rules"
    fi
    for pattern in "${expected[@]}"; do
        [[ $(grep -cE "^$pattern" <<<"$output") -eq 1 ]] || wrong "$gate: does not say once: $pattern"
    done
    while IFS= read -r line; do
        for pattern in "${expected[@]}" "$gate: [0-9]+ wrong"; do
            [[ ! $line =~ ^$pattern ]] || continue 2
        done
        wrong "$gate: says besides: $line"
    done <<<"$output"
    rm -rf "${tree:?}"/*
    expected=()
}

plant include/otel/x.h "public headers" '#include "common/log.h"'
plant common/x.c "common knows nobody" '#include "api/record/line.h"'
plant common/x.c "" '#include "common/log.h" /* and "api/record/line.h" */'
plant api/x.c "api knows neither" '#include "sdk/pipeline/ring.h"'
plant sdk/x.c "sdk does not know" '#include "exporters/otlp/encode/batch_encoder.h"'
plant exporters/otlp/x.c "knows the public headers" '#include "sdk/pipeline/ring.h"'
plant exporters/otlp/x.c "knows the public headers" '#include "exporters/console/render.h"'
plant exporters/otel_start.c "goes through sdk" '#include "api/record/line.h"'
plant exporters/otel_start.c "" '#include "exporters/otlp/config.h"'
plant sdk/x.c "Concurrency Kit" '#include <ck_ring.h>'
plant sdk/x.c "Concurrency Kit" 'int a = ck_pr_load_32(&b);'
plant sdk/x.c "atomics" 'int a = __atomic_load_n(&b, __ATOMIC_RELAXED);'
plant sdk/x.c "" '__atomic_signal_fence(__ATOMIC_SEQ_CST);'
plant exporters/otlp/x.c "curl" '#include <curl/curl.h>'
plant exporters/otlp/transport/transport.c "" '#include <curl/curl.h>'
plant exporters/console/x.c "protobuf-c" '#include <protobuf-c/protobuf-c.h>'
plant sdk/x.c "environment" 'const char *home = getenv("HOME");'
plant common/config/env.c "" 'const char *home = getenv("HOME");'
plant sdk/x.c "" 'say("getenv(\"HOME\")"); /* getenv("HOME") */'
plant api/x.c "sdk/worker/helper_thread.c" 'pthread_create(&thread, NULL, run, NULL);'
plant api/x.c "common/log.h" 'fprintf(stderr, "hello");'
plant api/x.c "common/log.h" 'printf("hello");'
plant api/x.c "" 'snprintf(text, sizeof text, "stderr");'
plant sdk/x.c "signal handlers" 'sigaction(SIGTERM, &action, NULL);'
plant sdk/x.c "end the program" 'exit(1);'
plant sdk/x.c "starts no process" 'system("true");'
plant sdk/x.c "before main" '__attribute__((constructor)) static void before_main(void);'
plant functions/functions_start.c "" '__attribute__((constructor)) static void before_main(void);'
plant functions/x.c "functions knows" '#include "sdk/pipeline/ring.h"'
plant functions/x.c "elfutils" '#include <elfutils/libdwfl.h>'
plant functions/x.c "elfutils" 'Dwfl *dwfl = dwfl_begin(&callbacks);'
plant functions/symbols.c "" 'Dwfl *dwfl = dwfl_begin(&callbacks);'
plant sdk/x.c "back at unload" '__attribute__((destructor)) static void at_end(void);'
plant sdk/x.c "with threads" 'const char *why = strerror(errno);'
plant sdk/x.c "not bounded" 'strcpy(to, from);'
plant sdk/x.c "sleeps" 'usleep(1000);'
plant sdk/x.h "POSIX" 'typedef struct line line_t;'
plant sdk/x.h "begins with otel_" 'void line_free(struct line *line);'
plant sdk/x.h "" 'void oteli_line_free(struct line *line);'
plant include/otel/x.h "typed functions" '#define otel_set(x) _Generic((x), int: 1)'
plant sdk/x.c "same code" '#ifdef OTEL_TEST'
plant sdk/x.c "not included" '#include "sdk/y.c"'
plant sdk/x.c "O_CLOEXEC" 'int fd = open(path, O_RDONLY);'
plant sdk/x.c "" 'int fd = open(path, O_RDONLY | O_CLOEXEC);'
plant sdk/x.c "without CLOEXEC" 'int fd = eventfd(0, EFD_NONBLOCK);'
plant sdk/x.c "" 'int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);'
plant sdk/x.c "without CLOEXEC" 'int error = pipe(ends);'
plant tests/unit/x_test.c "neither sleeps" 'usleep(1000);'
judge layers

# times N LINE: the line, N times.
times() {
    for ((i = 0; i < $1; i++)); do printf '%s\n' "$2"; done
}

mkdir -p "$tree/common" "$tree/include/otel"
{ printf '%s\n' "$spdx" 'void long_one(void)' '{'; times 61 '    x++;'; printf '}\n'; } \
    >"$tree/common/function.c"
{ printf '%s\n' "$spdx" 'void right(void)' '{'; times 60 '    x++;'; printf '}\n'; } \
    >"$tree/common/function_ok.c"
{ printf '%s\n' "$spdx"; times 700 'int x;'; } >"$tree/common/file.c"
{ printf '%s\n' "$spdx"; times 300 'int x;'; } | tee "$tree/include/otel/header.h" >"$tree/include/otel/header.hpp"
printf 'int x;\n' >"$tree/common/licence.c"
{ printf '%s\n' "$spdx"; times 1 "/* $(times 95 x | tr -d '\n') */"; times 1 "   \"$(times 95 x | tr -d '\n')\""; } \
    >"$tree/common/columns.c"
expected=('common/function.c:3: 61 lines in long_one' 'common/file.c:701: 701 lines'
    'include/otel/header.h:301: 301 lines' 'include/otel/header.hpp:301: 301 lines'
    'common/licence.c:1: no SPDX'
    'common/columns.c:2: more than 100 columns')
judge sizes

plant notes.md "note to self" 'TODO: more of this'
plant notes.md "one machine" 'see /home/somebody/notes'
plant notes.md "" 'see docs/home/page and ~/.cache'
plant notes.md "unfinished merge" '<<<<<<< HEAD'
judge words

if command -v "$(llvm clang-format)" >/dev/null; then
    mkdir -p "$tree/common"
    cp .clang-format "$tree"
    printf '%s\nint  x;\n' "$spdx" >"$tree/common/spaces.c"
    printf '%s\nint  x;\n' "$spdx" >"$tree/common/spaces.cpp"
    printf '%s\nint x;\n' "$spdx" >"$tree/common/fine.c"
    printf 'trailing \n' >"$tree/notes.md"
    expected=('common/spaces.c:2.*: not formatted' 'common/spaces.cpp:2.*: not formatted' 'notes.md:1: trailing')
    judge format
fi

mkdir -p "$tree/docs"
cp README.md "$tree"
cp docs/PERFORMANCE.md docs/RELIABILITY.md "$tree/docs"
sed -i 's/A span takes [0-9]* ns/A span takes 1 ns/' "$tree/README.md"
expected=('README.md:1: does not say "\*\*A span takes [0-9]+ ns\*\*"')
judge figures

# Two files that call each other, two headers that include each other, and a call between rooms that
# the table does not have, or has.
objects=$tree/build/sdk/CMakeFiles/otel-objects-sdk.dir
mkdir -p "$tree/docs" "$tree/tests/gates" "$objects/lines"
touch "$tree/tests/gates/circles.list"
printf '| `%s` | `%s` | %s |\n' sdk/lines one.c '`sdk/stats`' sdk/stats stats.h '' api/spans none.h '' \
    >"$tree/docs/ARCHITECTURE.md"
plant sdk/lines/one.c "" 'void two(void); void one(void); void one(void) { two(); }'
plant sdk/lines/two.c "" 'void one(void); void two(void); void two(void) { one(); }'
plant sdk/lines/two.c "" '#include "sdk/stats/stats.h"'
plant sdk/stats/stats.h "" '#include "sdk/stats/rows.h"'
plant sdk/stats/rows.h "" '#include "sdk/stats/stats.h"'
plant sdk/stats/rows.h "" '#include "sdk/lines/lines.h"'
plant sdk/lines/lines.h "" 'int x;'
plant api/spans/span.h "" 'int x;'
for name in one two; do
    cc -std=c11 -x c -c -o "$objects/lines/$name.c.o" - < <(grep -v '#include' "$tree/sdk/lines/$name.c")
done
git -C "$tree" init -q
git -C "$tree" add .
expected=('a circle of files: sdk/lines/one.c sdk/lines/two.c$'
    'a circle of files: sdk/stats/rows.h sdk/stats/stats.h$'
    'sdk/stats/rows.h uses sdk/lines/lines.h \(#include\): sdk/stats may not'
    'api/spans: docs/ARCHITECTURE.md has no row that names a first file')
judge rooms.py "$tree/build"

finish "layers, sizes, words, format, figures and rooms find what was planted"

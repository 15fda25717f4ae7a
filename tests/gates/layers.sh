#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Who may know whom, and the one door to each thing outside: docs/ARCHITECTURE.md says
# why, this says whether. Comments and strings do not count.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Stripped copies of all library files, made once.
stripped=$(mktemp -d)
trap 'rm -rf "$stripped"' EXIT
mapfile -t files < <(c_files include "${library_directories[@]}")
strip_comments "$stripped" "${files[@]}"

# includes_only FILE ALLOWED WHY: what is included in $line, $name of it matches ALLOWED.
includes_only() {
    [[ $name =~ ^($2)$ ]] || wrong "$1:$line: includes $name: $3"
}

# door PATTERN ALLOWED WHY: only files that match ALLOWED have code that matches PATTERN.
door() {
    local pattern=$1 allowed=$2 why=$3 file line
    while IFS=: read -r file line _; do
        [[ $file =~ ^($allowed)$ ]] || wrong "$file:$line: $why"
    done < <(cd "$stripped" && grep -nHE -- "$pattern" "${files[@]}" || true)
}

# Each #include "..." and <otel/...>.
while IFS=: read -r file line name; do
    case $file in
    include/*) includes_only "$file" 'otel/.*' "public headers know only each other" ;;
    common/*) includes_only "$file" '(otel|common)/.*' "common knows nobody" ;;
    api/*) includes_only "$file" '(otel|common|api)/.*' "api knows neither sdk nor exporters" ;;
    sdk/*) includes_only "$file" '(otel|common|api|sdk)/.*' "sdk does not know exporters" ;;
    exporters/otel_start.[ch] | exporters/start_*.[ch]) includes_only "$file" '(otel|common|sdk|exporters)/.*' \
        "otel_start goes through sdk" ;;
    exporters/jaeger_sampler/*) includes_only "$file" '(otel|common|exporters/(otlp|jaeger_sampler))/.*|sdk/worker/helper_thread\.h' \
        "what asks a server without being asked itself has a helper of the SDK, and no more of it" ;;
    exporters/otlp/encode/*) includes_only "$file" '(otel|common|exporters/(json|otlp))/.*|sdk/pipeline/span_fields\.h' \
        "the encoder has the spans written by the SDK, and knows no more of it" ;;
    exporters/*)
        own=$(cut -d/ -f1-2 <<<"$file")
        includes_only "$file" "(otel|common|exporters/(json|trace)|$own)/.*" \
            "an exporter knows the public headers, common, exporters/json, exporters/trace and itself"
        ;;
    functions/*) includes_only "$file" '(otel|common|functions)/.*' \
        "functions knows the public headers, common and itself" ;;
    config/*) includes_only "$file" '(otel|common|config)/.*|exporters/(otlp/endpoint|otel_start)\.h|sdk/lifecycle/sdk_start\.h' \
        "config knows the public headers, common, OTLP's rules for endpoints, how to start, and itself" ;;
    profiling/otlp/*) includes_only "$file" '(otel|common|profiling)/.*|exporters/otlp/otlp_client\.h|exporters/start_otlp\.h|sdk/lifecycle/resource_snapshot\.h' \
        "profiles go the way of OTLP's requests" ;;
    profiling/*) includes_only "$file" '(otel|common|profiling)/.*|sdk/(lifecycle/lifecycle|lifecycle/resource_snapshot|worker/helper_thread)\.h|api/span/inspect\.h' \
        "profiling knows the public headers, common, itself, and what the API and the SDK lend" ;;
    esac
done < <(cd "$stripped" && grep -nHE '^[ \t]*#[ \t]*include[ \t]*["<]' "${files[@]}" |
    sed -nE 's/^([^:]*:[0-9]+:).*["<]([^">]+)[">].*/\1\2/p' |
    grep -E ':(otel|common|api|sdk|exporters|functions|config|profiling|proto|opentelemetry|tests|tools)/' || true)

nobody='-'
door '#[ \t]*include[ \t]*<ck_' 'common/base/atomic\.h' "Concurrency Kit is behind common/base/atomic.h"
door '\bck_[a-z]+_' 'common/base/atomic\.h' "Concurrency Kit is behind common/base/atomic.h"
door '\b__(sync_|atomic_([a-rt-z]|s[a-hj-z]))|stdatomic\.h' \
    'common/base/atomic\.h|include/otel/trace\.h' \
    "atomics are behind common/base/atomic.h"
door '<curl/|\bcurl_[a-z]+\(' 'exporters/otlp/transport/transport[a-z_]*\.[ch]' \
    "curl is behind exporters/otlp/transport/transport*.c"
door '<(zlib|zstd)\.h>|\b(deflate|inflate)[A-Z]?[a-zA-Z0-9]*[ ]*\(|\bZSTD_[a-z]' '(exporters/otlp/encode/compress|profiling/profile/pprof)\.c' \
    "zlib and libzstd are behind exporters/otlp/encode/compress.c and profiling/profile/pprof.c"
door 'pb-c\.h|<protobuf-c/|\bprotobuf_c_' "$nobody" \
    "protobuf-c is for proto, tools, tests and benchmarks"
door '<(elfutils/|libelf|gelf)|\b(dwfl|elf|gelf)_[a-z]+\(' 'functions/symbols\.c' \
    "elfutils is behind functions/symbols.c"
door '<libfyaml\.h>|\bfy_[a-z]+_' 'config/read/document\.c' "libfyaml is behind config/read/document.c"
door '\b(secure_)?getenv\b|\benviron\b|\bsetenv\b|\bputenv\b' 'common/config/env\.c' \
    "the environment is behind common/config/env.c"
door '\b(pthread|thrd)_create\b' 'sdk/worker/helper_thread\.c' "threads are made in sdk/worker/helper_thread.c"
door '\b(stdout|stderr)\b|\b(v?printf|puts|putchar|perror|psignal)[ ]*\(|\bSTD(OUT|ERR)_FILENO\b' \
    'common/log\.c|exporters/(console/[a-z_]+|file/file_sink)\.c|include/otel/console\.h' \
    "messages go through common/log.h"
door '\b(sigaction|signal|sigaltstack)[ ]*\(' 'profiling/signal/signal_source\.c' \
    "the program's signal handlers are its own, but for a signal that it has none for"
door 'perf_event_open|perf_event_attr|\bprocess_vm_readv\b' 'profiling/(perf/perf_ring|labels/resolve)\.c' \
    "the kernel's perf events are behind profiling/perf/perf_ring.c"
door '\b(abort|exit|_exit|_Exit|quick_exit)[ ]*\(' 'sdk/ending\.c' \
    "a library does not end the program, but for one that only its own threads are left of"
door '\b(system|popen|fork|execv[a-z]*)[ ]*\(' "$nobody" "a library starts no process"
door '\batexit[ ]*\(' 'exporters/otlp/transport/tls_exit_guard\.c' "nothing runs at exit, but to keep out of TLS"
door '\b(dl(m?open|close|v?sym|addr1?)\b|dlfcn\.h)' 'common/os/library\.c' \
    "the dynamic linker is behind common/os/library.c"
door '__attribute__\(\(constructor' 'functions/functions_start\.c' "nothing runs before main"
door '__attribute__\(\(destructor' '(api/lifetime|sdk/lifecycle/lifecycle|functions/functions_start)\.c' \
    "memory is given back at unload in one place of each"
door '\b(setlocale|srand|rand|strtok|localtime|gmtime|strerror)[ ]*\(' "$nobody" \
    "not safe in a program with threads"
door '\b(strcpy|strcat|sprintf|vsprintf|gets|alloca)[ ]*\(' "$nobody" "not bounded"
door '\b(usleep|sleep)[ ]*\(' "$nobody" "nothing of ours sleeps without being woken"
door 'typedef\b.*\b[a-z_]+_t;' "$nobody" "names that end in _t are POSIX's"
door '\b_Generic\b' '(common|api|sdk|exporters|functions|config|profiling)/.*' \
    "true is an int: typed functions instead of _Generic"
door '#[ \t]*(ifdef|if defined).*TEST' "$nobody" "tests see the same code as everybody"
door '#[ \t]*include[ \t]*"[^"]*\.c"' "$nobody" "a source file is not included"

# Descriptors do not leak into programs that the host program starts.
door '\bopen(at)?[ ]*\(([^C]|C[^L])*$' "$nobody" "open without O_CLOEXEC"
door '\b(socket|eventfd|epoll_create1|timerfd_create|memfd_create|pipe2|accept4)[ ]*\(([^C]|C[^L])*$' \
    "$nobody" "a descriptor without CLOEXEC"
door '\b(pipe|epoll_create|dup|dup2|creat)[ ]*\(' "$nobody" \
    "a descriptor without CLOEXEC (use pipe2, fcntl F_DUPFD_CLOEXEC)"

# Names: a function that other files can call has our prefix.
while IFS=: read -r file line _; do
    wrong "$file:$line: a name in a header begins with otel_ or oteli_"
done < <(cd "$stripped" && printf '%s\n' "${files[@]}" | grep '\.h$' |
    xargs grep -nHE '^[a-z].*[ *]([a-z][a-z0-9_]*)\(.*(\)|,)(;)?$' |
    grep -vE '__attribute__\(\(|[ *]\(?oteli?_[a-z0-9_]*\(|:typedef ' || true)

# Unit tests decide what the time is.
mapfile -t unit < <(c_files tests/unit)
strip_comments "$stripped" "${unit[@]}"
while IFS=: read -r file line _; do
    wrong "$file:$line: a unit test neither sleeps nor asks for the time"
done < <(cd "$stripped" && [[ ${#unit[@]} -eq 0 ]] ||
    grep -nHE '\b(sleep|usleep|nanosleep|clock_nanosleep|gettimeofday|time)[ ]*\(' "${unit[@]}" || true)

finish "${#files[@]} files"

/* SPDX-License-Identifier: Apache-2.0 */
/* otel/thread_context.h - which trace and span each thread is working for, published where other
 * programs can read it: profilers outside the process (OpenTelemetry's eBPF profiler and others),
 * and otel-c's own (otel/profiler.h).
 *
 * Two things are published. The context of each thread is a record behind a thread-local pointer
 * that the dynamic symbol table names; every otel_span_enter, otel_span_end, otel_context_attach
 * and _detach keeps it current, at the price of a few stores. The context of the process is a
 * mapping of memory that says whose process this is (the resource) and how to read the records;
 * otel_start makes it, otel_shutdown takes it back, and a forked child has its own with its first
 * span. OTEL_C_THREAD_CONTEXT=off leaves out the latter, without which others do not look at the
 * former; a question on the way of each span whether to write it would cost as much as it does.
 *
 * Threads:  any thread; the pointer is each thread's own.
 * Signals:  a handler may read otel_thread_ctx_v1, and nothing else of this.
 * Errors:   otel_status.
 * Source:   OpenTelemetry OTEP 4947 "Thread context", OTEP 4719 "Process context". */
#ifndef OTEL_THREAD_CONTEXT_H
#define OTEL_THREAD_CONTEXT_H

#include <otel/base.h>

OTEL_BEGIN_DECLS

/* What a reader finds. Ids in the byte order of the wire. */
typedef struct otel_thread_context_record {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t valid; /* 1: there is a span; 0: there is none */
    uint8_t trace_flags;
    uint16_t attributes_size; /* of what follows the record: always 0 here */
} otel_thread_context_record;

/* The pointer that readers look for. Thread-local; NULL or a record with valid == 0: this thread is
 * working for no span, or for one of a stretch that is being collected. Programs read it (from the
 * thread itself, also in a signal handler): at any instruction it leads to a whole record, of
 * before or of after a change. They never write it, unless they publish contexts of their own
 * through it, one inside the other: then they put back what was there before, as otel-c does. A
 * program that is linked statically exports it with the link option that otel's CMake and
 * pkg-config files give, or readers outside do not find it. */
#if defined(__GNUC__) /* other compilers need not have thread-local variables */
#define OTEL_THREAD_CONTEXT_TLS_ __thread __attribute__((tls_model("initial-exec")))
OTEL_API_DATA extern OTEL_THREAD_CONTEXT_TLS_ const otel_thread_context_record *otel_thread_ctx_v1;
#endif

/* Check whether a reader outside would find what is published. In library otel-sdk. That is: the
 * symbol is in the dynamic symbol table of the object that defines it; and, while an SDK runs, the
 * process's context is mapped and as it should be. Any thread; reads /proc/self. OTEL_OK, or
 * OTEL_ERROR_UNSUPPORTED or _SYSTEM with one sentence in `why` (NULL: not wanted), cut to `size`.
 * */
OTEL_API otel_status otel_thread_context_selftest(char *why, size_t size);

OTEL_END_DECLS
#endif

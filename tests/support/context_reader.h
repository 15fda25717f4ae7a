/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/context_reader.h - reads from outside which span each thread of another process is
 * working for, and whose process it is, as profilers do. It shares nothing with otel-c but the
 * specification, and forgives less than any profiler: what readers may refuse is a fault here.
 *
 *     struct context_reader *reader = context_reader_open(process);
 *     struct context_record record;
 *     enum context_found found = context_reader_thread(reader, thread, &record);
 *     ...
 *     context_reader_close(reader);
 *
 * The threads of the process stand still between open and close.
 *
 * Threads:  the one that opened it.
 * Source:   OpenTelemetry OTEP 4947 "Thread context", OTEP 4719 "Process context". */
#ifndef OTELI_TESTS_CONTEXT_READER_H
#define OTELI_TESTS_CONTEXT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct context_reader;

enum context_found {
    CONTEXT_FAULT,     /* it is there, and breaks a rule; context_reader_why says which */
    CONTEXT_INVISIBLE, /* no object of the process has the symbol, or there is no mapping */
    CONTEXT_NONE,      /* there is no span */
    CONTEXT_FOUND
};

struct context_record {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t flags;
    uint16_t attributes_size;
    char object[256];  /* the file that defines the variable */
    bool is_by_linker; /* where it is was known when the program was linked */
};

/* What a process says about itself. */
struct context_process {
    uint64_t published_at; /* ns of CLOCK_BOOTTIME */
    size_t resource_count;
    char service_name[64];
    char schema[64]; /* threadlocal.schema_version */
    size_t keys;     /* in threadlocal.attribute_key_map */
};

/* NULL: errno says why; EPERM: nobody may attach to it. */
struct context_reader *context_reader_open(pid_t process);

/* Its threads run on. NULL: nothing happens. */
void context_reader_close(struct context_reader *reader);

/* The threads there are, at most `most`; how many there are. */
size_t context_reader_threads(const struct context_reader *reader, pid_t *threads, size_t most);

enum context_found context_reader_thread(struct context_reader *reader, pid_t thread,
                                         struct context_record *record);

enum context_found context_reader_process(struct context_reader *reader,
                                          struct context_process *process);

/* The rule that was broken last, as a sentence. */
const char *context_reader_why(const struct context_reader *reader);

/* Look beside the variable by so many bytes: to see that this is noticed. */
void context_reader_misplace(struct context_reader *reader, int64_t bytes);

#endif

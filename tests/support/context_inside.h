/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/context_inside.h - what the parts of the reader share (context_reader.h).
 *
 * Threads:  the reader's. */
#ifndef OTELI_TESTS_CONTEXT_INSIDE_H
#define OTELI_TESTS_CONTEXT_INSIDE_H

#include "tests/support/context_reader.h"

enum { CONTEXT_THREADS = 256 };

struct context_thread {
    pid_t id;
    int signal; /* that it was about to get */
    uint64_t pointer;
};

struct context_reader {
    pid_t process;
    size_t thread_count;
    struct context_thread threads[CONTEXT_THREADS];
    int64_t misplaced;
    char why[256];
};

/* A line of /proc/PID/maps. */
struct context_mapping {
    uint64_t start, end, offset;
    char permissions[5];
    char name[256];
};

/* Lines one after the other; `at` begins with NULL, and is NULL again after the last. */
bool context_next_mapping(const struct context_reader *reader, void **at,
                          struct context_mapping *mapping);
void context_end_mappings(void **at);

/* Memory of the process. */
bool context_read(const struct context_reader *reader, uint64_t address, void *bytes, size_t size);

/* CONTEXT_FAULT, with a sentence. */
enum context_found context_fault(struct context_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Where the thread's variable is. */
enum context_found context_find_variable(struct context_reader *reader,
                                         const struct context_thread *thread, uint64_t *address,
                                         struct context_record *record);

#endif

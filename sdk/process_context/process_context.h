/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/process_context/process_context.h - the resource of this process and how the records of its
 * threads are to be read (otel/thread_context.h), in a mapping of memory that readers outside find
 * by its name.
 *
 * The mapping is a header and a payload, a ProcessContext message: the resource, and of the
 * attributes those about thread records. A reader takes a copy, and takes another if
 * `published_at` was 0 or is not what it was before. The mapping is not inherited by forked
 * children: one has a mapping of its own when its SDK has come back.
 *
 * Threads:  the thread that holds the lock of the current engine; oteli_process_context_forget: a
 *           forked child.
 * Source:   OpenTelemetry OTEP 4719 "Process context"; OTEP 4947, "Process context attributes". */
#ifndef OTELI_PROCESS_CONTEXT_H
#define OTELI_PROCESS_CONTEXT_H

#include "sdk/engine/engine.h"

#define OTELI_PROCESS_CONTEXT_NAME "OTEL_CTX" /* of the mapping, and its signature */
enum {
    OTELI_PROCESS_CONTEXT_VERSION = 2,
    OTELI_PROCESS_CONTEXT_MAX = 64 * 1024 /* of the payload: what readers take */
};

struct oteli_process_context {
    char signature[8];
    uint32_t version;
    uint32_t payload_size;
    uint64_t published_at; /* CLOCK_BOOTTIME in nanoseconds; 0: being written */
    uint64_t payload;      /* its address */
};
_Static_assert(sizeof(struct oteli_process_context) == 32, "OTEP 4719");

/* A file in memory of this name, which can be sealed; the descriptor, or -1. */
int oteli_memory_file(const char *name);

/* What a schema of thread records may be called here: `schema` (NULL: none) as far as it fits. */
void oteli_process_context_schema(char taken[OTELI_SCHEMA_SIZE], const char *schema);

/* Publish this, or this instead of what is; with an empty schema, nothing. */
void oteli_process_context_publish(const struct oteli_resource *resource, const char *schema);

/* Publish nothing any more. */
void oteli_process_context_take_back(void);

/* The mapping is the parent's. Stores only. */
void oteli_process_context_forget(void);

/* What is published; NULL: nothing. */
const struct oteli_process_context *oteli_process_context_published(void);

/* Nothing, because the system has no memory for it. */
bool oteli_process_context_was_refused(void);

#endif

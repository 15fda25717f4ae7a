/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/engine/processors.h - the program's span processors, in the order in which they are
 * called.
 *
 * Threads:  the calls app threads, concurrently; flush and stop one at a time, by a lock of
 *           their own; everything else start/stop only. */
#ifndef OTELI_PROCESSORS_H
#define OTELI_PROCESSORS_H

#include "api/thread/sdk_slot.h"

#include <otel/processor.h>
#include <otel/sdk.h>
#include <pthread.h>

struct oteli_resource;

struct oteli_processors {
    otel_processor *list;
    size_t count;
    const struct oteli_resource *resource; /* the engine's */
    pthread_mutex_t lock;                  /* of flush and stop */
    bool has_lock;
};

/* One of the options' processors, whose program may know less of them. */
otel_processor oteli_processors_known(const otel_sdk_options *options, size_t index);

/* Adopt the processors of the options, also on failure. */
bool oteli_processors_init(struct oteli_processors *processors, const otel_sdk_options *options,
                           const struct oteli_resource *resource);

/* For a forked child: copies of the parent's, which go on. */
bool oteli_processors_renew(struct oteli_processors *processors,
                            const struct oteli_processors *parents,
                            const struct oteli_resource *resource);

/* What the API tells them of spans. */
void oteli_processors_start(const struct oteli_sdk *sdk, const otel_span *span,
                            const otel_context *parent);
void oteli_processors_ending(const struct oteli_sdk *sdk, const otel_span *span, uint64_t end_ns);
void oteli_processors_end(const struct oteli_sdk *sdk, struct oteli_record *record);

/* Let each flush what it has, within the time that is left. */
otel_status oteli_processors_flush(struct oteli_processors *processors, uint64_t deadline_ns);

/* The same, and free them; no thread is inside any more. False: another flush holds them until
 * the deadline, and oteli_processors_fini has to do it. */
bool oteli_processors_stop(struct oteli_processors *processors, uint64_t deadline_ns,
                           otel_status *status);
void oteli_processors_fini(struct oteli_processors *processors);

/* Free those of options that are not used. */
void oteli_processors_discard(const otel_sdk_options *options);

#endif

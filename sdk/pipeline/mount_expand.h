/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/pipeline/mount_expand.h - make the spans that a record only stands for: those of a mounted
 * set, each a patched copy in the trace of its new parent, and those whose name is an address.
 *
 *     a message     1 trace id | 2 span id | 3 tracestate | 4 parent | 5 name … 13 links | 14 …
 *     mounted          new        old ^ key      new       old ^ key,     plus a link
 *                                                          or new         for the outermost
 *
 * Copies are in the batch's arena, so that sets and lines need not wait for the export.
 *
 * Threads:  the worker, or the thread that holds the mutex of a synchronous engine. A set is read
 *           only. */
#ifndef OTELI_MOUNT_EXPAND_H
#define OTELI_MOUNT_EXPAND_H

#include "api/record/mount.h"
#include "sdk/pipeline/batch.h"

/* Add spans of a mount to the batch, as many as there is room for. Those without memory are
 * counted in `lost`. True: the mount is done, and has let go of its set. */
bool oteli_expand_mount(otel_batch *batch, struct oteli_record *record, uint64_t *lost);

/* Put names in the place of addresses. The resolver may take its time: nothing is held.
 * Returns how many spans had to leave the batch without memory. */
uint64_t oteli_expand_names(otel_batch *batch);

#endif

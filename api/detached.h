/* SPDX-License-Identifier: Apache-2.0 */
/* api/detached.h - spans that any thread may use: a pool of records that keep their place.
 *
 * A record is never unmapped while threads trace, so an old handle can always be looked
 * up; it finds another span id there, or none. Each has a lock of its own that is held
 * for the few instructions of one call: two threads wait for each other only if they use
 * the same span at the same moment.
 *
 * Threads:  any thread. Free records are kept at hand by threads, a few each. */
#ifndef OTELI_DETACHED_H
#define OTELI_DETACHED_H

#include "api/thread.h"

#define OTELI_DETACHED_NONE UINT32_MAX

/* Take a free record for a new span; OTELI_DETACHED_NONE: no memory. */
uint32_t oteli_detached_take(struct oteli_thread *thread);

/* The record of an index that oteli_detached_take gave. */
struct oteli_open *oteli_detached_at(uint32_t index);

/* Lock the record of a handle if the span is still open in it; NULL otherwise. */
struct oteli_open *oteli_detached_lock(const otel_span *span);
void oteli_detached_unlock(struct oteli_open *open);

/* Give a record back; its span id must be 0 by now, and its lock free. */
void oteli_detached_give(struct oteli_thread *thread, uint32_t index);

/* The thread ends: what it kept at hand goes back to all. */
void oteli_detached_flush(struct oteli_thread *thread);

void oteli_detached_free(void);   /* the process ends, or a test */
void oteli_detached_forget(void); /* after fork, in the child */

#endif

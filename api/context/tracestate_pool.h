/* SPDX-License-Identifier: Apache-2.0 */
/* api/context/tracestate_pool.h - W3C tracestates, which span handles refer to by number.
 *
 * Texts live in a ring of a few thousand slots. A slot is taken again, oldest first,
 * unless an open span holds it: so contexts need no destroy call, memory is bounded, and
 * all that can happen to a context kept aside for thousands of later requests is that its
 * tracestate is gone, which W3C allows anyone to do.
 *
 * Threads:  any thread, lock-free. A reference that is stale finds nothing.
 * Source:   W3C Trace Context Level 2, section 3.3. */
#ifndef OTELI_TRACESTATE_POOL_H
#define OTELI_TRACESTATE_POOL_H

#include "common/base/internal_api.h"
#include <stddef.h>
#include <stdint.h>

enum { OTELI_TRACESTATE_BYTES = 512, OTELI_TRACESTATE_MEMBERS = 32 };

/* Keep a tracestate: the members of the text, or as many as fit OTELI_TRACESTATE_BYTES.
 * 0: not valid, empty, or no slot is free. */
uint32_t oteli_tracestate_make(const char *text, size_t length, const uint8_t trace_id[16]);

/* Hold it as long as a span is open; 0: it is gone. Each retain needs a release. */
uint32_t oteli_tracestate_retain(uint32_t reference);
void oteli_tracestate_release(uint32_t reference);

/* Copy the text, ended by a NUL, if it is of this trace and still there. Returns its
 * length without the NUL. */
OTELI_INTERNAL_API size_t oteli_tracestate_copy(uint32_t reference, const uint8_t trace_id[16],
                                                char *text, size_t size);

/* Write the valid form of a tracestate text, at most OTELI_TRACESTATE_BYTES; 0: invalid or
 * empty. Blanks and empty members are gone, of equal keys the first is kept, and what is
 * too much goes: members over 128 bytes first, then from the right. */
size_t oteli_tracestate_clean(const char *text, size_t length, char *clean);

/* In a forked child: none is held, and none is being made. Stores only. */
void oteli_tracestates_forget(void);

void oteli_tracestates_free(void);

#endif

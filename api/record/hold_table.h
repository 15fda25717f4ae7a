/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/hold_table.h - roots that hold their descendants back: how a span finds its set when
 * its parent is open on another thread, or has ended.
 *
 * A table of fixed size, a row for some trace ids. A trace can have several such roots, when
 * it comes into this process more than once: handles carry a number that tells them apart.
 * A new root takes the slot of one that was decided long ago, or else of the oldest; what
 * is not in the table is exported like any other span. Verdicts stay known as long as their
 * slot is not needed.
 *
 * Threads:  any; one short lock for eight slots. */
#ifndef OTELI_HOLD_TABLE_H
#define OTELI_HOLD_TABLE_H

#include "api/record/set_pool.h"

/* A new root: gives the set its number, at most OTELI_HOLDER_MAX. */
void oteli_holders_add(struct otel_lines *hold);
void oteli_holders_decide(const struct otel_lines *hold, bool kept);
/* From now on the set around it decides. */
void oteli_holders_pass_on(const struct otel_lines *hold, const struct otel_lines *outer);

/* The set of a root that still holds back, joined; or NULL, and in `*end_as` what follows
 * from a verdict that is known. */
struct otel_lines *oteli_holders_find(const uint64_t trace_id[2], uint32_t number, uint8_t *end_as);

void oteli_holders_forget(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/hold_table.c - the table of roots that hold back. Any thread. */
#include "api/record/hold_table.h"
#include "common/base/spin_lock.h"

#include <string.h>

enum { ROWS = 512, WAYS = 8 };
_Static_assert((int)WAYS <= (int)OTELI_HOLDER_MAX,
               "there always is a number that no slot of a row has");

enum verdict { FREE = 0, NOT_YET, KEPT, DROPPED, ABANDONED, PASSED_ON };

struct holder {
    uint64_t trace_id[2];
    uint32_t hold;   /* oteli_hold_index, while NOT_YET; the number of another, if PASSED_ON */
    uint32_t age;    /* when it came, by its row's count */
    uint32_t number; /* among those of its trace */
    enum verdict verdict;
};

static struct row {
    uint32_t lock;
    uint32_t count;
    struct holder ways[WAYS];
} rows[ROWS];

static struct row *lock_row(const uint64_t trace_id[2])
{
    struct row *row = &rows[(trace_id[0] ^ trace_id[1] >> 32) % ROWS];
    oteli_spin_lock(&row->lock);
    return row;
}

static void unlock_row(struct row *row)
{
    oteli_spin_unlock(&row->lock);
}

static struct holder *find(struct row *row, const uint64_t trace_id[2], uint32_t number)
{
    for (unsigned i = 0; i < WAYS; i++) {
        struct holder *way = &row->ways[i];
        if (way->verdict != FREE && way->number == number && way->trace_id[0] == trace_id[0] &&
            way->trace_id[1] == trace_id[1])
            return way;
    }
    return NULL;
}

/* The slot for a new root: a free one, or that of the oldest root that is decided, or of the
 * oldest root. */
static struct holder *least_needed(struct row *row)
{
    struct holder *least = &row->ways[0];
    for (unsigned i = 0; i < WAYS; i++) {
        struct holder *way = &row->ways[i];
        const bool is_open = way->verdict == NOT_YET;
        const bool least_is_open = least->verdict == NOT_YET;
        if (way->verdict == FREE)
            return way;
        if (is_open == least_is_open ? row->count - way->age > row->count - least->age
                                     : least_is_open)
            least = way;
    }
    return least;
}

void oteli_holders_add(struct otel_lines *hold)
{
    struct row *row = lock_row(hold->trace_id);
    struct holder *way = least_needed(row);
    uint32_t number = row->count & OTELI_HOLDER_MAX; /* so that it is used again late */
    while (find(row, hold->trace_id, number) != NULL)
        number = (number + 1) & OTELI_HOLDER_MAX;
    hold->number = way->number = number;
    memcpy(way->trace_id, hold->trace_id, sizeof way->trace_id);
    way->hold = oteli_hold_index(hold);
    way->age = row->count++;
    way->verdict = NOT_YET;
    unlock_row(row);
}

void oteli_holders_decide(const struct otel_lines *hold, bool kept)
{
    struct row *row = lock_row(hold->trace_id);
    struct holder *way = find(row, hold->trace_id, hold->number);
    if (way != NULL && way->hold == oteli_hold_index(hold)) {
        way->verdict = kept ? KEPT : hold->is_abandoned ? ABANDONED : DROPPED;
        way->hold = 0;
    }
    unlock_row(row);
}

void oteli_holders_pass_on(const struct otel_lines *hold, const struct otel_lines *outer)
{
    struct row *row = lock_row(hold->trace_id);
    struct holder *way = find(row, hold->trace_id, hold->number);
    if (way != NULL && way->hold == oteli_hold_index(hold)) {
        way->verdict = PASSED_ON;
        way->hold = outer->number;
    }
    unlock_row(row);
}

struct otel_lines *oteli_holders_find(const uint64_t trace_id[2], uint32_t number, uint8_t *end_as)
{
    struct otel_lines *hold = NULL;
    struct row *row = lock_row(trace_id);
    const struct holder *way = find(row, trace_id, number);
    for (unsigned i = 0; i <= OTELI_HOLDER_MAX && way != NULL && way->verdict == PASSED_ON; i++)
        way = find(row, trace_id, way->hold);
    if (way != NULL && way->verdict == NOT_YET) {
        hold = oteli_hold_at(way->hold); /* its root is a member until it is decided here */
        oteli_hold_join(hold);
    } else if (way != NULL && way->verdict == DROPPED) {
        *end_as = OTELI_END_LATE;
    } else if (way != NULL && way->verdict == ABANDONED) {
        *end_as = OTELI_END_ABANDONED;
    }
    unlock_row(row);
    return hold;
}

void oteli_holders_forget(void)
{
    for (unsigned i = 0; i < ROWS; i++) /* what was never used is not written to either */
        if (rows[i].count != 0 || rows[i].lock != 0)
            memset(&rows[i], 0, sizeof rows[i]);
}

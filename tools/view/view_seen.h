/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_seen.h - which spans have been here already, the last 100,000 and more.
 *
 * A sender that gets no answer sends its request again, long after its traces have been
 * drawn. Two generations of ids are kept: when the young one is full, the old one is
 * forgotten and the young one becomes old. */
#ifndef VIEW_SEEN_H
#define VIEW_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VIEW_SEEN_GENERATION = 1 << 17 };

struct view_seen_id {
    uint8_t bytes[24]; /* trace id, span id; all zero: no id */
};

struct view_seen {
    struct view_seen_id *young, *old; /* tables of twice that many, open addressing */
    size_t young_count;
    uint64_t seed;
};

bool view_seen_init(struct view_seen *seen);
void view_seen_fini(struct view_seen *seen);

/* Remember a span; true when it has been here before. */
bool view_seen_again(struct view_seen *seen, const uint8_t *trace_id, const uint8_t *span_id);

#endif

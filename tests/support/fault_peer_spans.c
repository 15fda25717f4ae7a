/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/fault_peer_spans.c - the ids of all spans that came, in a table. The contracts are
 * in fault_peer_inside.h. */
#include "tests/support/fault_peer_inside.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM = 1024 };

static uint64_t id_of(const uint8_t bytes[8])
{
    uint64_t id;
    memcpy(&id, bytes, sizeof id);
    return id;
}

static struct fault_span *place_of(const struct fault_spans *spans, uint64_t id)
{
    for (uint64_t at = id * UINT64_C(0x9e3779b97f4a7c15) >> 20;; at++) {
        struct fault_span *place = &spans->places[at & (spans->room - 1)];
        if (place->id == id || place->id == 0)
            return place;
    }
}

static void grow(struct fault_spans *spans)
{
    struct fault_spans larger = {.room = spans->room != 0 ? spans->room * 2 : ROOM};
    larger.places = calloc(larger.room, sizeof *larger.places);
    fault_must(larger.places != NULL);
    for (size_t i = 0; i < spans->room; i++)
        if (spans->places[i].id != 0)
            *place_of(&larger, spans->places[i].id) = spans->places[i];
    free(spans->places);
    spans->places = larger.places;
    spans->room = larger.room;
}

void fault_spans_add(struct fault_spans *spans, const struct fault_bytes *ids, bool is_taken)
{
    for (size_t i = 0; i < ids->length; i += 8) {
        if (spans->counts.distinct * 2 >= spans->room)
            grow(spans);
        const uint64_t id = id_of(ids->data + i);
        struct fault_span *place = place_of(spans, id);
        place->id = id;
        spans->counts.received++;
        spans->counts.distinct += place->came == 0;
        place->came++;
        if (is_taken) {
            spans->counts.taken += place->taken == 0;
            spans->counts.taken_repeatedly += place->taken == 1;
            place->taken++;
        }
    }
}

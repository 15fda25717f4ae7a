/* SPDX-License-Identifier: Apache-2.0 */
/* api/held/parents.c - spans that are remembered until lines are mounted under them: otel_parents.
 * App threads.
 *
 * Two of Treiber's stacks in one array: places that are free, and places that have a span. A thread
 * that adds takes a place from the first, which has a count of its changes (free_list.h), and
 * pushes it on the second. The thread that mounts takes all of that at once, so an add that is
 * under way in another thread, or was in the parent process, keeps nothing but its own place. */
#include "api/context/tracestate_pool.h"
#include "api/held/span_set.h"
#include "common/base/alloc.h"
#include "common/base/free_list.h"
#include "common/log.h"

enum { MOST = 1 << 30, AT_ONCE = 64 };

struct remembered {
    otel_span span; /* its tracestate is held */
    uint32_t below; /* index + 1 of the next in its stack; 0: none; relaxed */
};

struct otel_parents {
    uint64_t free; /* heads, as in struct oteli_free_list */
    uint64_t added;
    uint32_t refused; /* since the last mount; atomic */
    uint32_t most;
    struct remembered place[];
};

/* A chain of places, both as index + 1. */
static void push(struct otel_parents *parents, uint64_t *stack, uint32_t first, uint32_t last)
{
    uint64_t head;
    do {
        head = oteli_load_acquire_64(stack);
        oteli_store_relaxed_32(&parents->place[last - 1].below, (uint32_t)head);
    } while (!oteli_cas_full_64(stack, head, oteli_free_list_next(head, first)));
}

static uint32_t pop_free(struct otel_parents *parents)
{
    uint64_t head;
    uint32_t below;
    do {
        head = oteli_load_acquire_64(&parents->free);
        if ((uint32_t)head == 0)
            return 0;
        below = oteli_load_relaxed_32(&parents->place[(uint32_t)head - 1].below);
    } while (!oteli_cas_full_64(&parents->free, head, oteli_free_list_next(head, below)));
    return (uint32_t)head;
}

otel_parents *otel_parents_new(size_t most)
{
    if (most == 0 || most > MOST)
        return NULL;
    otel_parents *parents = oteli_calloc(1, sizeof *parents + most * sizeof *parents->place);
    if (parents == NULL)
        return NULL;
    parents->most = (uint32_t)most;
    for (uint32_t i = 1; i < parents->most; i++)
        parents->place[i - 1].below = i + 1;
    parents->free = 1;
    return parents;
}

bool otel_parents_add(otel_parents *parents, const otel_span *span)
{
    if (!oteli_span_can_be_mounted_under(span))
        return true;
    const uint32_t at = parents != NULL ? pop_free(parents) : 0;
    if (at == 0) {
        if (parents != NULL)
            oteli_add_full_32(&parents->refused, 1);
        return false;
    }
    parents->place[at - 1].span = *span;
    (void)oteli_tracestate_retain(oteli_ref_tracestate(span->opaque[3]));
    push(parents, &parents->added, at, at);
    return true;
}

/* Some of a chain, at most AT_ONCE. */
static size_t copy_some(const struct otel_parents *parents, uint32_t *next, otel_span *spans)
{
    size_t count = 0;
    while (*next != 0 && count < AT_ONCE) {
        const struct remembered *place = &parents->place[*next - 1];
        spans[count++] = place->span;
        *next = oteli_load_relaxed_32(&place->below);
    }
    return count;
}

static void give_back(struct otel_parents *parents, uint32_t first)
{
    uint32_t last = 0;
    for (uint32_t at = first; at != 0; at = oteli_load_relaxed_32(&parents->place[at - 1].below)) {
        oteli_tracestate_release(oteli_ref_tracestate(parents->place[at - 1].span.opaque[3]));
        last = at;
    }
    if (first != 0)
        push(parents, &parents->free, first, last);
}

void otel_parents_mount(otel_parents *parents, otel_lines *lines, const otel_mount_options *options)
{
    if (parents == NULL)
        return;
    otel_span spans[AT_ONCE];
    const uint32_t first = (uint32_t)oteli_exchange_full_64(&parents->added, 0);
    const uint32_t refused = oteli_exchange_full_32(&parents->refused, 0);
    for (uint32_t next = lines != NULL ? first : 0; next != 0;) {
        const size_t count = copy_some(parents, &next, spans);
        otel_lines_mount(lines, spans, count, options);
    }
    give_back(parents, first);
    if (lines != NULL && refused != 0)
        OTELI_LOG(OTEL_LOG_WARN,
                  "%u spans are without the lines that were mounted: an otel_parents remembers %u",
                  refused, parents->most);
}

void otel_parents_free(otel_parents *parents)
{
    otel_parents_mount(parents, NULL, NULL);
    free(parents);
}

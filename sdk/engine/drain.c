/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/engine/drain.c - take ended spans out of lines. Worker only.
 *
 * Every committed record is in a thread's current line or in a line in the ring, because a
 * thread changes its current line only after the full one is in the ring. A pass visits
 * the threads and then the ring, up to where it reached by then: a line that left its thread
 * before the visit is in that part of the ring. Slots whose producer has been preempted are
 * looked past: their line is still current for its thread. What the ring has before, a pass takes
 * before all else, since those are the oldest spans: the last that it comes to may have to wait
 * for the next batch.
 *
 * A mount in a line becomes the spans of its set, in the memory of the batch; when there are
 * more of them than the batch has room for, it stays where it is until the others are taken.
 *
 * A line is given back when it has left the ring, everything in it is taken, no batch
 * points into it, and its owner has gone on to another line. */
#include "sdk/engine/engine.h"
#include "sdk/engine/queue.h"
#include "sdk/pipeline/mount_expand.h"

enum { BYTES_AHEAD = 2048 }; /* that are fetched before they are read */

void oteli_drain_begin(struct oteli_engine *engine)
{
    struct oteli_drain *drain = &engine->drain;
    if (drain->under_way)
        return;
    oteli_engine_renew_clock(engine);
    drain->under_way = true;
    drain->visits = OTELI_DRAIN_RING_BEFORE;
    drain->ticket = engine->ring.tail;
    drain->ring_end = oteli_ring_head(&engine->ring);
    drain->thread = oteli_threads();
    drain->line = NULL;
}

static void pin(otel_batch *batch, struct oteli_line *line)
{
    if (batch->line_count != 0 && batch->lines[batch->line_count - 1] == line)
        return;
    oteli_store_relaxed_32(&line->pins, line->pins + 1);
    batch->lines[batch->line_count++] = line;
}

static uint32_t committed_in(const struct oteli_line *line)
{
    return oteli_load_acquire_32(&line->committed); /* pairs with the release of commit */
}

/* Other cores have written the records, and where one is, the one before it says: without this,
 * each would be waited for in turn, here and once more where it is read as a whole. What the owner
 * writes next stays where it is. Returns up to where. */
static OTELI_INLINE uint32_t fetch(const struct oteli_line *line, uint32_t from, uint32_t consumed,
                                   uint32_t committed)
{
    const uint32_t upto = committed - consumed < BYTES_AHEAD ? committed : consumed + BYTES_AHEAD;
    for (; from < upto; from += OTELI_CACHELINE)
        __builtin_prefetch(line->records + from);
    return from;
}

static void lose(struct oteli_engine *engine, otel_drop_reason reason, uint64_t spans)
{
    if (spans == 0)
        return;
    oteli_engine_drop(engine, reason, spans);
    oteli_queue_free_room(engine, spans);
}

/* Take raw records up to one that is not, which most lines have none of. Returns up to where. */
static OTELI_INLINE uint32_t take_raw(otel_batch *batch, struct oteli_line *line, uint32_t consumed,
                                      uint32_t committed, uint32_t *fetched)
{
    struct oteli_record **at = batch->records + batch->count;
    struct oteli_record **const end = batch->records + batch->capacity;
    while (consumed < committed && at != end) {
        struct oteli_record *record = oteli_line_record(line, consumed);
        *fetched = fetch(line, *fetched, consumed, committed);
        if ((record->what & OTELI_RECORD_RAW) == 0)
            break;
        *at++ = record;
        consumed += record->size;
    }
    batch->count = (size_t)(at - batch->records);
    return consumed;
}

/* Take what was committed; false: the batch is full before all of it is taken. */
static bool take_from(struct oteli_engine *engine, struct oteli_line *line, uint32_t committed)
{
    otel_batch *batch = engine->batch;
    uint32_t consumed = line->consumed;
    uint32_t fetched = consumed;
    const size_t before = batch->count;
    uint64_t lost = 0;
    while ((consumed = take_raw(batch, line, consumed, committed, &fetched)) < committed &&
           batch->count < batch->capacity) {
        struct oteli_record *record = oteli_line_record(line, consumed);
        if ((record->what & OTELI_RECORD_MOUNT) == 0)
            oteli_batch_add(batch, record);
        else if (!oteli_expand_mount(batch, record, &lost))
            break;
        consumed += record->size;
    }
    if (batch->count != before)
        pin(batch, line);
    if (consumed != line->consumed)
        oteli_store_relaxed_32(&line->consumed, consumed);
    const uint64_t taken = batch->count - before + lost;
    if (taken != 0) {
        engine->drain.taken += taken;
        oteli_waker_taken(&engine->waker, taken);
        lose(engine, OTEL_DROP_NO_MEMORY, lost);
    }
    return consumed >= committed;
}

void oteli_drain_look_up_names(struct oteli_engine *engine)
{
    lose(engine, OTEL_DROP_NO_MEMORY, oteli_expand_names(engine->batch));
}

static uint64_t spans_left(const struct oteli_line *line)
{
    uint64_t count = 0;
    const uint32_t committed = committed_in(line);
    for (uint32_t at = oteli_load_relaxed_32(&line->consumed); at < committed;) {
        const struct oteli_record *record =
            (const struct oteli_record *)(const void *)(line->records + at);
        count += oteli_record_spans(record);
        at += record->size;
    }
    return count;
}

/* Give a retired line back, or keep it for later. */
static void give_back(struct oteli_engine *engine, struct oteli_line *line)
{
    const bool is_current = OTELI_LOAD_ACQUIRE_PTR(&line->owner->line) == line;
    if (line->pins == 0 && !is_current) {
        if (line->consumed != committed_in(line)) /* it came after the last pass */
            oteli_engine_drop(engine, OTEL_DROP_ALREADY_SHUTDOWN, spans_left(line));
        oteli_line_discard_mounts(line);
        oteli_line_put(line);
        return;
    }
    line->next = engine->drain.parked;
    engine->drain.parked = line;
}

static void give_back_parked(struct oteli_engine *engine)
{
    struct oteli_line *line = engine->drain.parked;
    engine->drain.parked = NULL;
    while (line != NULL) {
        struct oteli_line *next = line->next;
        give_back(engine, line);
        line = next;
    }
}

/* Lines at the front of the ring that are empty leave it. */
static void retire(struct oteli_engine *engine)
{
    for (;;) {
        struct oteli_line *line = oteli_ring_peek(&engine->ring, engine->ring.tail);
        if (line == NULL || line->consumed < committed_in(line))
            return;
        oteli_ring_take(&engine->ring);
        give_back(engine, line);
    }
}

/* The line of a thread of this engine; NULL: there is none. */
static struct oteli_line *line_of(const struct oteli_engine *engine,
                                  const struct oteli_thread *thread)
{
    if (thread == NULL || oteli_load_acquire_64(&thread->generation) != engine->sdk.generation)
        return NULL;
    return OTELI_LOAD_ACQUIRE_PTR(&thread->line);
}

/* Take what was committed in a thread's line when the visit began; what comes later waits
 * for the next pass, or a thread that is faster than the exporter would keep us for ever.
 * If the thread has changed its line meanwhile, the rest is in the ring. */
static bool visit(struct oteli_engine *engine, const struct oteli_thread *thread)
{
    struct oteli_drain *drain = &engine->drain;
    struct oteli_line *line = line_of(engine, thread);
    if (line == NULL || (drain->line != NULL && drain->line != line))
        return true;
    if (drain->line == NULL) {
        drain->line = line;
        drain->limit = committed_in(line);
    }
    return take_from(engine, line, drain->limit);
}

static void fetch_head(const struct oteli_line *line)
{
    if (line == NULL)
        return;
    __builtin_prefetch(line);
    __builtin_prefetch(&line->consumed);
}

/* Other cores have written all that a visit looks at, and each thing says where the next one
 * is. So it is fetched while those before it are visited: the state of the thread after the
 * next, the head of the next one's line. */
static void look_ahead(const struct oteli_engine *engine, const struct oteli_thread *next)
{
    if (next != NULL && next->next != NULL) {
        __builtin_prefetch(next->next);
        __builtin_prefetch(&next->next->next);
    }
    fetch_head(line_of(engine, next));
}

/* And the first records of the line that comes next. */
static void look_into_next(const struct oteli_engine *engine, const struct oteli_thread *next)
{
    const struct oteli_line *line = line_of(engine, next);
    if (line != NULL)
        (void)fetch(line, line->consumed, line->consumed, committed_in(line));
}

static bool visit_threads(struct oteli_engine *engine)
{
    struct oteli_drain *drain = &engine->drain;
    while (drain->thread != NULL) {
        look_ahead(engine, drain->thread->next);
        if (!visit(engine, drain->thread))
            return false;
        look_into_next(engine, drain->thread->next);
        drain->thread = drain->thread->next;
        drain->line = NULL;
    }
    return true;
}

/* False: the batch is full. */
static bool visit_ring(struct oteli_engine *engine)
{
    struct oteli_drain *drain = &engine->drain;
    for (; drain->ticket != drain->ring_end; drain->ticket++) {
        /* Lines behind the one that is being visited may leave the ring together with it, when
         * they were empty before: from then on the pool may lend them to any thread. */
        if ((int64_t)(drain->ticket - engine->ring.tail) < 0)
            continue;
        struct oteli_line *line = oteli_ring_peek(&engine->ring, drain->ticket);
        fetch_head(oteli_ring_peek(&engine->ring, drain->ticket + 1));
        if (line != NULL && !take_from(engine, line, committed_in(line)))
            return false;
        retire(engine);
    }
    return true;
}

bool oteli_drain_continue(struct oteli_engine *engine)
{
    struct oteli_drain *drain = &engine->drain;
    if (drain->visits == OTELI_DRAIN_RING_BEFORE) {
        if (!visit_ring(engine))
            return false;
        drain->visits = OTELI_DRAIN_THREADS;
    }
    if (drain->visits == OTELI_DRAIN_THREADS) {
        if (!visit_threads(engine))
            return false;
        drain->visits = OTELI_DRAIN_RING_AFTER;
        drain->ticket = engine->ring.tail;
        drain->ring_end = oteli_ring_head(&engine->ring);
    }
    if (!visit_ring(engine))
        return false;
    drain->under_way = false;
    retire(engine);
    return engine->batch->count < engine->batch->capacity;
}

void oteli_drain_release(struct oteli_engine *engine, otel_batch *batch)
{
    for (size_t i = 0; i < batch->line_count; i++) {
        struct oteli_line *line = batch->lines[i];
        oteli_store_release_32(&line->pins, line->pins - 1); /* pairs with let_go_of_sdk */
    }
    oteli_queue_free_room(engine, batch->count);
    oteli_batch_empty(batch);
    give_back_parked(engine);
}

uint64_t oteli_drain_leftover(const struct oteli_engine *engine)
{
    uint64_t count = 0;
    /* The ring first: a line that a late thread hands over meanwhile is then missed for
     * once, and its spans are still queued. The other way round it would count twice. */
    const uint64_t end = oteli_ring_head(&engine->ring);
    for (uint64_t ticket = engine->ring.tail; ticket != end; ticket++) {
        const struct oteli_line *line = oteli_ring_peek(&engine->ring, ticket);
        if (line != NULL && OTELI_LOAD_ACQUIRE_PTR(&line->owner->line) != line)
            count += spans_left(line);
    }
    for (struct oteli_thread *at = oteli_threads(); at != NULL; at = at->next) {
        const struct oteli_line *line = line_of(engine, at);
        if (line != NULL)
            count += spans_left(line);
    }
    return count;
}

void oteli_drain_fini(struct oteli_engine *engine)
{
    struct oteli_line *line;
    while ((line = oteli_ring_take(&engine->ring)) != NULL)
        give_back(engine, line);
    give_back_parked(engine);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/outermost_test.c - specification of api/record/set_roots.h. */
#include "api/record/set_roots.h"
#include "api/record/span_encoder.h"
#include "common/base/random.h"
#include "common/clock/clock.h"
#include "tests/support/unit.h"

#include <stdlib.h>

enum { MOST = 400, EVENTS_FIELD = 11, TRACE_STATE = 3 };

struct set {
    _Alignas(8) uint8_t records[MOST * 192];
    uint32_t length;
    uint32_t count;
    struct oteli_record *at[MOST];
    uint64_t parents[MOST];
};

static struct set set;

struct shape {
    uint64_t id;
    uint64_t parent; /* 0: none */
    uint64_t start;
    uint64_t end;
    uint64_t event; /* 0: no event */
    bool has_tracestate;
};

/* A record as span_encoder.c writes it. */
static struct oteli_record *add(const struct shape *shape)
{
    struct oteli_record *record = (struct oteli_record *)(void *)(set.records + set.length);
    uint8_t *const message = (uint8_t *)(record + 1);
    static const uint8_t trace_id[16] = {1};
    uint8_t *at = oteli_put_short(message, OTELI_SPAN_TRACE_ID, trace_id, sizeof trace_id);
    at = oteli_put_short(at, OTELI_SPAN_SPAN_ID, &shape->id, 8);
    if (shape->has_tracestate)
        at = oteli_put_bytes_field(at, TRACE_STATE, "a=b", 3);
    if (shape->parent != 0)
        at = oteli_put_short(at, OTELI_SPAN_PARENT_SPAN_ID, &shape->parent, 8);
    *record = (struct oteli_record){.times_at = (uint32_t)(at - message)};
    *at++ = OTELI_TAG(OTELI_SPAN_START_TIME, OTELI_WIRE_FIXED64);
    at = oteli_put_fixed64(at, shape->start);
    *at++ = OTELI_TAG(OTELI_SPAN_END_TIME, OTELI_WIRE_FIXED64);
    at = oteli_put_fixed64(at, shape->end);
    if (shape->event != 0) {
        record->events_at = (uint32_t)(at - message);
        at = oteli_put_bytes_head(at, EVENTS_FIELD, 9);
        *at++ = OTELI_TAG(1, OTELI_WIRE_FIXED64);
        at = oteli_put_fixed64(at, shape->event);
    }
    record->length = (uint32_t)(at - message);
    record->size = (uint32_t)((sizeof *record + record->length + 7) & ~(size_t)7);
    set.at[set.count] = record;
    set.parents[set.count++] = shape->parent;
    set.length += record->size;
    return record;
}

static bool is_outermost(const struct oteli_record *record)
{
    return (record->what & OTELI_RECORD_OUTERMOST) != 0;
}

static void mark(bool has_memory)
{
    uint8_t *scratch = has_memory ? malloc(oteli_outermost_scratch(set.count)) : NULL;
    oteli_outermost_mark(set.records, set.length, scratch, set.count);
    free(scratch);
}

static int setup(void **state)
{
    (void)state;
    set.length = set.count = 0;
    oteli_fake_clock = (struct oteli_fake_clock){
        .ticks = 1000, .monotonic_ns = 1000, .wall_ns = UINT64_C(1700000000000000000)};
    assert_null(oteli_clock_start("fake"));
    return 0;
}

AROUND_EACH(setup, NULL);

TEST(a_tracestate_before_the_parent_is_passed_over)
{
    const struct oteli_record *child =
        add(&(struct shape){.id = 2, .parent = 1, .has_tracestate = true});
    const struct oteli_record *parent = add(&(struct shape){.id = 1, .has_tracestate = true});

    mark(true);

    assert_false(is_outermost(child));
    assert_true(is_outermost(parent));
}

TEST(ids_that_share_a_slot_are_told_apart)
{
    const uint64_t far = UINT64_C(1) << 60; /* what is above counts in no slot */
    for (uint64_t i = 1; i <= 100; i++)
        add(&(struct shape){.id = i * far / 8 + i,
                            .parent = i == 1 ? 0 : (i - 1) * far / 8 + i - 1});
    const struct oteli_record *stranger =
        add(&(struct shape){.id = 5, .parent = 101 * far / 8 + 101});

    mark(true);

    assert_true(is_outermost(set.at[0]));
    for (int i = 1; i < 100; i++)
        assert_false(is_outermost(set.at[i]));
    assert_true(is_outermost(stranger));
}

TEST(random_forests_are_marked_as_a_search_would)
{
    struct oteli_random random;
    assert_true(oteli_random_seed(&random));
    uint64_t ids[MOST];
    for (uint32_t count = 1; count < MOST; count += 1 + count / 7) {
        setup(NULL);
        for (uint32_t i = 0; i < count; i++) {
            ids[i] = oteli_random_id(&random);
            const uint64_t choice = oteli_random_next(&random);
            const uint64_t parent = choice % 5 == 0 || i == 0 ? choice | 1 : ids[choice % i];
            add(&(struct shape){.id = ids[i], .parent = parent});
        }
        mark(true);
        for (uint32_t i = 0; i < count; i++) {
            bool is_there = false;
            for (uint32_t k = 0; k < count; k++)
                is_there |= ids[k] == set.parents[i];
            assert_int_equal(is_outermost(set.at[i]), !is_there);
        }
    }
}

TEST(without_memory_all_are_outermost)
{
    add(&(struct shape){.id = 2, .parent = 1});
    add(&(struct shape){.id = 1});

    mark(false);

    assert_true(is_outermost(set.at[0]) && is_outermost(set.at[1]));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/perf_records_test.c - specification of reading a ring of perf events: whole samples and
 * nothing else, whatever is in it and wherever it begins; and of lists of processors. */
#include "profiling/perf_records.h"
#include "profiling/processors.h"
#include "tests/support/unit.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

enum { RING = 1024, MINE = 77, THREAD = 78, EVENT = 5 };

static union {
    uint64_t words[RING / sizeof(uint64_t)];
    uint8_t bytes[RING];
} ring;
static uint64_t head;

/* What was handed out last. */
static struct {
    unsigned count;
    uint64_t event;
    struct oteli_sample sample;
    uint64_t frames[OTELI_FRAMES_MAX];
    uint8_t stack[64];
} taken;
static uint64_t lost;
static struct oteli_perf_reader reader;

static void take(void *state, uint64_t event, const struct oteli_sample *sample)
{
    (void)state;
    taken.count++;
    taken.event = event;
    taken.sample = *sample;
    memcpy(taken.frames, sample->frames, sample->depth * sizeof *sample->frames);
    if (sample->stack_size != 0)
        memcpy(taken.stack, sample->stack, sample->stack_size);
}

static int set_up(void **state)
{
    (void)state;
    memset(&ring, 0, sizeof ring);
    memset(&taken, 0, sizeof taken);
    head = 0;
    lost = 0;
    reader.format = (struct oteli_perf_format){.process = MINE, .has_stack = true};
    reader.take = take;
    reader.lost = &lost;
    return 0;
}

static void put(uint64_t word)
{
    ring.words[head % RING / sizeof word] = word;
    head += sizeof word;
}

static void put_header(uint32_t type, size_t words)
{
    const struct perf_event_header header = {.type = type, .size = (uint16_t)(8 * (1 + words))};
    uint64_t word;
    memcpy(&word, &header, sizeof word);
    put(word);
}

static uint64_t pair(uint32_t first, uint32_t second)
{
    const uint32_t both[] = {first, second};
    uint64_t word;
    memcpy(&word, both, sizeof word);
    return word;
}

/* A sample of two frames and two words of stack, of which `valid` bytes are there. */
enum { SAMPLE_WORDS = 13 };
static void put_sample(uint32_t process, uint64_t valid)
{
    put_header(PERF_RECORD_SAMPLE, SAMPLE_WORDS);
    put(pair(process, THREAD));
    put(123456789);
    put(EVENT);
    put(3);
    put((uint64_t)PERF_CONTEXT_USER);
    put(0x1000);
    put(0x2000);
    put(PERF_SAMPLE_REGS_ABI_64);
    put(0x7fff0000);
    put(16);
    put(0x1111);
    put(0x2222);
    put(valid);
}

static void read_from(uint64_t tail)
{
    oteli_perf_read(&reader, &ring, RING, tail, head);
}

AROUND_EACH(set_up, NULL);

TEST(a_sample_has_thread_time_frames_and_stack)
{
    put_sample(MINE, 16);
    read_from(0);
    assert_int_equal(taken.count, 1);
    assert_int_equal(taken.event, EVENT);
    assert_int_equal(taken.sample.thread, THREAD);
    assert_int_equal(taken.sample.time_ns, 123456789);
    assert_int_equal(taken.sample.periods, 1);
    assert_int_equal(taken.sample.depth, 2);
    assert_int_equal(taken.frames[0], 0x1000);
    assert_int_equal(taken.frames[1], 0x2000);
    assert_int_equal(taken.sample.stack_address, 0x7fff0000);
    assert_int_equal(taken.sample.stack_size, 16);
    assert_int_equal(taken.stack[8] | taken.stack[9] << 8, 0x2222);
    assert_false(taken.sample.has_context);
    assert_int_equal(lost, 0);
}

TEST(only_bytes_that_were_copied_count)
{
    put_sample(MINE, 8);
    read_from(0);
    assert_int_equal(taken.sample.stack_size, 8);

    put_sample(MINE, 0);
    read_from(head - 8 * (1 + SAMPLE_WORDS));
    assert_int_equal(taken.count, 2);
    assert_null(taken.sample.stack);
    assert_int_equal(taken.sample.stack_size, 0);
}

TEST(a_sample_without_a_stack_is_one)
{
    reader.format.has_stack = false;
    put_header(PERF_RECORD_SAMPLE, 5);
    put(pair(MINE, THREAD));
    put(1);
    put(EVENT);
    put(1);
    put(0x1000);
    read_from(0);
    assert_int_equal(taken.count, 1);
    assert_int_equal(taken.sample.depth, 1);
    assert_null(taken.sample.stack);
}

TEST(records_go_over_the_end_of_the_ring)
{
    for (uint64_t first = 0; first < RING; first += 8) {
        head = 16 * RING + first;
        put_sample(MINE, 16);
        put_sample(MINE, 16);
        memset(&taken, 0, sizeof taken);
        read_from(16 * RING + first);
        assert_int_equal(taken.count, 2);
        assert_int_equal(taken.frames[1], 0x2000);
        assert_int_equal(taken.stack[8] | taken.stack[9] << 8, 0x2222);
    }
    assert_int_equal(lost, 0);
}

TEST(positions_go_over_64_bits)
{
    head = UINT64_MAX - 15;
    put_sample(MINE, 16);
    read_from(UINT64_MAX - 15);
    assert_int_equal(taken.count, 1);
}

TEST(other_processes_and_empty_chains_are_left_out)
{
    put_sample(MINE + 1, 16);
    put_header(PERF_RECORD_SAMPLE, 6);
    put(pair(MINE, THREAD));
    put(1);
    put(EVENT);
    put(0);
    put(PERF_SAMPLE_REGS_ABI_NONE);
    put(0);
    read_from(0);
    assert_int_equal(taken.count, 0);
    assert_int_equal(lost, 0);
}

TEST(frames_above_the_most_are_cut)
{
    static union {
        uint64_t words[512];
        uint8_t bytes[4096];
    } large;
    const struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = 8 * (5 + 200)};
    memcpy(&large.words[0], &header, sizeof header);
    large.words[1] = pair(MINE, THREAD);
    large.words[4] = 200;
    for (size_t i = 0; i < 200; i++)
        large.words[5 + i] = 0x1000 + i;
    reader.format.has_stack = false;
    oteli_perf_read(&reader, &large, sizeof large, 0, header.size);
    assert_int_equal(taken.sample.depth, OTELI_FRAMES_MAX);
    assert_int_equal(taken.frames[OTELI_FRAMES_MAX - 1], 0x1000 + OTELI_FRAMES_MAX - 1);
}

TEST(what_was_lost_is_counted)
{
    put_header(PERF_RECORD_LOST, 2);
    put(EVENT);
    put(41);
    put_header(PERF_RECORD_THROTTLE, 3);
    put(1);
    put(EVENT);
    put(EVENT);
    put_header(PERF_RECORD_EXIT, 3);
    put(0);
    put(0);
    put(0);
    put_sample(MINE, 16);
    read_from(0);
    assert_int_equal(lost, 42);
    assert_int_equal(taken.count, 1);
}

/* A length that cannot be: nothing behind it is read, and that is counted. */
TEST(a_ring_that_makes_no_sense_is_given_up)
{
    static const struct {
        size_t word;
        uint64_t value;
    } bad[] = {
        {0, 0},                          /* a header of no bytes */
        {0, UINT64_C(0x0004) << 48 | 9}, /* shorter than a header */
        {0, UINT64_C(0x0011) << 48 | 9}, /* not of whole words */
        {0, UINT64_C(0xFFF8) << 48 | 9}, /* longer than what is there */
        {4, 11},                         /* frames up to behind the end */
        {4, UINT64_MAX},
        {10, 9}, /* bytes of the stack */
        {10, 64},
        {10, UINT64_MAX - 7},
        {13, 17}, /* more of them valid than there are */
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        set_up(NULL);
        put_sample(MINE, 16);
        put_sample(MINE, 16);
        ring.words[bad[i].word] = bad[i].value;
        read_from(0);
        assert_int_equal(taken.count, 0);
        assert_int_equal(lost, 1);
    }
    set_up(NULL);
    head = RING + 8; /* more than the ring holds */
    read_from(0);
    assert_int_equal(lost, 1);
}

/* --- processors --- */

static unsigned count_of(const struct oteli_processors *processors)
{
    unsigned found = 0;
    for (unsigned number = 0; number < OTELI_PROCESSORS_MOST; number++)
        found += oteli_processors_has(processors, number);
    return found;
}

TEST(lists_are_numbers_and_ranges)
{
    struct oteli_processors processors;
    assert_true(oteli_processors_parse(&processors, "0-3,8,62-65\n"));
    assert_int_equal(count_of(&processors), 9);
    assert_true(oteli_processors_has(&processors, 3) && oteli_processors_has(&processors, 8));
    assert_true(oteli_processors_has(&processors, 62) && oteli_processors_has(&processors, 65));
    assert_false(oteli_processors_has(&processors, 4));
    assert_true(oteli_processors_parse(&processors, "8191"));
    assert_int_equal(count_of(&processors), 1);
}

TEST(all_else_is_no_list)
{
    const char *const others[] = {"",    "\n",   "x",      "-3",  "3-",  "3-x",
                                  "5-3", "8192", "0-8192", "1;2", "1 2", "99999999999999999999"};
    struct oteli_processors processors;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(oteli_processors_parse(&processors, others[i]));
}

TEST(one_is_on)
{
    struct oteli_processors processors;
    oteli_processors_online(&processors);
    assert_true(count_of(&processors) >= 1);
}

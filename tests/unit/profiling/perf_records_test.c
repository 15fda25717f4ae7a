/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/perf_records_test.c - specification of reading a ring of perf events: whole
 * samples and nothing else, wherever it begins. */
#include "profiling/perf/perf_ring.h"
#include "tests/support/unit.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

enum { RING = 1024, MINE = 77, THREAD = 78, EVENT = 5 };

static union {
    uint64_t words[RING / sizeof(uint64_t)];
    uint8_t bytes[RING];
} ring;
static uint64_t head;

static unsigned count;  /* of the samples that were handed out, */
static char last[1024]; /* and the last one, as text: expect() */
static uint64_t lost;
static struct oteli_perf_reader reader;

static void take(void *state, uint64_t event, const struct oteli_sample *sample)
{
    (void)state;
    count++;
    assert_false(sample->has_context);
    assert_int_equal(sample->stack == NULL, sample->stack_size == 0);
    snprintf(last, sizeof last, "event %u thread %u at %u, %u period:", (unsigned)event,
             (unsigned)sample->thread, (unsigned)sample->time_ns, (unsigned)sample->periods);
    for (size_t i = 0; i < sample->depth; i++)
        snprintf(strchr(last, '\0'), 16, " %x", (unsigned)sample->frames[i]);
    if (sample->stack != NULL)
        snprintf(strchr(last, '\0'), 16, ", %x:", (unsigned)sample->stack_address);
    for (size_t i = 0; i < sample->stack_size / sizeof(uint64_t); i++) {
        uint64_t word;
        memcpy(&word, (const char *)sample->stack + i * sizeof word, sizeof word);
        snprintf(strchr(last, '\0'), 16, " %x", (unsigned)word);
    }
}

static int set_up(void **state)
{
    (void)state;
    memset(&ring, 0, sizeof ring);
    count = 0;
    last[0] = '\0';
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

/* So many samples, of which the last is this. */
static void expect(unsigned samples, uint64_t losses, const char *text)
{
    assert_int_equal(count, samples);
    assert_int_equal(lost, losses);
    assert_string_equal(last, text);
}

#define HEAD "event 5 thread 78 at 123456789, 1 period: 1000 2000"

AROUND_EACH(set_up, NULL);

TEST(a_sample_has_thread_time_frames_and_as_much_of_the_stack_as_was_copied)
{
    put_sample(MINE, 16);
    read_from(0);
    expect(1, 0, HEAD ", 7fff0000: 1111 2222");
    put_sample(MINE, 8);
    read_from(head - 8 * (1 + SAMPLE_WORDS));
    expect(2, 0, HEAD ", 7fff0000: 1111");
    put_sample(MINE, 0);
    read_from(head - 8 * (1 + SAMPLE_WORDS));
    expect(3, 0, HEAD);
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
    expect(1, 0, "event 5 thread 78 at 1, 1 period: 1000");
}

TEST(records_go_over_the_end_of_the_ring_and_positions_over_64_bits)
{
    for (uint64_t first = 0; first < RING; first += 8) {
        set_up(NULL);
        head = first != 0 ? 16 * RING + first : UINT64_MAX - 15;
        const uint64_t tail = head;
        put_sample(MINE, 16);
        put_sample(MINE, 16);
        read_from(tail);
        expect(2, 0, HEAD ", 7fff0000: 1111 2222");
    }
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
    expect(0, 0, "");
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
    char expected[16];
    snprintf(expected, sizeof expected, " %x", 0x1000 + OTELI_FRAMES_MAX - 1);
    assert_string_equal(strrchr(last, ' '), expected);
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
    expect(1, 42, HEAD ", 7fff0000: 1111 2222");
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
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        set_up(NULL);
        put_sample(MINE, 16);
        put_sample(MINE, 16);
        ring.words[bad[i].word] = bad[i].value;
        read_from(0);
        expect(0, 1, "");
    }
    set_up(NULL);
    head = RING + 8; /* more than the ring holds */
    read_from(0);
    expect(0, 1, "");
}

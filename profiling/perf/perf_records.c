/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/perf/perf_records.c - the records of a ring, one after the other. The profiler's
 * thread. */
#include "profiling/perf/perf_records.h"

#include <linux/perf_event.h>
#include <string.h>

/* What is left of a record. */
struct cursor {
    const uint64_t *at;
    size_t words;
};

static bool take_word(struct cursor *cursor, uint64_t *word)
{
    if (cursor->words == 0)
        return false;
    *word = *cursor->at++;
    cursor->words--;
    return true;
}

/* Two numbers of 32 bits in the order of memory. */
static bool take_pair(struct cursor *cursor, uint32_t pair[2])
{
    uint64_t word;
    if (!take_word(cursor, &word))
        return false;
    memcpy(pair, &word, sizeof word);
    return true;
}

static bool skip_words(struct cursor *cursor, uint64_t words)
{
    if (cursor->words < words)
        return false;
    cursor->at += words;
    cursor->words -= (size_t)words;
    return true;
}

/* The chain has marks in it that say whose addresses follow; only user mode is asked for. */
static bool read_chain(struct cursor *cursor, uint64_t frames[OTELI_FRAMES_MAX], size_t *depth)
{
    uint64_t count;
    if (!take_word(cursor, &count))
        return false;
    const uint64_t *chain = cursor->at;
    if (!skip_words(cursor, count))
        return false;
    *depth = 0;
    for (uint64_t i = 0; i < count && *depth < OTELI_FRAMES_MAX; i++) {
        if (chain[i] < (uint64_t)PERF_CONTEXT_MAX)
            frames[(*depth)++] = chain[i];
    }
    return true;
}

/* The stack pointer, the bytes that were asked for, and how many of them are there. */
static bool read_stack(struct cursor *cursor, struct oteli_sample *sample)
{
    uint64_t abi, pointer = 0, size, valid;
    if (!take_word(cursor, &abi) ||
        (abi != PERF_SAMPLE_REGS_ABI_NONE && !take_word(cursor, &pointer)) ||
        !take_word(cursor, &size))
        return false;
    if (size == 0)
        return true;
    const void *bytes = cursor->at;
    if (size % sizeof(uint64_t) != 0 || !skip_words(cursor, size / sizeof(uint64_t)) ||
        !take_word(cursor, &valid) || valid > size)
        return false;
    if (abi != PERF_SAMPLE_REGS_ABI_64 || valid == 0)
        return true;
    sample->stack = bytes;
    sample->stack_size = (size_t)valid;
    sample->stack_address = pointer;
    return true;
}

/* False: it makes no sense. */
static bool read_sample(struct oteli_perf_reader *reader, struct cursor cursor)
{
    uint64_t frames[OTELI_FRAMES_MAX];
    struct oteli_sample sample = {.periods = 1, .frames = frames};
    uint32_t ids[2]; /* process, thread */
    uint64_t event;
    if (!take_pair(&cursor, ids) || !take_word(&cursor, &sample.time_ns) ||
        !take_word(&cursor, &event) || !read_chain(&cursor, frames, &sample.depth))
        return false;
    if (reader->format.has_stack && !read_stack(&cursor, &sample))
        return false;
    sample.time_ns += (uint64_t)reader->format.clock_offset_ns;
    sample.thread = (pid_t)ids[1];
    if ((pid_t)ids[0] == reader->format.process && sample.depth != 0)
        reader->take(reader->state, event, &sample);
    return true;
}

/* The event that had no room, and how many. */
static bool read_lost(const struct oteli_perf_reader *reader, struct cursor cursor)
{
    uint64_t event, count;
    if (!take_word(&cursor, &event) || !take_word(&cursor, &count))
        return false;
    *reader->lost += count;
    return true;
}

static bool read_record(struct oteli_perf_reader *reader, uint32_t type, struct cursor cursor)
{
    switch (type) {
    case PERF_RECORD_SAMPLE:
        return read_sample(reader, cursor);
    case PERF_RECORD_LOST:
        return read_lost(reader, cursor);
    case PERF_RECORD_THROTTLE: /* the kernel found that it was too much; how much, it does not
                                  say */
        ++*reader->lost;
        return true;
    default:
        return true;
    }
}

/* A record that goes over the end of the ring is put together. */
static const uint64_t *in_one_piece(struct oteli_perf_reader *reader, const uint8_t *ring,
                                    uint64_t size, uint64_t offset, uint64_t length)
{
    if (length <= size - offset)
        return (const uint64_t *)(const void *)(ring + offset);
    const size_t first = (size_t)(size - offset);
    memcpy(reader->scratch, ring + offset, first);
    memcpy((uint8_t *)reader->scratch + first, ring, (size_t)length - first);
    return reader->scratch;
}

void oteli_perf_read(struct oteli_perf_reader *reader, const void *ring, uint64_t size,
                     uint64_t tail, uint64_t head)
{
    bool is_sound = head - tail <= size && tail % sizeof(uint64_t) == 0;
    while (is_sound && tail != head) {
        struct perf_event_header header;
        const uint64_t offset = tail & (size - 1);
        const uint64_t left = head - tail;
        is_sound = left >= sizeof header;
        if (!is_sound)
            break;
        memcpy(&header, (const uint8_t *)ring + offset, sizeof header);
        is_sound = header.size >= sizeof header && header.size <= left &&
                   header.size % sizeof(uint64_t) == 0;
        if (!is_sound)
            break;
        const struct cursor body = {
            in_one_piece(reader, ring, size, offset, header.size) + 1,
            header.size / sizeof(uint64_t) - 1,
        };
        is_sound = read_record(reader, header.type, body);
        tail += header.size;
    }
    if (!is_sound)
        ++*reader->lost;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/perf/perf_records.c - the records of a ring, one after the other. The profiler's
 * thread. */
#include "profiling/perf/perf_records.h"

#include <linux/perf_event.h>
#include <string.h>

/* Behind the header of PERF_RECORD_SAMPLE: what perf_ring.c asks for, in the kernel's order. */
struct sample_body {
    uint32_t process;
    uint32_t thread;
    uint64_t time_ns;
    uint64_t event;
    uint64_t frame_count;
    uint64_t frames[];
};

/* Behind the header of PERF_RECORD_LOST. */
struct lost_body {
    uint64_t event;
    uint64_t count;
};

/* Which kind of registers there are, the stack pointer, the size of the copy, its bytes, and how
 * many of these are there. */
static void add_stack(struct oteli_sample *sample, const uint64_t *at)
{
    const uint64_t *size = at + (at[0] != PERF_SAMPLE_REGS_ABI_NONE ? 2 : 1);
    const uint64_t *bytes = size + 1;
    if (at[0] != PERF_SAMPLE_REGS_ABI_64 || *size == 0 || bytes[*size / sizeof *bytes] == 0)
        return;
    sample->stack = bytes;
    sample->stack_size = (size_t)bytes[*size / sizeof *bytes];
    sample->stack_address = at[1];
}

/* The chain has marks in it that say whose addresses follow; only user mode is asked for. */
static void read_sample(struct oteli_perf_reader *reader, const struct sample_body *body)
{
    uint64_t frames[OTELI_FRAMES_MAX];
    struct oteli_sample sample = {.time_ns =
                                      body->time_ns + (uint64_t)reader->format.clock_offset_ns,
                                  .periods = 1,
                                  .thread = (pid_t)body->thread,
                                  .frames = frames};
    for (uint64_t i = 0; i < body->frame_count && sample.depth < OTELI_FRAMES_MAX; i++)
        if (body->frames[i] < (uint64_t)PERF_CONTEXT_MAX)
            frames[sample.depth++] = body->frames[i];
    if (reader->format.has_stack)
        add_stack(&sample, body->frames + body->frame_count);
    if ((pid_t)body->process == reader->format.process && sample.depth != 0)
        reader->take(reader->state, body->event, &sample);
}

static void read_record(struct oteli_perf_reader *reader, uint32_t type, const void *body)
{
    switch (type) {
    case PERF_RECORD_SAMPLE:
        read_sample(reader, body);
        break;
    case PERF_RECORD_LOST:
        *reader->lost += ((const struct lost_body *)body)->count;
        break;
    case PERF_RECORD_THROTTLE: /* the kernel found that it was too much; how much, it does not
                                  say */
        ++*reader->lost;
        break;
    default:
        break;
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
    bool is_sound = head - tail <= size;
    while (is_sound && tail != head) {
        struct perf_event_header header;
        const uint64_t offset = tail & (size - 1);
        memcpy(&header, (const uint8_t *)ring + offset, sizeof header);
        is_sound = header.size >= sizeof header && header.size <= head - tail &&
                   header.size % sizeof(uint64_t) == 0;
        if (is_sound)
            read_record(reader, header.type,
                        in_one_piece(reader, ring, size, offset, header.size) + 1);
        tail += header.size;
    }
    if (!is_sound)
        ++*reader->lost;
}

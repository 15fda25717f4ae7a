/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/perf_records.c - any bytes in a ring of perf events. What is handed out lies in the
 * ring or in the reader, and nothing else is read.
 *
 * The first byte of an input says where in the ring its records begin, which decides what goes over
 * the end, and whether samples have bytes of the stack. */
#include "profiling/perf/perf_records.h"
#include "tests/fuzz/fuzz.h"

enum { BEFORE = 1, SMALLEST = 8, LARGEST = 1 << 17, PROCESS = 0x4D4D4D4D };

struct seen {
    const uint8_t *ring;
    size_t size;
    const struct oteli_perf_reader *reader;
    uint64_t bytes;
};

static bool lies_in(const void *bytes, size_t length, const void *memory, size_t size)
{
    const uintptr_t first = (uintptr_t)bytes, begin = (uintptr_t)memory;
    return first >= begin && first - begin <= size && length <= size - (first - begin);
}

static void take(void *state, uint64_t event, const struct oteli_sample *sample)
{
    struct seen *seen = state;
    uint8_t all = (uint8_t)event;
    fuzz_check(sample->depth != 0 && sample->depth <= OTELI_FRAMES_MAX);
    for (size_t i = 0; i < sample->depth; i++)
        fuzz_check(sample->frames[i] < (uint64_t)-4095);
    fuzz_check((sample->stack == NULL) == (sample->stack_size == 0));
    if (sample->stack != NULL)
        fuzz_check(lies_in(sample->stack, sample->stack_size, seen->ring, seen->size) ||
                   lies_in(sample->stack, sample->stack_size, seen->reader->scratch,
                           sizeof seen->reader->scratch));
    for (size_t i = 0; i < sample->stack_size; i++) /* for the sanitizer */
        all ^= ((const uint8_t *)sample->stack)[i];
    seen->bytes += all;
}

/* The ring has just the bytes of the input, and no more, for the sanitizer. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct oteli_perf_reader reader;
    if (size < BEFORE || size > LARGEST)
        return 0;
    const size_t length = size - BEFORE;
    size_t room = SMALLEST;
    while (room < length)
        room *= 2;
    uint8_t *ring = malloc(room);
    if (ring == NULL)
        return 0;
    memset(ring, 0, room);
    const uint64_t tail = (uint64_t)(data[0] >> 1) * sizeof(uint64_t);
    for (size_t i = 0; i < length; i++)
        ring[(tail + i) & (room - 1)] = data[BEFORE + i];
    uint64_t lost = 0;
    struct seen seen = {ring, room, &reader, 0};
    reader.format = (struct oteli_perf_format){.process = PROCESS, .has_stack = (data[0] & 1) != 0};
    reader.take = take;
    reader.state = &seen;
    reader.lost = &lost;
    oteli_perf_read(&reader, ring, room, tail, tail + length);
    free(ring);
    return 0;
}

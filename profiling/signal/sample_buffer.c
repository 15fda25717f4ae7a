/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/signal/sample_buffer.c - see sample_buffer.h. Owns the slots. */
#include "profiling/signal/sample_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

enum { LEAST_SLOTS = 8 };

bool oteli_sample_buffer_init(struct oteli_sample_buffer *buffer, size_t bytes)
{
    size_t count = bytes / sizeof *buffer->slots;
    if (count < LEAST_SLOTS)
        count = LEAST_SLOTS;
    void *slots = mmap(NULL, count * sizeof *buffer->slots, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (slots == MAP_FAILED)
        return false;
    *buffer = (struct oteli_sample_buffer){.slots = slots, .count = count};
    for (size_t i = 0; i < count; i++)
        buffer->slots[i].view.process = getpid();
    return true;
}

void oteli_sample_buffer_fini(struct oteli_sample_buffer *buffer)
{
    if (buffer->slots != NULL)
        munmap(buffer->slots, buffer->count * sizeof *buffer->slots);
    *buffer = (struct oteli_sample_buffer){0};
}

struct oteli_sample_slot *oteli_sample_buffer_reserve(struct oteli_sample_buffer *buffer)
{
    uint64_t head;
    do {
        /* The tail first: it only grows, so what looks free is. */
        const uint64_t tail = oteli_load_acquire_64(&buffer->tail);
        head = oteli_load_relaxed_64(&buffer->head);
        if (head - tail >= buffer->count) {
            oteli_add_full_64(&buffer->lost, 1);
            return NULL;
        }
    } while (!oteli_cas_full_64(&buffer->head, head, head + 1));
    return &buffer->slots[head % buffer->count];
}

void oteli_sample_buffer_publish(struct oteli_sample_slot *slot)
{
    oteli_store_release_32(&slot->is_ready, 1);
}

const struct oteli_sample *oteli_sample_buffer_oldest(const struct oteli_sample_buffer *buffer)
{
    const struct oteli_sample_slot *slot = &buffer->slots[buffer->tail % buffer->count];
    return oteli_load_acquire_32(&slot->is_ready) != 0 ? &slot->sample : NULL;
}

void oteli_sample_buffer_give_back(struct oteli_sample_buffer *buffer)
{
    oteli_store_relaxed_32(&buffer->slots[buffer->tail % buffer->count].is_ready, 0);
    oteli_store_release_64(&buffer->tail, buffer->tail + 1);
}

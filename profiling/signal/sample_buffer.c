/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/signal/sample_buffer.c - see sample_buffer.h. Owns the words. */
#include "profiling/signal/sample_buffer.h"

#include <sys/mman.h>

enum { LEAST_WORDS = 512 };

bool oteli_sample_buffer_init(struct oteli_sample_buffer *buffer, size_t bytes)
{
    uint64_t count = LEAST_WORDS;
    while (count < bytes / sizeof(uint64_t))
        count *= 2;
    void *words = mmap(NULL, count * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (words == MAP_FAILED)
        return false;
    *buffer = (struct oteli_sample_buffer){.words = words, .mask = count - 1};
    return true;
}

void oteli_sample_buffer_fini(struct oteli_sample_buffer *buffer)
{
    if (buffer->words != NULL)
        munmap(buffer->words, (buffer->mask + 1) * sizeof(uint64_t));
    *buffer = (struct oteli_sample_buffer){0};
}

bool oteli_sample_buffer_reserve(struct oteli_sample_buffer *buffer, uint32_t count, uint64_t *at)
{
    const uint64_t taken = (uint64_t)count + 1;
    uint64_t head;
    do {
        /* The tail first: it only grows, so what looks free is. */
        const uint64_t tail = oteli_load_acquire_64(&buffer->tail);
        head = oteli_load_relaxed_64(&buffer->head);
        if (head - tail + taken > buffer->mask + 1) {
            oteli_add_full_64(&buffer->lost, 1);
            return false;
        }
    } while (!oteli_cas_full_64(&buffer->head, head, head + taken));
    *at = head;
    return true;
}

void oteli_sample_buffer_publish(struct oteli_sample_buffer *buffer, uint64_t at, uint32_t count)
{
    oteli_store_release_64(&buffer->words[at & buffer->mask], (uint64_t)count + 1);
}

uint32_t oteli_sample_buffer_take(struct oteli_sample_buffer *buffer, uint64_t *words,
                                  uint32_t most)
{
    const uint64_t tail = oteli_load_relaxed_64(&buffer->tail);
    if (tail == oteli_load_relaxed_64(&buffer->head))
        return 0;
    const uint64_t taken = oteli_load_acquire_64(&buffer->words[tail & buffer->mask]);
    if (taken == 0)
        return 0;
    const uint32_t count = (uint32_t)taken - 1;
    for (uint64_t i = 0; i < taken; i++) {
        uint64_t *word = &buffer->words[(tail + i) & buffer->mask];
        if (i != 0 && i <= most)
            words[i - 1] = *word;
        oteli_store_relaxed_64(word, 0);
    }
    oteli_store_release_64(&buffer->tail, tail + taken);
    return count < most ? count : most;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/encode/reusable_buffer.c - the contracts are in reusable_buffer.h. One thread at a
 * time; owns the memory of its buffer. */
#include "exporters/otlp/encode/reusable_buffer.h"

#include <stdlib.h>

enum {
    SPARE_MAX = 64 * 1024,
    ALWAYS_KEPT = 64 * 1024 /* a buffer of this size is never given back */
};

void oteli_reusable_buffer_free(struct oteli_reusable_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct oteli_reusable_buffer){0};
}

static size_t with_spare(size_t needed)
{
    const size_t spare = needed / 4;
    return needed + (spare < SPARE_MAX ? spare : SPARE_MAX);
}

bool oteli_reusable_buffer_fit(struct oteli_reusable_buffer *buffer, size_t needed)
{
    const size_t faded = buffer->recent - buffer->recent / 8;
    buffer->recent = needed > faded ? needed : faded;
    const bool is_huge = buffer->room > ALWAYS_KEPT && buffer->room / 4 > buffer->recent;
    if (needed <= buffer->room && !is_huge)
        return true;
    free(buffer->bytes);
    buffer->room = with_spare(buffer->recent);
    buffer->bytes = malloc(buffer->room);
    if (buffer->bytes == NULL)
        buffer->room = 0;
    return buffer->bytes != NULL;
}

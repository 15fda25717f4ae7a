/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/encode/reusable_buffer.h - memory that is kept from request to request, and given
 * back some time after one huge request.
 *
 * Threads:  one thread at a time for a buffer. */
#ifndef OTELI_REUSABLE_BUFFER_H
#define OTELI_REUSABLE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oteli_reusable_buffer {
    uint8_t *bytes;
    size_t room;
    size_t recent; /* the most that was needed of late; it fades */
};

void oteli_reusable_buffer_free(struct oteli_reusable_buffer *buffer);

/* Have room for `needed` bytes, and not far more than was needed lately. What was in it is lost.
 * false: no memory, and no room at all. */
bool oteli_reusable_buffer_fit(struct oteli_reusable_buffer *buffer, size_t needed);

#endif

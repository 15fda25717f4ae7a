/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/encode/size_limit.c - the contracts are in exporters/otlp/encode/size_limit.h.
 * Exporter thread. */
#include "exporters/otlp/encode/size_limit.h"

enum {
    SUCCESSES_NEEDED = 64, /* so that at most one request in as many is refused again */
    GROWTH = 8             /* an eighth more */
};

size_t oteli_size_limit_spans(const struct oteli_size_limit *size_limit, size_t spans, size_t bytes)
{
    if (size_limit->limit_bytes == 0 || bytes <= size_limit->limit_bytes)
        return spans;
    const size_t share = (size_t)((double)spans * (double)size_limit->limit_bytes / (double)bytes);
    if (share >= spans)
        return spans - 1;
    return share != 0 ? share : 1;
}

void oteli_size_limit_too_large(struct oteli_size_limit *size_limit, size_t spans, size_t bytes)
{
    if (spans < 2)
        return;
    if (size_limit->limit_bytes == 0 || bytes <= size_limit->limit_bytes)
        size_limit->limit_bytes = bytes - 1;
    size_limit->is_guess = true;
    size_limit->successes = 0;
}

void oteli_size_limit_accepted(struct oteli_size_limit *size_limit, size_t bytes, bool is_part,
                               size_t max_bytes)
{
    if (is_part && size_limit->is_guess) {
        /* The parts of a request differ in size: not the smallest of them is to be the limit. */
        const size_t half = (size_limit->limit_bytes + 1) / 2;
        const size_t more = bytes + bytes / GROWTH > half ? bytes + bytes / GROWTH : half;
        if (more < size_limit->limit_bytes)
            size_limit->limit_bytes = more;
        size_limit->is_guess = false;
        return;
    }
    if (bytes < size_limit->limit_bytes / 2 || size_limit->limit_bytes == 0 ||
        ++size_limit->successes < SUCCESSES_NEEDED)
        return;
    size_limit->successes = 0;
    size_limit->limit_bytes += size_limit->limit_bytes / GROWTH + 1;
    if (size_limit->limit_bytes >= max_bytes)
        size_limit->limit_bytes = 0;
}

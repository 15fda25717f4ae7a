/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/encode/size_limit.h - how large a request may be, as far as a receiver has shown.
 *
 * What is too large is halved until it is taken. The size that was taken, and a little more, is the
 * limit for the requests that come then; after many successes it grows, because the receiver may
 * take more by now.
 *
 * Pure functions over a struct of the caller's, zero at first. Sizes are plain bytes: receivers
 * limit those, and they are the same for every compression. */
#ifndef OTELI_SIZE_LIMIT_H
#define OTELI_SIZE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

struct oteli_size_limit {
    size_t limit_bytes; /* 0: nothing is known */
    bool is_guess;      /* it was refused, or little more was, and no part has been taken yet */
    unsigned successes; /* with requests near the limit */
};

/* How many of the spans of a request to send: all that there are, or fewer, but one at least. */
size_t oteli_size_limit_spans(const struct oteli_size_limit *size_limit, size_t spans,
                              size_t bytes);

/* A request was too large. One of a single span says nothing about others. */
void oteli_size_limit_too_large(struct oteli_size_limit *size_limit, size_t spans, size_t bytes);

/* A request was taken: a part of one that had been refused, or any other. `max_bytes` is what we
 * limit ourselves to. */
void oteli_size_limit_accepted(struct oteli_size_limit *size_limit, size_t bytes, bool is_part,
                               size_t max_bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/fitting.h - how large a request may be, as far as a receiver has shown: half of
 * the one that was too large for it, and after a while of success a little more again.
 *
 * Pure functions over a struct of the caller's. Sizes are plain bytes, because that is what
 * receivers limit, and what is the same for every compression. */
#ifndef OTELI_OTLP_FITTING_H
#define OTELI_OTLP_FITTING_H

#include <stddef.h>

struct oteli_fitting {
    size_t limit_bytes; /* 0: nothing is known */
    unsigned successes; /* since it was set */
};

/* How many of the spans of a request to send: all that there are, or fewer, but one at least. */
size_t oteli_fitting_spans(const struct oteli_fitting *fitting, size_t spans, size_t bytes);

/* A request was too large. One of a single span says nothing about others. */
void oteli_fitting_refused(struct oteli_fitting *fitting, size_t spans, size_t bytes);

/* A request was taken; `max_bytes` is what we limit ourselves to. */
void oteli_fitting_taken(struct oteli_fitting *fitting, size_t bytes, size_t max_bytes);

#endif

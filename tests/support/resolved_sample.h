/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/resolved_sample.h - samples made by hand, for the builder of profiles.
 *
 * Threads:  any; a sample is a value that its maker keeps. */
#ifndef OTELI_TESTS_RESOLVED_SAMPLE_H
#define OTELI_TESTS_RESOLVED_SAMPLE_H

#include "profiling/labels/resolve.h"

struct made_sample {
    struct oteli_sample sample;
    struct oteli_resolved resolved;
};

/* One of this process's first thread, under no label and in no code. */
void made_sample_begin(struct made_sample *made);

/* Code one frame further out; of all but the first a return address. */
void made_sample_frame(struct made_sample *made, const void *address);

/* A label further out. NULL ends the keys and values. */
void made_sample_label(struct made_sample *made, ...) __attribute__((sentinel));

/* Ids that are these numbers; 0: no root is known. */
void made_sample_span(struct made_sample *made, uint64_t trace, uint64_t span, uint64_t root);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/profile_double.h - a profile made by hand, as exporters get them.
 *
 *     struct profile_double made;
 *     profile_double_init(&made);                   the shop: see profile_double.c
 *     ... made.samples[0].count = 7 ...
 *     export_profile(state, &made.profile, 1000);
 *
 * Everything lives in the struct; texts are borrowed. */
#ifndef OTELI_TESTS_PROFILE_DOUBLE_H
#define OTELI_TESTS_PROFILE_DOUBLE_H

#include "profiling/profile/profile_model.h"

enum { PROFILE_DOUBLE_MOST = 64, PROFILE_DOUBLE_PERIOD_NS = 10000000 };

struct profile_double {
    otel_profile profile; /* its tables are those below, their counts say how much of them */
    char strings[PROFILE_DOUBLE_MOST][4096];
    struct oteli_profile_mapping mappings[PROFILE_DOUBLE_MOST];
    struct oteli_profile_location locations[PROFILE_DOUBLE_MOST];
    uint32_t stacks[PROFILE_DOUBLE_MOST][8];
    struct oteli_span_ids links[PROFILE_DOUBLE_MOST];
    struct oteli_profile_pair label_sets[PROFILE_DOUBLE_MOST][4];
    struct oteli_profile_thread threads[PROFILE_DOUBLE_MOST];
    struct oteli_profile_sample samples[PROFILE_DOUBLE_MOST];
    struct oteli_interner_row rows[8][PROFILE_DOUBLE_MOST];
};

/* One without samples: its tables with their empty first rows, and a thread. */
void profile_double_begin(struct profile_double *made);

/* Two threads of a shop that look for things and sell them, in five samples. */
void profile_double_init(struct profile_double *made);

/* Add to the tables. Each gives the number of the row; a text that is there already its own. */
uint32_t profile_double_text(struct profile_double *made, const char *text);
uint32_t profile_double_stack(struct profile_double *made, const uint32_t *locations,
                              uint32_t count);
uint32_t profile_double_link(struct profile_double *made, uint8_t trace, uint8_t span,
                             uint8_t root);
uint32_t profile_double_labels(struct profile_double *made, const char *const *texts,
                               uint32_t count);
void profile_double_sample(struct profile_double *made, struct oteli_profile_sample sample);

#endif

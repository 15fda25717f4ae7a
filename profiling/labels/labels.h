/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/labels/labels.h - what trampolines have stood for, and when.
 *
 * Each trampoline has a ring of the last OTELI_LABEL_HISTORY labels that it was acquired for, by
 * value, written by the thread that acquires it and read by the profiler's thread (a sequence lock
 * each). Trampolines are taken in turn, so that histories last.
 *
 * Threads:  oteli_labels_find: the profiler's thread; the switch: start/stop only. */
#ifndef OTELI_LABELS_H
#define OTELI_LABELS_H

#include <otel/profile.h>
#include <string.h>

enum { OTELI_LABEL_HISTORY = 8 };

/* A span, by its ids. */
struct oteli_span_ids {
    uint8_t trace_id[16];
    uint8_t span_id[8]; /* zero: no span */
    uint8_t root_id[8]; /* the local root's; zero: not known */
};

/* A label as it was acquired. It is copied in words. */
struct oteli_label {
    uint64_t start_ns; /* CLOCK_MONOTONIC */
    struct oteli_span_ids span;
    uint8_t around_id[8]; /* the span that was current where it was made; zero: none */
    uint64_t text_length;
    char text[OTEL_PROFILE_LABEL_BYTES]; /* key NUL value NUL, and so on; as the program said it */
};

/* Whether an id of a span is none: zero. */
static inline bool oteli_is_no_id(const uint8_t id[8])
{
    static const uint8_t none[8];
    return memcmp(id, none, sizeof none) == 0;
}

/* What trampoline `index` stood for at that time; behind its text there may be anything. false: its
 * history does not go back that far. */
bool oteli_labels_find(unsigned index, uint64_t time_ns, struct oteli_label *label);

/* The label that a trampoline had at that time for this span; false: there is none that is
 * known. */
bool oteli_labels_find_span(const uint8_t span_id[8], uint64_t time_ns, struct oteli_label *label);

/* Labels are empty while this is off. */
void oteli_labels_switch(bool is_on);

struct oteli_labels_counts {
    uint64_t refused;
    uint64_t cut;
};
struct oteli_labels_counts oteli_labels_counts(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/ot_tracestate.h - the member `ot` of a tracestate: read th and rv, and write th.
 *
 *     vendor=1,ot=th:c;rv:6e6d1a75832a2f;xy:7,other=2
 *              └───────── its value ────────┘
 *
 * Everything that is not `th` is kept as it came, in its order: other sub-keys, a rv that cannot
 * be used, the members of others; but not what is no sub-key with a value. A member that was
 * changed goes to the front, as W3C asks.
 *
 * Threads:  any; no state. Nothing is allocated.
 * Source:   OpenTelemetry specification, trace/tracestate-handling.md; W3C Trace Context Level 2,
 *           3.3 and 3.5. */
#ifndef OTELI_OT_TRACESTATE_H
#define OTELI_OT_TRACESTATE_H

#include <otel/sampler.h>

#define OTELI_THRESHOLD_END (INT64_C(1) << 56) /* one more than the largest */

enum { OTELI_OT_MAX = 256, OTELI_TH_SIZE = 15 };

struct oteli_ot {
    otel_slice value;  /* of the member; empty: there is none */
    int64_t threshold; /* of th; OTEL_NEVER_SAMPLE: none, or none that is valid */
    bool has_random;
    uint64_t random; /* of rv */
    bool has_th;     /* there is some th, valid or not */
};

/* Read the member `ot`; one that is longer than OTELI_OT_MAX counts as if it were not there. */
struct oteli_ot oteli_ot_read(const char *tracestate);

/* Write `tracestate` with this threshold (OTEL_NEVER_SAMPLE: without any) and otherwise with the
 * `ot` that was read, whatever `ot` the text itself has. Text that is too long loses members
 * of others. False: there is no room for the threshold in `ot`, so it is written without. */
bool oteli_ot_write(const char *tracestate, const struct oteli_ot *ot, int64_t threshold,
                    char out[OTEL_TRACESTATE_SIZE]);

/* The threshold as the value of th: hexadecimal digits without the zeros at the end. */
void oteli_threshold_text(int64_t threshold, char text[OTELI_TH_SIZE]);

/* Whether it is a probability: from 2^-56 to 1, or 0: never. */
bool oteli_probability_is_valid(double ratio);

/* The threshold that keeps this part of all traces, from 0 (exclusive) to 1: with four
 * significant digits, so that th stays short. The part that is kept is that of the threshold. */
int64_t oteli_threshold_of(double ratio);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/labels/resolve.h - which labels a sample is under, and which span it is for.
 *
 * Threads:  the profiler's thread. */
#ifndef OTELI_RESOLVE_H
#define OTELI_RESOLVE_H

#include "profiling/base/sample.h"
#include "profiling/labels/labels.h"

enum { OTELI_LABELS_NESTED = 8 };

enum oteli_found {
    OTELI_FOUND_BY_CHAIN,
    OTELI_FOUND_BY_SCAN,
    OTELI_FOUND_BY_THREAD,
    OTELI_UNLABELLED,
    OTELI_NO_HISTORY
};

/* What is known of a sample once its labels have been looked up. */
struct oteli_resolved {
    const struct oteli_sample *sample;
    enum oteli_found found;
    size_t depth; /* frames without what trampolines add, each trampoline unified */
    uint64_t frames[OTELI_FRAMES_MAX];
    bool has_span; /* the innermost */
    struct oteli_span_ids span;
    size_t label_count; /* innermost first; of equal keys the first one counts */
    struct oteli_label labels[OTELI_LABELS_NESTED];
};

/* Frames first, then (if there are bytes of the stack) the scan, then the thread's own context. A
 * span of the thread's context that is not the label's wins over it: it was entered further in. */
void oteli_resolve(const struct oteli_sample *sample, struct oteli_resolved *resolved);

#endif

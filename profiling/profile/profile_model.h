/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profile/profile_model.h - the profile of one interval, as exporters get it: tables that
 * refer to each other by index (oteli_interner_at has the row). Index 0 of strings, mappings, links
 * and label sets is the empty one.
 *
 *     samples ─▶ stacks ─▶ locations ─▶ mappings
 *        ├────▶ links (trace, span)
 *        └────▶ label sets ─▶ keys and values ─▶ strings
 *
 * No two rows of a table are equal, and each is referred to by something, but for those of samples
 * that did not fit.
 *
 * Threads:  the profiler's thread. */
#ifndef OTELI_PROFILE_MODEL_H
#define OTELI_PROFILE_MODEL_H

#include "profiling/base/interner.h"
#include "profiling/labels/labels.h"
#include "profiling/symbols/elf_image.h"

#include <otel/profiler.h>
#include <sys/types.h>

struct oteli_profile_mapping {
    uint64_t start; /* addresses in memory */
    uint64_t limit;
    uint64_t file_offset;
    uint32_t path; /* string */
    struct oteli_elf_identity identity;
};

struct oteli_profile_location {
    uint32_t mapping; /* 0: in none that is known */
    uint64_t address; /* in memory: of the leaf as it was; of a return address one less */
    uint32_t name;    /* of the function as its symbol has it, string; 0: not known */
};

struct oteli_profile_pair {
    uint32_t key; /* strings */
    uint32_t value;
};

struct oteli_profile_thread {
    pid_t id;
    uint32_t name; /* string; 0: not known */
};

struct oteli_profile_sample {
    uint32_t stack;
    uint32_t link;
    uint32_t label_set;
    uint32_t thread; /* in threads */
    uint64_t count;  /* samples */
    uint64_t cpu_ns;
};

/* What exporters say while they have a profile (profile_export.c). */
struct oteli_profile_exporting {
    uint64_t dropped;              /* samples: otel_profile_drop */
    int (*meanwhile)(void *state); /* otel_profile_meanwhile; NULL: there is nothing to do */
    void *state;
};

struct otel_profile {
    uint64_t start_unix_ns;
    uint64_t duration_ns;
    uint64_t period_ns; /* of processor time between two samples */

    struct oteli_interner strings; /* each with its NUL */
    struct oteli_interner mappings;
    struct oteli_interner locations;
    struct oteli_interner stacks;     /* a row: uint32_t for each location, leaf first */
    struct oteli_interner links;      /* a row: a struct oteli_span_ids */
    struct oteli_interner label_sets; /* a row: a struct oteli_profile_pair for each key, by key */
    struct oteli_interner threads;
    struct oteli_interner samples;
    uint32_t first_sample; /* of those that are to be exported */
    uint32_t sample_count;
    uint64_t links_over;                       /* samples whose own span did not fit */
    struct oteli_profile_exporting *exporting; /* NULL: not by a profiler */
};

static inline const char *oteli_profile_text(const otel_profile *profile, uint32_t string)
{
    return oteli_interner_at(&profile->strings, string);
}

#endif

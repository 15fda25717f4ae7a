/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profile/profile_builder.h - makes the profile of an interval from samples: equal ones
 * (stack, labels, link, thread) become one with a count.
 *
 * Memory is bounded.
 *
 * Threads:  the profiler's thread. */
#ifndef OTELI_PROFILE_BUILDER_H
#define OTELI_PROFILE_BUILDER_H

#include "profiling/labels/resolve.h"
#include "profiling/profile/profile_model.h"

struct oteli_profile_builder;

struct oteli_profile_builder *oteli_profile_builder_new(uint64_t period_ns, uint32_t max_links);
void oteli_profile_builder_free(struct oteli_profile_builder *builder);

/* false: no memory, or no room in this interval; the sample is not in it. */
bool oteli_profile_builder_add(struct oteli_profile_builder *builder,
                               const struct oteli_resolved *resolved);

/* How many samples have been added since the last finish. */
uint64_t oteli_profile_builder_samples(const struct oteli_profile_builder *builder);

/* Give a name to the functions that have been added since the last finish, as far as that can be
 * done until then on the monotonic clock (symbolizer.h); before finish, which forgets what was
 * mapped. */
void oteli_profile_builder_name(struct oteli_profile_builder *builder, uint64_t deadline_ns);

/* Everything since the last one; NULL: no memory (the samples are gone). Valid until it is
 * forgotten, or the next one finishes; samples may be added meanwhile.
 * Reads /proc/self/maps and build ids; files that have been unmapped since the last one are still
 * known. */
const otel_profile *oteli_profile_builder_finish(struct oteli_profile_builder *builder);

/* Free the memory of what was finished. */
void oteli_profile_builder_forget(struct oteli_profile_builder *builder);

#endif

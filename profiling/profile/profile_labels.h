/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profile/profile_labels.h - the keys and values of a sample's labels as a set.
 *
 * Threads:  one thread at a time for a table. */
#ifndef OTELI_PROFILE_LABELS_H
#define OTELI_PROFILE_LABELS_H

#include "profiling/base/interner.h"
#include "profiling/labels/labels.h"

/* Add a text, of which what is not UTF-8 is replaced. It has a NUL behind it. false: no room. */
bool oteli_profile_string(struct oteli_interner *strings, const char *text, size_t length,
                          uint32_t *index);

/* The set of all keys of these labels, the innermost first, each with the first value it has,
 * sorted by key. Keys without a character are left out. false: no room. */
bool oteli_profile_label_set(struct oteli_interner *strings, struct oteli_interner *sets,
                             const struct oteli_label *labels, size_t count, uint32_t *index);

#endif

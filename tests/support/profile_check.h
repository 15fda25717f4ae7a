/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/profile_check.h - what holds of every profile: indices are inside their tables, no
 * two rows are equal, every row is referred to, label sets are sorted, and the counts fit.
 *
 * Threads:  the test's. */
#ifndef OTELI_TESTS_PROFILE_CHECK_H
#define OTELI_TESTS_PROFILE_CHECK_H

#include "profiling/profile_model.h"

/* Fails the cmocka test that runs, if something does not. */
void profile_check(const otel_profile *profile);

/* All samples as lines of text, in the order of the profile:
 *     count cpu_ns | frame frame | trace span root | key=value key=value | thread
 * with frames as their distance from `base`, and ids as hexadecimal numbers; "-" for no link. To
 * free(). */
char *profile_text(const otel_profile *profile, uint64_t base);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_pprof.h - read a pprof file: the profile.proto of google/pprof, whatever
 * program wrote it. What refers to something that is not in the file is as if it were not there.
 *
 * Threads:  one. */
#ifndef FLAME_PPROF_H
#define FLAME_PPROF_H

#include "pprof/profile.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flame_profile {
    Perftools__Profiles__Profile *file;
    size_t value; /* the one to show of each sample's */
};

/* `bytes` are not compressed, and borrowed for the call. NULL: it is read, and flame_profile_fini
 * frees it; otherwise what is wrong, as the end of a sentence that begins with the file's name. */
const char *flame_profile_read(struct flame_profile *profile, const void *bytes, size_t length);
void flame_profile_fini(struct flame_profile *profile);

/* What a member of a message refers to. "" and NULL: that is not there. */
const char *flame_profile_text(const struct flame_profile *profile, int64_t index);
const Perftools__Profiles__Mapping *flame_profile_mapping(const struct flame_profile *profile,
                                                          uint64_t id);
const Perftools__Profiles__Function *flame_profile_function(const struct flame_profile *profile,
                                                            uint64_t id);
const Perftools__Profiles__Location *flame_profile_location(const struct flame_profile *profile,
                                                            uint64_t id);

#endif

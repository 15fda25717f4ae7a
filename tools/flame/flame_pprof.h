/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_pprof.h - read a pprof file: the profile.proto of google/pprof, whatever
 * program wrote it.
 *
 * A file that refers to something that is not in it is refused when it is read, so that no reader
 * of a profile has to look again.
 *
 * Threads:  one. */
#ifndef FLAME_PPROF_H
#define FLAME_PPROF_H

#include "pprof/profile.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FLAME_FRAMES_MAX = 4096 };

struct flame_profile {
    Perftools__Profiles__Profile *file;
    size_t value; /* the one to show of each sample's */
};

/* `bytes` are not compressed, and borrowed for the call. NULL: it is read, and flame_profile_fini
 * frees it; otherwise what is wrong, as the end of a sentence that begins with the file's name. */
const char *flame_profile_read(struct flame_profile *profile, const void *bytes, size_t length);
void flame_profile_fini(struct flame_profile *profile);

/* What a member of a message refers to. A location may have no mapping (id 0), and a line no
 * function: NULL. */
static inline const char *flame_profile_text(const struct flame_profile *profile, int64_t index)
{
    return profile->file->string_table[index];
}
const Perftools__Profiles__Mapping *flame_profile_mapping(const struct flame_profile *profile,
                                                          uint64_t id);
const Perftools__Profiles__Function *flame_profile_function(const struct flame_profile *profile,
                                                            uint64_t id);
const Perftools__Profiles__Location *flame_profile_location(const struct flame_profile *profile,
                                                            uint64_t id);

#endif

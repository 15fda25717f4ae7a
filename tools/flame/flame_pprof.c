/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_pprof.c - see flame_pprof.h. One thread.
 *
 * protobuf-c decodes the file; here its mappings, functions and locations are sorted by id. */
#include "tools/flame/flame_pprof.h"

#include <stdlib.h>
#include <string.h>

/* --- Messages by their id --- */

/* Each message that has an id has it in this place. */
enum { ID_AT = offsetof(Perftools__Profiles__Mapping, id) };
_Static_assert(ID_AT == offsetof(Perftools__Profiles__Function, id), "place of the id");
_Static_assert(ID_AT == offsetof(Perftools__Profiles__Location, id), "place of the id");

/* Of the message that an element of a table points to. */
static uint64_t id_of(const void *element)
{
    const char *message;
    uint64_t id;
    memcpy(&message, element, sizeof message);
    memcpy(&id, message + ID_AT, sizeof id);
    return id;
}

static int compare_messages(const void *left, const void *right)
{
    return (id_of(left) > id_of(right)) - (id_of(left) < id_of(right));
}

static int compare_key(const void *key, const void *element)
{
    const uint64_t id = *(const uint64_t *)key;
    return (id > id_of(element)) - (id < id_of(element));
}

static void sort(void *table, size_t count)
{
    if (count != 0)
        qsort(table, count, sizeof(void *), compare_messages);
}

static const void *find(const void *table, size_t count, uint64_t id)
{
    const void *const *element =
        count != 0 ? bsearch(&id, table, count, sizeof(void *), compare_key) : NULL;
    return element != NULL ? *element : NULL;
}

const Perftools__Profiles__Mapping *flame_profile_mapping(const struct flame_profile *profile,
                                                          uint64_t id)
{
    return find(profile->file->mapping, profile->file->n_mapping, id);
}

const Perftools__Profiles__Function *flame_profile_function(const struct flame_profile *profile,
                                                            uint64_t id)
{
    return find(profile->file->function, profile->file->n_function, id);
}

const Perftools__Profiles__Location *flame_profile_location(const struct flame_profile *profile,
                                                            uint64_t id)
{
    return find(profile->file->location, profile->file->n_location, id);
}

const char *flame_profile_text(const struct flame_profile *profile, int64_t index)
{
    return index >= 0 && (uint64_t)index < profile->file->n_string_table
               ? profile->file->string_table[index]
               : "";
}

/* --- The whole file --- */

/* The value to show: the one that the file names, or its last. */
static size_t choose_value(const struct flame_profile *profile)
{
    const Perftools__Profiles__Profile *file = profile->file;
    const char *chosen = flame_profile_text(profile, file->default_sample_type);
    size_t i = file->n_sample_type - 1;
    for (size_t at = 0; at < file->n_sample_type && chosen[0] != '\0'; at++)
        if (strcmp(flame_profile_text(profile, file->sample_type[at]->type), chosen) == 0)
            i = at;
    return i;
}

/* What is wrong with it, or NULL. */
static const char *check(const Perftools__Profiles__Profile *file)
{
    if (file == NULL || file->n_string_table == 0)
        return "is no pprof profile, or only a part of one";
    if (file->n_sample_type == 0)
        return "has no values";
    for (size_t i = 0; i < file->n_sample; i++)
        if (file->sample[i]->n_value != file->n_sample_type)
            return "has a sample with more or fewer values than it has types of values";
    return NULL;
}

const char *flame_profile_read(struct flame_profile *profile, const void *bytes, size_t length)
{
    profile->file = NULL;
    if (length == 0)
        return "is empty";
    profile->file = perftools__profiles__profile__unpack(NULL, length, bytes);
    Perftools__Profiles__Profile *file = profile->file;
    const char *fault = check(file);
    if (fault != NULL) {
        flame_profile_fini(profile);
        return fault;
    }
    sort(file->mapping, file->n_mapping);
    sort(file->function, file->n_function);
    sort(file->location, file->n_location);
    profile->value = choose_value(profile);
    return NULL;
}

void flame_profile_fini(struct flame_profile *profile)
{
    perftools__profiles__profile__free_unpacked(profile->file, NULL);
    profile->file = NULL;
}

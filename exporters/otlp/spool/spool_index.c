/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/spool_index.c - see spool_index.h. */
#include "exporters/otlp/spool/spool_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_AT_FIRST = 64 };

void oteli_spool_index_fini(struct oteli_spool_index *index)
{
    oteli_spool_count_left(index->spans, index->bytes);
    oteli_spool_count_foreign(-(int64_t)index->foreign);
    free(index->entries);
    *index = (struct oteli_spool_index){0};
}

static struct oteli_spool_entry *end_of(const struct oteli_spool_index *index)
{
    return index->entries != NULL ? index->entries + index->count : NULL;
}

bool oteli_spool_index_fit(struct oteli_spool_index *index)
{
    if (index->count < index->room)
        return true;
    const size_t room = index->room != 0 ? 2 * index->room : ROOM_AT_FIRST;
    struct oteli_spool_entry *entries = realloc(index->entries, room * sizeof *entries);
    if (entries == NULL)
        return false;
    index->entries = entries;
    index->room = room;
    return true;
}

static void begin_to_wait(struct oteli_spool_index *index, struct oteli_spool_entry *entry,
                          enum oteli_spool_way way)
{
    const uint64_t bytes = oteli_spool_file_bytes(&entry->file);
    entry->state = OTELI_SPOOL_WAITS;
    index->waiting++;
    index->spans += entry->file.spans;
    index->bytes += bytes;
    oteli_spool_comes(way, entry->file.spans, bytes);
}

void oteli_spool_index_add(struct oteli_spool_index *index, const struct oteli_spool_file *file,
                           int64_t born_ns)
{
    struct oteli_spool_entry *at = end_of(index);
    index->count++;
    for (; at != index->entries && oteli_spool_file_compare(&at[-1].file, file) > 0; at--)
        at[0] = at[-1];
    at->file = *file;
    at->born_ns = born_ns;
    begin_to_wait(index, at, OTELI_SPOOL_STORED);
}

struct oteli_spool_entry *oteli_spool_index_next(const struct oteli_spool_index *index,
                                                 const struct oteli_spool_entry *entry)
{
    struct oteli_spool_entry *at =
        entry != NULL ? index->entries + (entry - index->entries) + 1 : index->entries;
    for (; at != end_of(index); at++)
        if (at->state == OTELI_SPOOL_WAITS)
            return at;
    return NULL;
}

static int compare(const void *a, const void *b)
{
    const struct oteli_spool_entry *one = a;
    const struct oteli_spool_entry *other = b;
    return oteli_spool_file_compare(&one->file, &other->file);
}

struct oteli_spool_entry *oteli_spool_index_find(const struct oteli_spool_index *index,
                                                 const struct oteli_spool_file *file)
{
    const struct oteli_spool_entry wanted = {.file = *file};
    if (index->count == 0)
        return NULL;
    return bsearch(&wanted, index->entries, index->count, sizeof wanted, compare);
}

void oteli_spool_index_settle(struct oteli_spool_index *index, struct oteli_spool_entry *entry,
                              enum oteli_spool_way way, uint64_t rejected)
{
    const uint64_t spans = entry->file.spans;
    const uint64_t bytes = oteli_spool_file_bytes(&entry->file);
    entry->state = OTELI_SPOOL_IS_DONE;
    index->waiting--;
    index->spans -= spans;
    index->bytes -= bytes;
    oteli_spool_goes(way, spans, bytes, rejected < spans ? rejected : spans);
}

void oteli_spool_index_disown(struct oteli_spool_index *index, struct oteli_spool_entry *entry)
{
    oteli_spool_index_settle(index, entry, OTELI_SPOOL_TAKEN, 0);
    entry->state = OTELI_SPOOL_IS_FOREIGN;
    index->foreign++;
    oteli_spool_count_foreign(1);
}

void oteli_spool_index_forget(struct oteli_spool_index *index, struct oteli_spool_entry *entry)
{
    index->count--;
    memmove(entry, entry + 1, (size_t)(end_of(index) - entry) * sizeof *entry);
}

/* ---- reading the directory ------------------------------------------------------------ */

/* Note an entry of the directory; false: no memory. */
static bool note_found(struct oteli_spool_index *found, const struct oteli_spool_dir *dir,
                       const struct dirent *entry, uint64_t unix_ns, int64_t boot_ns,
                       int64_t stale_ns)
{
    struct oteli_spool_file file;
    const bool may_be_file = entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN;
    const enum oteli_spool_name kind =
        may_be_file ? oteli_spool_name_read(entry->d_name, &file) : OTELI_SPOOL_OTHER;
    if (kind == OTELI_SPOOL_OTHER) {
        found->foreign++;
        return true;
    }
    const int64_t age_ns = (int64_t)(unix_ns - file.written_unix_ns);
    if (kind == OTELI_SPOOL_TEMPORARY) {
        if (age_ns > stale_ns)
            (void)oteli_spool_dir_remove(dir, &file, kind);
        return true;
    }
    if (!oteli_spool_index_fit(found))
        return false;
    found->entries[found->count++] =
        (struct oteli_spool_entry){.file = file, .born_ns = boot_ns - (age_ns > 0 ? age_ns : 0)};
    return true;
}

static void lose(struct oteli_spool_index *index, struct oteli_spool_entry *known)
{
    if (known->state == OTELI_SPOOL_WAITS)
        oteli_spool_index_settle(index, known, OTELI_SPOOL_TAKEN, 0);
}

/* Go through both, what was known and what is there, in order. */
static void merge(struct oteli_spool_index *index, struct oteli_spool_index *found)
{
    struct oteli_spool_entry *known = index->entries;
    struct oteli_spool_entry *const known_end = end_of(index);
    for (size_t i = 0; i < found->count; i++) {
        struct oteli_spool_entry *entry = &found->entries[i];
        for (; known != known_end && compare(known, entry) < 0; known++)
            lose(index, known);
        if (known != known_end && compare(known, entry) == 0)
            *entry = *known++;
        else
            begin_to_wait(index, entry, OTELI_SPOOL_FOUND);
        found->foreign += entry->state == OTELI_SPOOL_IS_FOREIGN;
    }
    for (; known != known_end; known++)
        lose(index, known);
}

bool oteli_spool_index_scan(struct oteli_spool_index *index, const struct oteli_spool_dir *dir,
                            uint64_t unix_ns, int64_t boot_ns, int64_t stale_ns)
{
    struct oteli_spool_index found = {0};
    const struct dirent *entry;
    DIR *stream = oteli_spool_dir_list(dir);
    if (stream == NULL)
        return false;
    while ((entry = oteli_spool_dir_next(stream)) != NULL &&
           note_found(&found, dir, entry, unix_ns, boot_ns, stale_ns))
        ;
    const int error = entry != NULL ? ENOMEM : errno;
    closedir(stream);
    if (error != 0) {
        free(found.entries);
        errno = error;
        return false;
    }
    if (found.count != 0)
        qsort(found.entries, found.count, sizeof *found.entries, compare);
    merge(index, &found);
    oteli_spool_count_foreign((int64_t)(found.foreign - index->foreign));
    index->foreign = found.foreign;
    free(index->entries);
    index->entries = found.entries;
    index->count = found.count;
    index->room = found.room;
    return true;
}

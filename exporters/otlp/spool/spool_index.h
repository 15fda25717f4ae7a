/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/spool_index.h - what a process knows of a spool's directory: the files in
 * it, from the oldest to the newest, and how they are counted (spool_count.h).
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_SPOOL_INDEX_H
#define OTELI_SPOOL_INDEX_H

#include "exporters/otlp/spool/spool_count.h"
#include "exporters/otlp/spool/spool_dir.h"

enum oteli_spool_state {
    OTELI_SPOOL_WAITS,     /* to be sent */
    OTELI_SPOOL_IS_DONE,   /* with, but it cannot be removed */
    OTELI_SPOOL_IS_FOREIGN /* in spite of its name */
};

struct oteli_spool_entry {
    struct oteli_spool_file file;
    enum oteli_spool_state state;
    int64_t born_ns; /* CLOCK_BOOTTIME when its age was zero; below 0: before the boot */
};

/* All zero at first. */
struct oteli_spool_index {
    struct oteli_spool_entry *entries; /* `count` of them, in order */
    size_t count;
    size_t room;
    size_t waiting; /* of these */
    uint64_t spans; /* of those that wait */
    uint64_t bytes; /* likewise */
    uint64_t foreign;
};

/* What waits is left behind. */
void oteli_spool_index_fini(struct oteli_spool_index *index);

/* Have room for one entry more; false: no memory. */
bool oteli_spool_index_fit(struct oteli_spool_index *index);

/* A file that was written; there is room. It mostly is the newest. */
void oteli_spool_index_add(struct oteli_spool_index *index, const struct oteli_spool_file *file,
                           int64_t born_ns);

/* The oldest that waits, or that which waits next after `entry`; NULL: none does. */
struct oteli_spool_entry *oteli_spool_index_next(const struct oteli_spool_index *index,
                                                 const struct oteli_spool_entry *entry);

/* The entry of this file; NULL: there is none. */
struct oteli_spool_entry *oteli_spool_index_find(const struct oteli_spool_index *index,
                                                 const struct oteli_spool_file *file);

/* The file does not wait any more, for this reason; of its spans so many were rejected. It is
 * done with. */
void oteli_spool_index_settle(struct oteli_spool_index *index, struct oteli_spool_entry *entry,
                              enum oteli_spool_way way, uint64_t rejected);

/* Another sender has the file, and will deliver it. */
void oteli_spool_index_disown(struct oteli_spool_index *index, struct oteli_spool_entry *entry);

/* The file is not there any more, and does not wait. */
void oteli_spool_index_forget(struct oteli_spool_index *index, struct oteli_spool_entry *entry);

/* Read the directory. What is new in it was found, what is gone was taken. The age of a file that
 * is found follows from the wall-clock time in its name; from then on it is counted by the boot
 * clock, which nothing sets. `unix_ns` and `boot_ns` are what the two clocks say now. Temporary
 * files that are older than `stale_ns` are removed. false: the directory cannot be read now,
 * and errno says why. */
bool oteli_spool_index_scan(struct oteli_spool_index *index, const struct oteli_spool_dir *dir,
                            uint64_t unix_ns, int64_t boot_ns, int64_t stale_ns);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/file.h - a configuration file that is being read: memory for what is read from it,
 * and what is wrong with it, one line of the log each: file:line:column: reason.
 *
 * Threads:  start/stop only. */
#ifndef OTELI_CONFIG_READ_FILE_H
#define OTELI_CONFIG_READ_FILE_H

#include "common/base/pool.h"

#include <otel/exporter.h>

/* Counted from 1; 0: it is about the whole file, and only the file is named. */
struct oteli_place {
    uint32_t line;
    uint32_t column;
};

struct oteli_file {
    const char *path; /* as it was given */
    struct oteli_pool pool;
    size_t faults;
    bool has_no_memory; /* and so there may be more faults */
};

/* The file cannot be used: an error. After the first hundred they are only counted. */
void oteli_fault(struct oteli_file *file, struct oteli_place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* It can, but not all of it is as it was meant: a warning, which is not counted. */
void oteli_doubt(const struct oteli_file *file, struct oteli_place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* There is no memory for going on: one fault, however often it is said. */
void oteli_fault_no_memory(struct oteli_file *file);

/* OTEL_OK, or what a file with these faults is. */
otel_status oteli_file_status(const struct oteli_file *file);

/* `count` zeroed pieces of the pool, and a copy of a text with a NUL behind it. NULL: no memory,
 * which is a fault. */
void *oteli_file_take(struct oteli_file *file, size_t count, size_t size);
char *oteli_file_copy(struct oteli_file *file, otel_slice text);

#endif

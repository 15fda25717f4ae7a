/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/diagnostics.h - what is wrong with a file, one line of the log each:
 * file:line:column: reason. Start/stop only. */
#ifndef OTELI_DIAGNOSTICS_H
#define OTELI_DIAGNOSTICS_H

#include <otel/base.h>

/* Counted from 1; 0: it is about the whole file, and only the file is named. */
struct oteli_place {
    uint32_t line;
    uint32_t column;
};

struct oteli_faults {
    const char *file; /* its path, as it was given */
    size_t count;
    bool has_no_memory; /* and so there may be more of them */
};

/* The file cannot be used: an error. After the first hundred they are only counted. */
void oteli_fault(struct oteli_faults *faults, struct oteli_place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* It can, but not all of it is as it was meant: a warning, which is not counted. */
void oteli_doubt(struct oteli_faults *faults, struct oteli_place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* There is no memory for going on: one fault, however often it is said. */
void oteli_fault_no_memory(struct oteli_faults *faults);

/* OTEL_OK, or what a file with these faults is. */
otel_status oteli_faults_status(const struct oteli_faults *faults);

#endif

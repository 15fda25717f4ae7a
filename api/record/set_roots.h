/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/set_roots.h - find the spans of a set whose parent is not in it, once for a set, on
 * the thread that closes it; and convert the times of a record, on the thread that has it. */
#ifndef OTELI_SET_ROOTS_H
#define OTELI_SET_ROOTS_H

#include "api/record/line.h"

/* Bytes of memory, aligned to 8, that marking so many records wants. */
size_t oteli_outermost_scratch(uint32_t count);

/* Mark them as OTELI_RECORD_OUTERMOST; without memory, all of them. */
void oteli_outermost_mark(uint8_t *records, uint32_t length, uint8_t *scratch, uint32_t count);

/* Turn a record's ticks into nanoseconds, where they are. Once more does nothing. */
OTELI_INTERNAL_API void oteli_record_convert(struct oteli_record *record);

/* The same in a copy of its message. */
void oteli_record_convert_copy(const struct oteli_record *record, uint8_t *message);

#endif

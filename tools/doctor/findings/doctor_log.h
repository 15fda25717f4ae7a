/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/findings/doctor_log.h - what otel-c says in its log while the doctor looks, kept
 * for the report.
 *
 * Any thread writes (the exporter's too); reading is for when no SDK runs. The first lines are
 * kept, each once. */
#ifndef DOCTOR_LOG_H
#define DOCTOR_LOG_H

#include <stddef.h>

enum { DOCTOR_LOG_LINES = 32 };

/* From now on the log goes here and nowhere else. */
void doctor_log_begin(void);

/* Warnings and errors, oldest first. */
size_t doctor_log_count(void);
const char *doctor_log_line(size_t index);

/* The last line, if there are more than `before`; otherwise "". */
const char *doctor_log_after(size_t before);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_redact.h - show what otel-doctor has seen without what is secret in
 * it, beside common/text/secrets.h. Pure functions; what does not fit into `size` bytes is cut.
 * Each returns `out`. */
#ifndef DOCTOR_SECRETS_H
#define DOCTOR_SECRETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* One that other people wrote, for a line on a terminal: printable, one line. */
const char *doctor_one_line(const char *text, size_t length, char *out, size_t size);

/* Write a line without its end, such that a terminal obeys no byte of it: control characters, those
 * that turn the direction of text round, and bytes that are not UTF-8 appear as \xHH; in JSON as
 * \uHHHH. */
void doctor_put_visible(FILE *out, const char *line, size_t length, bool is_json);

#endif

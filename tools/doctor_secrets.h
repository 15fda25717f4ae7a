/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor_secrets.h - show what otel-doctor has seen without what is secret in it, beside
 * common/secrets.h. Pure functions; what does not fit into `size` bytes is cut. Each returns
 * `out`. */
#ifndef DOCTOR_SECRETS_H
#define DOCTOR_SECRETS_H

#include <stddef.h>

/* A list of headers, with asterisks for their values. */
const char *doctor_hide_headers(const char *list, char *out, size_t size);

/* One that other people wrote, for a line on a terminal: printable, one line. */
const char *doctor_one_line(const char *text, size_t length, char *out, size_t size);

#endif

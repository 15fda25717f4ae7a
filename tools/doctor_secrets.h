/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor_secrets.h - show settings without what is secret in them. Pure functions; what does
 * not fit into `size` bytes is cut. Each returns `out`. */
#ifndef DOCTOR_SECRETS_H
#define DOCTOR_SECRETS_H

#include <stddef.h>

/* A text with URLs in it, without their users, passwords and queries, for which asterisks stand;
 * also where a password has characters in it that a URL cannot have there, and in front of a host
 * without a scheme. */
const char *doctor_hide_in_urls(const char *text, char *out, size_t size);

/* A list of headers, with asterisks for their values. */
const char *doctor_hide_headers(const char *list, char *out, size_t size);

/* One that other people wrote, for a line on a terminal: printable, one line. */
const char *doctor_one_line(const char *text, size_t length, char *out, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_typos.h - variables that look like a typing error. Pure functions,
 * but for the table of settings. */
#ifndef DOCTOR_TYPOS_H
#define DOCTOR_TYPOS_H

#include <stddef.h>

/* How many letters have to be put in, taken out, replaced or swapped with their neighbour to make
 * one name the other, letters in any case; SIZE_MAX for names that are too long. */
size_t doctor_distance(const char *a, const char *b);

/* The variable that `name` was probably meant to be; NULL: it is one of ours, one that others read
 * (OpenTelemetry has more variables than we have), or nothing like any. */
const char *doctor_typo(const char *name, size_t length);

#endif

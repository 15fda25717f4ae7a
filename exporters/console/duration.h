/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/duration.h - how long something took, as people say it. Any thread. */
#ifndef OTELI_CONSOLE_DURATION_H
#define OTELI_CONSOLE_DURATION_H

#include <stddef.h>
#include <stdint.h>

enum { OTELI_DURATION_TEXT = 24 }; /* bytes that hold any of them */

/* Write three digits and a unit, rounded: "850 ns", "12.3 ms", "2m05s", "3h20m". */
void oteli_format_duration(char *text, size_t size, uint64_t ns);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/said.h - what the log says from a level on: lines, each with its end. */
#ifndef OTELI_TESTS_SAID_H
#define OTELI_TESTS_SAID_H

#include <otel/sdk.h>
#include <stdio.h>
#include <string.h>

static char said[4096];
static unsigned said_lines;
static otel_log_level said_level;

static void said_take(void *state, otel_log_level level, const char *message)
{
    const size_t used = strlen(said);
    (void)state;
    if (level > said_level)
        return;
    said_lines++;
    snprintf(said + used, sizeof said - used, "%s\n", message);
}

static inline void said_begin(otel_log_level level)
{
    said_level = level;
    said[0] = '\0';
    said_lines = 0;
    otel_log_set_handler(said_take, NULL);
}

static inline void said_end(void)
{
    otel_log_set_handler(NULL, NULL);
}

#endif

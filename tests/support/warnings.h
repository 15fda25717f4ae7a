/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/warnings.h - a fixture: the log's warnings are counted, and nothing that a test
 * allocates may stay. For cmocka_unit_test_setup_teardown and its like, in one source a program. */
#ifndef OTELI_TESTS_WARNINGS_H
#define OTELI_TESTS_WARNINGS_H

#include "tests/support/leaks.h"

#include <otel/sdk.h>
#include <stdio.h>

static size_t warnings;
static char last_warning[300];

static void warnings_count(void *state, otel_log_level level, const char *message)
{
    (void)state;
    if (level != OTEL_LOG_WARN)
        return;
    warnings++;
    snprintf(last_warning, sizeof last_warning, "%s", message);
}

static inline int warnings_begin(void **state)
{
    (void)state;
    warnings = 0;
    last_warning[0] = '\0';
    otel_log_set_handler(warnings_count, NULL);
    oteli_leaks_begin();
    return 0;
}

static inline int warnings_end(void **state)
{
    (void)state;
    oteli_leaks_check();
    otel_log_set_handler(NULL, NULL);
    return 0;
}

#endif

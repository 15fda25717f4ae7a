/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/findings/doctor_log.c - the contracts are in
 * tools/doctor/findings/doctor_log.h. */
#include "tools/doctor/findings/doctor_log.h"

#include <otel/base.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct {
    pthread_mutex_t mutex;
    char lines[DOCTOR_LOG_LINES][512];
    size_t count;
} kept = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void keep(void *state, otel_log_level level, const char *message)
{
    (void)state;
    if (level > OTEL_LOG_WARN)
        return;
    char line[sizeof kept.lines[0]];
    snprintf(line, sizeof line, "%s", message); /* it has no passwords */
    pthread_mutex_lock(&kept.mutex);
    size_t i = 0;
    while (i < kept.count && strcmp(kept.lines[i], line) != 0)
        i++;
    if (i == kept.count && kept.count < DOCTOR_LOG_LINES)
        memcpy(kept.lines[kept.count++], line, sizeof line);
    pthread_mutex_unlock(&kept.mutex);
}

void doctor_log_begin(void)
{
    otel_log_set_handler(keep, NULL);
}

size_t doctor_log_count(void)
{
    return kept.count;
}

const char *doctor_log_line(size_t index)
{
    return kept.lines[index];
}

const char *doctor_log_after(size_t before)
{
    return kept.count > before ? kept.lines[kept.count - 1] : "";
}

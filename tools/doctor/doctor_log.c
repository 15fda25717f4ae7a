/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/doctor_log.c - the contracts are in tools/doctor/doctor_log.h. */
#include "tools/doctor/doctor_log.h"

#include <otel/base.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct {
    pthread_mutex_t mutex;
    char lines[DOCTOR_LOG_LINES][512];
    size_t count;
    char last[512];
} kept = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void keep(void *state, otel_log_level level, const char *message)
{
    (void)state;
    if (level > OTEL_LOG_WARN)
        return;
    pthread_mutex_lock(&kept.mutex);
    snprintf(kept.last, sizeof kept.last, "%s", message); /* it has no passwords */
    size_t i = 0;
    while (i < kept.count && strcmp(kept.lines[i], kept.last) != 0)
        i++;
    if (i == kept.count && kept.count < DOCTOR_LOG_LINES)
        memcpy(kept.lines[kept.count++], kept.last, sizeof kept.last);
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

const char *doctor_log_last(void)
{
    return kept.last;
}

void doctor_log_forget(void)
{
    kept.last[0] = '\0';
}

void doctor_log_clear(void)
{
    kept.count = 0;
    doctor_log_forget();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/file.c - see file.h. */
#include "config/read/file.h"

#include "common/log.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { MOST_LINES = 100, REASON_BYTES = 640 };

static void say(otel_log_level level, const char *path, struct oteli_place place,
                const char *format, va_list arguments) __attribute__((format(printf, 4, 0)));

static void say(otel_log_level level, const char *path, struct oteli_place place,
                const char *format, va_list arguments)
{
    char reason[REASON_BYTES];
    vsnprintf(reason, sizeof reason, format, arguments);
    if (place.line == 0)
        OTELI_LOG_ALWAYS(level, "%.240s: %s", path, reason);
    else
        OTELI_LOG_ALWAYS(level, "%.240s:%" PRIu32 ":%" PRIu32 ": %s", path, place.line,
                         place.column, reason);
}

void oteli_fault(struct oteli_file *file, struct oteli_place place, const char *format, ...)
{
    file->faults++;
    if (file->faults > MOST_LINES) {
        if (file->faults == MOST_LINES + 1)
            OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "%.240s: there are more faults", file->path);
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    say(OTEL_LOG_ERROR, file->path, place, format, arguments);
    va_end(arguments);
}

void oteli_doubt(const struct oteli_file *file, struct oteli_place place, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(OTEL_LOG_WARN, file->path, place, format, arguments);
    va_end(arguments);
}

void oteli_fault_no_memory(struct oteli_file *file)
{
    if (file->has_no_memory)
        return;
    file->has_no_memory = true;
    oteli_fault(file, (struct oteli_place){.line = 0}, "no memory");
}

otel_status oteli_file_status(const struct oteli_file *file)
{
    if (file->has_no_memory)
        return OTEL_ERROR_NO_MEMORY;
    return file->faults != 0 ? OTEL_ERROR_INVALID_ARGUMENT : OTEL_OK;
}

void *oteli_file_take(struct oteli_file *file, size_t count, size_t size)
{
    void *taken = oteli_pool_array(&file->pool, count, size);
    if (taken == NULL)
        oteli_fault_no_memory(file);
    return taken;
}

char *oteli_file_copy(struct oteli_file *file, otel_slice text)
{
    char *copy = oteli_pool_text(&file->pool, text.data, text.length);
    if (copy == NULL)
        oteli_fault_no_memory(file);
    return copy;
}

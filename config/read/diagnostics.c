/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/diagnostics.c - see diagnostics.h. */
#include "config/read/diagnostics.h"

#include "common/log.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { MOST_LINES = 100, REASON_BYTES = 640 };

static void say(otel_log_level level, const char *file, struct oteli_place place,
                const char *format, va_list arguments) __attribute__((format(printf, 4, 0)));

static void say(otel_log_level level, const char *file, struct oteli_place place,
                const char *format, va_list arguments)
{
    char reason[REASON_BYTES];
    vsnprintf(reason, sizeof reason, format, arguments);
    if (place.line == 0)
        OTELI_LOG_ALWAYS(level, "%.240s: %s", file, reason);
    else
        OTELI_LOG_ALWAYS(level, "%.240s:%" PRIu32 ":%" PRIu32 ": %s", file, place.line,
                         place.column, reason);
}

void oteli_fault(struct oteli_faults *faults, struct oteli_place place, const char *format, ...)
{
    faults->count++;
    if (faults->count > MOST_LINES) {
        if (faults->count == MOST_LINES + 1)
            OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "%.240s: there are more faults", faults->file);
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    say(OTEL_LOG_ERROR, faults->file, place, format, arguments);
    va_end(arguments);
}

void oteli_doubt(struct oteli_faults *faults, struct oteli_place place, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(OTEL_LOG_WARN, faults->file, place, format, arguments);
    va_end(arguments);
}

void oteli_fault_no_memory(struct oteli_faults *faults)
{
    if (faults->has_no_memory)
        return;
    faults->has_no_memory = true;
    oteli_fault(faults, (struct oteli_place){.line = 0}, "no memory");
}

otel_status oteli_faults_status(const struct oteli_faults *faults)
{
    if (faults->has_no_memory)
        return OTEL_ERROR_NO_MEMORY;
    return faults->count != 0 ? OTEL_ERROR_INVALID_ARGUMENT : OTEL_OK;
}

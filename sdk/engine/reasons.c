/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/engine/reasons.c - the names of why spans were dropped or withheld. Any thread. */
#include <otel/sdk.h>

const char *otel_drop_reason_string(otel_drop_reason reason)
{
    static const char *const names[OTEL_DROP_REASON_COUNT] = {
        [OTEL_DROP_QUEUE_FULL] = "queue_full",
        [OTEL_DROP_BYTE_LIMIT] = "byte_limit",
        [OTEL_DROP_TOO_LARGE] = "too_large",
        [OTEL_DROP_ALREADY_SHUTDOWN] = "already_shutdown",
        [OTEL_DROP_SHUTDOWN_TIMEOUT] = "shutdown_timeout",
        [OTEL_DROP_RETRY_EXHAUSTED] = "retry_exhausted",
        [OTEL_DROP_PERMANENT_ERROR] = "permanent_error",
        [OTEL_DROP_UNCONFIRMED] = "unconfirmed",
        [OTEL_DROP_EXPORT_TIMEOUT] = "export_timeout",
        [OTEL_DROP_NO_MEMORY] = "no_memory",
        [OTEL_DROP_REENTRANT] = "reentrant",
        [OTEL_DROP_HELD_LIMIT] = "held_limit",
        [OTEL_DROP_ABANDONED] = "abandoned",
        [OTEL_DROP_FORKED_CHILD] = "forked_child",
    };
    return reason >= OTEL_DROP_QUEUE_FULL && reason < OTEL_DROP_REASON_COUNT ? names[reason]
                                                                             : "unknown";
}

const char *otel_withheld_reason_string(otel_withheld_reason reason)
{
    static const char *const names[OTEL_WITHHELD_REASON_COUNT] = {
        [OTEL_WITHHELD_CANCELLED] = "cancelled", [OTEL_WITHHELD_NOT_KEPT] = "not_kept",
        [OTEL_WITHHELD_COLLECTED] = "collected", [OTEL_WITHHELD_TOO_SHORT] = "too_short",
        [OTEL_WITHHELD_LATE] = "late",           [OTEL_WITHHELD_UNMOUNTED] = "unmounted",
    };
    return reason >= OTEL_WITHHELD_CANCELLED && reason < OTEL_WITHHELD_REASON_COUNT ? names[reason]
                                                                                    : "unknown";
}

/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/status.c - the words for otel_status, and which version is running. Any thread. */
#include <otel/base.h>

const char *otel_status_string(otel_status status)
{
    switch (status) {
    case OTEL_OK:
        return "ok";
    case OTEL_ERROR_INVALID_ARGUMENT:
        return "invalid argument";
    case OTEL_ERROR_NO_MEMORY:
        return "no memory";
    case OTEL_ERROR_TIMEOUT:
        return "out of time";
    case OTEL_ERROR_EXPORT_FAILED:
        return "not everything was delivered";
    case OTEL_ERROR_ALREADY_STARTED:
        return "already started";
    case OTEL_ERROR_NOT_STARTED:
        return "not started";
    case OTEL_ERROR_SYSTEM:
        return "a system call failed";
    case OTEL_ERROR_UNSUPPORTED:
        return "not in this build";
    }
    return "unknown status";
}

const char *otel_version(void)
{
    return OTEL_VERSION;
}

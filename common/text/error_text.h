/* SPDX-License-Identifier: Apache-2.0 */
/* common/text/error_text.h - the words of the C library for an error number, for messages.
 *
 *     struct oteli_error_text text;
 *     OTELI_LOG(OTEL_LOG_ERROR, "%s cannot be read: %s", path, oteli_error_text(errno, &text));
 *
 * strerror is not for several threads; strerror_r has two forms, of POSIX and of GNU.
 * Threads: any. errno may be another one afterwards. */
#ifndef OTELI_ERROR_TEXT_H
#define OTELI_ERROR_TEXT_H

#include <stdio.h>
#include <string.h>

struct oteli_error_text {
    char room[64];
};

/* Returns a text that lives as long as `text`. */
static inline const char *oteli_error_text(int error, struct oteli_error_text *text)
{
#if defined(__GLIBC__)
    return strerror_r(error, text->room, sizeof text->room);
#else
    if (strerror_r(error, text->room, sizeof text->room) != 0)
        snprintf(text->room, sizeof text->room, "error %d", error);
    return text->room;
#endif
}

#endif

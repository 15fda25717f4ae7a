/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view_inflate.h - undo a request's Content-Encoding: gzip.
 *
 * Needs zlib; without OTEL_VIEW_HAVE_ZLIB every attempt answers VIEW_INFLATE_ABSENT. */
#ifndef VIEW_INFLATE_H
#define VIEW_INFLATE_H

#include <stddef.h>
#include <stdint.h>

enum view_inflate_result {
    VIEW_INFLATE_DONE,
    VIEW_INFLATE_ABSENT,    /* not in this build */
    VIEW_INFLATE_BAD,       /* it is no gzip, or it is cut off */
    VIEW_INFLATE_TOO_LARGE, /* more than `max` bytes come out */
    VIEW_INFLATE_NO_MEMORY
};

/* On DONE `*out` is to be freed by the caller. */
enum view_inflate_result view_inflate(const uint8_t *bytes, size_t length, size_t max,
                                      uint8_t **out, size_t *out_length);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_inflate.h - undo a request's Content-Encoding: gzip or zstd.
 *
 * zstd needs libzstd (OTEL_VIEW_HAVE_ZSTD); without it that encoding answers
 * VIEW_INFLATE_ABSENT. */
#ifndef VIEW_INFLATE_H
#define VIEW_INFLATE_H

#include <stddef.h>
#include <stdint.h>

enum view_encoding { VIEW_IDENTITY, VIEW_GZIP, VIEW_ZSTD };

enum view_inflate_result {
    VIEW_INFLATE_DONE,
    VIEW_INFLATE_ABSENT,    /* not in this build */
    VIEW_INFLATE_BAD,       /* it is not of this encoding, or it is cut off */
    VIEW_INFLATE_TOO_LARGE, /* more than `max` bytes come out */
    VIEW_INFLATE_NO_MEMORY
};

/* `encoding` is not VIEW_IDENTITY. On DONE `*out` is to be freed by the caller. */
enum view_inflate_result view_inflate(enum view_encoding encoding, const uint8_t *bytes,
                                      size_t length, size_t max, uint8_t **out, size_t *out_length);

#endif

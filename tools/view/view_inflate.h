/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_inflate.h - undo a request's Content-Encoding: gzip or zstd, which needs libzstd
 * (OTEL_VIEW_HAVE_ZSTD). */
#ifndef VIEW_INFLATE_H
#define VIEW_INFLATE_H

#include <stddef.h>
#include <stdint.h>

enum { VIEW_BODY_MAX = 64 << 20 }; /* one request, also after decompression: OTLP's limit */

enum view_encoding { VIEW_IDENTITY, VIEW_GZIP, VIEW_ZSTD };

/* Why a request is not taken in, and the HTTP status that says so. Status 0: it is taken in. */
struct view_refusal {
    unsigned status;
    const char *why;
};
extern const struct view_refusal view_no_memory, view_too_large;

/* `encoding` is not VIEW_IDENTITY. The caller frees `*out`, also after a refusal. */
struct view_refusal view_inflate(enum view_encoding encoding, const uint8_t *bytes, size_t length,
                                 uint8_t **out, size_t *out_length);

#endif

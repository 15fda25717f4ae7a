/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_inflate.c - undo a request's Content-Encoding: gzip or zstd.
 *
 * Runs on otel-view's only thread; what it returns is the caller's. */
#include "tools/view/view_inflate.h"

#include <stdlib.h>
#include <zlib.h>

#ifdef OTEL_VIEW_HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

/* windowBits of zlib: the largest window, and a gzip header. */
#define GZIP_WINDOW (15 + 16)

static enum view_inflate_result inflate_gzip(const uint8_t *bytes, size_t length, uint8_t *out,
                                             size_t room, size_t *out_length)
{
    z_stream stream = {.next_in = (z_const Bytef *)(uintptr_t)bytes,
                       .avail_in = (uInt)length,
                       .next_out = out,
                       .avail_out = (uInt)room};
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
        return VIEW_INFLATE_NO_MEMORY;
    int answer;
    do /* RFC 1952: there may be several members, one behind the other */
        answer = inflate(&stream, Z_FINISH);
    while (answer == Z_STREAM_END && stream.avail_in != 0 && inflateReset(&stream) == Z_OK);
    *out_length = room - stream.avail_out;
    inflateEnd(&stream);
    if (answer == Z_STREAM_END)
        return VIEW_INFLATE_DONE;
    return stream.avail_out == 0 ? VIEW_INFLATE_TOO_LARGE : VIEW_INFLATE_BAD;
}

static enum view_inflate_result inflate_zstd(const uint8_t *bytes, size_t length, uint8_t *out,
                                             size_t room, size_t *out_length)
{
#ifdef OTEL_VIEW_HAVE_ZSTD
    *out_length = ZSTD_decompress(out, room, bytes, length);
    if (ZSTD_getErrorCode(*out_length) == ZSTD_error_dstSize_tooSmall)
        return VIEW_INFLATE_TOO_LARGE;
    return length == 0 || ZSTD_isError(*out_length) ? VIEW_INFLATE_BAD : VIEW_INFLATE_DONE;
#else
    (void)bytes, (void)length, (void)out, (void)room, (void)out_length;
    return VIEW_INFLATE_ABSENT;
#endif
}

enum view_inflate_result view_inflate(enum view_encoding encoding, const uint8_t *bytes,
                                      size_t length, size_t max, uint8_t **out, size_t *out_length)
{
    /* One byte more than allowed, to see whether there is one. Pages that are not written to cost
     * nothing. */
    *out = malloc(max + 1);
    if (*out == NULL)
        return VIEW_INFLATE_NO_MEMORY;
    enum view_inflate_result result = encoding == VIEW_GZIP
                                          ? inflate_gzip(bytes, length, *out, max + 1, out_length)
                                          : inflate_zstd(bytes, length, *out, max + 1, out_length);
    if (result == VIEW_INFLATE_DONE && *out_length > max)
        result = VIEW_INFLATE_TOO_LARGE;
    if (result != VIEW_INFLATE_DONE)
        free(*out);
    return result;
}

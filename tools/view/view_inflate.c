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

const struct view_refusal view_no_memory = {503, "no memory for this request now"};
const struct view_refusal view_too_large = {413, "a request may have 64 MiB at most, also when "
                                                 "decompressed"};
static const struct view_refusal broken = {400, "the body is not whole, or not of its "
                                                "Content-Encoding"};
static const struct view_refusal none;

static struct view_refusal inflate_gzip(const uint8_t *bytes, size_t length, uint8_t *out,
                                        size_t room, size_t *out_length)
{
    z_stream stream = {.next_in = (z_const Bytef *)(uintptr_t)bytes,
                       .avail_in = (uInt)length,
                       .next_out = out,
                       .avail_out = (uInt)room};
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
        return view_no_memory;
    int answer;
    do /* RFC 1952: there may be several members, one behind the other */
        answer = inflate(&stream, Z_FINISH);
    while (answer == Z_STREAM_END && stream.avail_in != 0 && inflateReset(&stream) == Z_OK);
    *out_length = room - stream.avail_out;
    inflateEnd(&stream);
    if (answer == Z_STREAM_END)
        return none;
    return stream.avail_out == 0 ? view_too_large : broken;
}

static struct view_refusal inflate_zstd(const uint8_t *bytes, size_t length, uint8_t *out,
                                        size_t room, size_t *out_length)
{
#ifdef OTEL_VIEW_HAVE_ZSTD
    *out_length = ZSTD_decompress(out, room, bytes, length);
    if (ZSTD_getErrorCode(*out_length) == ZSTD_error_dstSize_tooSmall)
        return view_too_large;
    return length == 0 || ZSTD_isError(*out_length) ? broken : none;
#else
    (void)bytes, (void)length, (void)out, (void)room, (void)out_length;
    return (struct view_refusal){415, "this otel-view was built without that Content-Encoding"};
#endif
}

struct view_refusal view_inflate(enum view_encoding encoding, const uint8_t *bytes, size_t length,
                                 uint8_t **out, size_t *out_length)
{
    /* One byte more than allowed, to see whether there is one. Pages that are not written to cost
     * nothing. */
    enum { ROOM = VIEW_BODY_MAX + 1 };
    *out = malloc(ROOM);
    if (*out == NULL)
        return view_no_memory;
    const struct view_refusal refusal = encoding == VIEW_GZIP
                                            ? inflate_gzip(bytes, length, *out, ROOM, out_length)
                                            : inflate_zstd(bytes, length, *out, ROOM, out_length);
    return refusal.status == 0 && *out_length == ROOM ? view_too_large : refusal;
}

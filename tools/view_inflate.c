/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view_inflate.c - undo a request's Content-Encoding: gzip.
 *
 * Runs on otel-view's only thread; what it returns is the caller's. */
#include "tools/view_inflate.h"

#include <stdlib.h>

#ifdef OTEL_VIEW_HAVE_ZLIB
#include <zlib.h>

/* windowBits of zlib: the largest window, and a gzip header. */
#define GZIP_WINDOW (15 + 16)

static enum view_inflate_result inflate_all(z_stream *stream, size_t max, uint8_t **out,
                                            size_t *out_length)
{
    size_t capacity = 0;
    for (;;) {
        if (*out_length == capacity) {
            if (capacity > max)
                return VIEW_INFLATE_TOO_LARGE;
            /* One byte more than allowed, to see whether there is one. */
            capacity = capacity == 0 ? 65536 : capacity * 2;
            capacity = capacity > max ? max + 1 : capacity;
            uint8_t *larger = realloc(*out, capacity);
            if (larger == NULL)
                return VIEW_INFLATE_NO_MEMORY;
            *out = larger;
        }
        stream->next_out = *out + *out_length;
        stream->avail_out = (uInt)(capacity - *out_length);
        const int answer = inflate(stream, Z_NO_FLUSH);
        *out_length = capacity - stream->avail_out;
        if (answer == Z_STREAM_END)
            return *out_length > max ? VIEW_INFLATE_TOO_LARGE : VIEW_INFLATE_DONE;
        if (answer != Z_OK || (stream->avail_in == 0 && stream->avail_out != 0))
            return VIEW_INFLATE_BAD;
    }
}

enum view_inflate_result view_inflate(const uint8_t *bytes, size_t length, size_t max,
                                      uint8_t **out, size_t *out_length)
{
    z_stream stream = {.next_in = (z_const Bytef *)(uintptr_t)bytes, .avail_in = (uInt)length};
    *out = NULL;
    *out_length = 0;
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
        return VIEW_INFLATE_NO_MEMORY;
    const enum view_inflate_result result = inflate_all(&stream, max, out, out_length);
    inflateEnd(&stream);
    if (result != VIEW_INFLATE_DONE) {
        free(*out);
        *out = NULL;
    }
    return result;
}
#else
enum view_inflate_result view_inflate(const uint8_t *bytes, size_t length, size_t max,
                                      uint8_t **out, size_t *out_length)
{
    (void)bytes, (void)length, (void)max;
    *out = NULL;
    *out_length = 0;
    return VIEW_INFLATE_ABSENT;
}
#endif

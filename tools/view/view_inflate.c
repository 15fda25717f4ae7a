/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_inflate.c - undo a request's Content-Encoding: gzip or zstd.
 *
 * Runs on otel-view's only thread; what it returns is the caller's. */
#include "tools/view/view_inflate.h"

#include <stdbool.h>
#include <stdlib.h>

#ifdef OTEL_VIEW_HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef OTEL_VIEW_HAVE_ZSTD
#include <zstd.h>
#endif

/* What has come out, and room for more: up to one byte more than allowed, to see whether there
 * is one. */
struct output {
    uint8_t *bytes;
    size_t length, capacity, max;
};

/* DONE: there is room. */
static inline enum view_inflate_result make_room(struct output *output)
{
    if (output->length < output->capacity)
        return VIEW_INFLATE_DONE;
    if (output->capacity > output->max)
        return VIEW_INFLATE_TOO_LARGE;
    size_t capacity = output->capacity == 0 ? 65536 : output->capacity * 2;
    capacity = capacity > output->max ? output->max + 1 : capacity;
    uint8_t *larger = realloc(output->bytes, capacity);
    if (larger == NULL)
        return VIEW_INFLATE_NO_MEMORY;
    output->bytes = larger;
    output->capacity = capacity;
    return VIEW_INFLATE_DONE;
}

#ifdef OTEL_VIEW_HAVE_ZLIB
/* windowBits of zlib: the largest window, and a gzip header. */
#define GZIP_WINDOW (15 + 16)

static enum view_inflate_result inflate_all(z_stream *stream, struct output *output)
{
    for (;;) {
        const enum view_inflate_result room = make_room(output);
        if (room != VIEW_INFLATE_DONE)
            return room;
        stream->next_out = output->bytes + output->length;
        stream->avail_out = (uInt)(output->capacity - output->length);
        const int answer = inflate(stream, Z_NO_FLUSH);
        output->length = output->capacity - stream->avail_out;
        if (answer == Z_STREAM_END && stream->avail_in == 0)
            return VIEW_INFLATE_DONE;
        if (answer == Z_STREAM_END && inflateReset(stream) == Z_OK)
            continue; /* RFC 1952: there may be several members, one behind the other */
        if (answer != Z_OK || (stream->avail_in == 0 && stream->avail_out != 0))
            return VIEW_INFLATE_BAD;
    }
}

static enum view_inflate_result inflate_gzip(const uint8_t *bytes, size_t length,
                                             struct output *output)
{
    z_stream stream = {.next_in = (z_const Bytef *)(uintptr_t)bytes, .avail_in = (uInt)length};
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
        return VIEW_INFLATE_NO_MEMORY;
    const enum view_inflate_result result = inflate_all(&stream, output);
    inflateEnd(&stream);
    return result;
}
#else
static enum view_inflate_result inflate_gzip(const uint8_t *bytes, size_t length,
                                             struct output *output)
{
    (void)bytes, (void)length, (void)output;
    return VIEW_INFLATE_ABSENT;
}
#endif

#ifdef OTEL_VIEW_HAVE_ZSTD
static enum view_inflate_result inflate_zstd(const uint8_t *bytes, size_t length,
                                             struct output *output)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer in = {.src = bytes, .size = length};
    enum view_inflate_result result = stream != NULL ? make_room(output) : VIEW_INFLATE_NO_MEMORY;
    bool is_over = false;
    while (result == VIEW_INFLATE_DONE && !is_over) {
        ZSTD_outBuffer out = {output->bytes, output->capacity, output->length};
        const size_t answer = ZSTD_decompressStream(stream, &out, &in);
        output->length = out.pos;
        is_over = answer == 0 && in.pos == in.size;
        if (ZSTD_isError(answer) || (!is_over && in.pos == in.size && out.pos < out.size))
            result = VIEW_INFLATE_BAD;
        else if (!is_over)
            result = make_room(output);
    }
    ZSTD_freeDStream(stream);
    return result;
}
#else
static enum view_inflate_result inflate_zstd(const uint8_t *bytes, size_t length,
                                             struct output *output)
{
    (void)bytes, (void)length, (void)output;
    return VIEW_INFLATE_ABSENT;
}
#endif

enum view_inflate_result view_inflate(enum view_encoding encoding, const uint8_t *bytes,
                                      size_t length, size_t max, uint8_t **out, size_t *out_length)
{
    struct output output = {.max = max};
    enum view_inflate_result result = encoding == VIEW_GZIP ? inflate_gzip(bytes, length, &output)
                                                            : inflate_zstd(bytes, length, &output);
    if (result == VIEW_INFLATE_DONE && output.length > max)
        result = VIEW_INFLATE_TOO_LARGE;
    if (result != VIEW_INFLATE_DONE) {
        free(output.bytes);
        output.bytes = NULL;
    }
    *out = output.bytes;
    *out_length = output.length;
    return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profile/gzip.c - the contract is in gzip.h. Any thread; owns nothing. */
#include "profiling/profile/gzip.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

enum {
    GZIP_WINDOW = 15 + 16, /* zlib's way to ask for gzip's head and tail */
    MEMORY = 8,
    LEVEL = 1
};

bool oteli_gzip(const void *bytes, size_t length, void **compressed, size_t *compressed_length)
{
    z_stream stream = {.next_in = (z_const Bytef *)bytes};
    if (length > UINT_MAX / 2 ||
        deflateInit2(&stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    const size_t room = deflateBound(&stream, length);
    void *out = malloc(room);
    stream.avail_in = (uInt)length;
    stream.next_out = out;
    stream.avail_out = (uInt)room;
    const bool is_whole = out != NULL && deflate(&stream, Z_FINISH) == Z_STREAM_END;
    *compressed_length = stream.total_out;
    deflateEnd(&stream);
    if (!is_whole) {
        free(out);
        return false;
    }
    *compressed = out;
    return true;
}

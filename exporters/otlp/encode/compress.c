/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/encode/compress.c - the contracts are in compress.h. One thread at a time; owns
 * the state of zlib or libzstd and the buffer of the compressed bytes. */
#include "exporters/otlp/encode/compress.h"

#include "exporters/otlp/encode/reusable_buffer.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#ifdef OTELI_WITH_ZSTD
#include <zstd.h>
#endif

enum {
    GZIP_WINDOW = 15 + 16, /* zlib's way to ask for gzip's head and tail */
    GZIP_MEMORY = 8,
    LEVEL =
        1, /* of batches of spans, the usual level 6 takes off 4 % more in three times the time */
};

struct oteli_compressor {
    otel_otlp_compression compression;
    struct oteli_reusable_buffer out;
    z_stream gzip;
#ifdef OTELI_WITH_ZSTD
    ZSTD_CCtx *zstd;
#endif
};

bool oteli_compression_is_known(otel_otlp_compression compression)
{
#ifdef OTELI_WITH_ZSTD
    if (compression == OTEL_OTLP_COMPRESSION_ZSTD)
        return true;
#endif
    return compression == OTEL_OTLP_COMPRESSION_NONE || compression == OTEL_OTLP_COMPRESSION_GZIP;
}

static bool begin(struct oteli_compressor *made)
{
#ifdef OTELI_WITH_ZSTD
    if (made->compression == OTEL_OTLP_COMPRESSION_ZSTD) {
        made->zstd = ZSTD_createCCtx();
        return made->zstd != NULL &&
               !ZSTD_isError(ZSTD_CCtx_setParameter(made->zstd, ZSTD_c_compressionLevel, LEVEL));
    }
#endif
    return deflateInit2(&made->gzip, LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
                        Z_DEFAULT_STRATEGY) == Z_OK;
}

struct oteli_compressor *oteli_compressor_new(otel_otlp_compression compression)
{
    struct oteli_compressor *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->compression = compression;
    if (begin(made))
        return made;
    oteli_compressor_free(made);
    return NULL;
}

void oteli_compressor_free(struct oteli_compressor *compressor)
{
    if (compressor == NULL)
        return;
#ifdef OTELI_WITH_ZSTD
    ZSTD_freeCCtx(compressor->zstd);
#endif
    if (compressor->compression == OTEL_OTLP_COMPRESSION_GZIP)
        deflateEnd(&compressor->gzip);
    oteli_reusable_buffer_free(&compressor->out);
    free(compressor);
}

static size_t gzip(struct oteli_compressor *compressor, const uint8_t *bytes, size_t length,
                   size_t before)
{
    z_stream *stream = &compressor->gzip;
    if (deflateReset(stream) != Z_OK)
        return 0;
    const size_t room = deflateBound(stream, (uLong)length);
    if (!oteli_reusable_buffer_fit(&compressor->out, before + room))
        return 0;
    stream->next_in = (z_const Bytef *)bytes;
    stream->avail_in = (uInt)length;
    stream->next_out = compressor->out.bytes + before;
    stream->avail_out = (uInt)room;
    return deflate(stream, Z_FINISH) == Z_STREAM_END ? room - stream->avail_out : 0;
}

#ifdef OTELI_WITH_ZSTD
static size_t zstd(struct oteli_compressor *compressor, const uint8_t *bytes, size_t length,
                   size_t before)
{
    const size_t room = ZSTD_compressBound(length);
    if (!oteli_reusable_buffer_fit(&compressor->out, before + room))
        return 0;
    const size_t used =
        ZSTD_compress2(compressor->zstd, compressor->out.bytes + before, room, bytes, length);
    return ZSTD_isError(used) ? 0 : used;
}
#endif

uint8_t *oteli_compress(struct oteli_compressor *compressor, const void *bytes, size_t length,
                        size_t room_before, size_t *compressed_length)
{
    *compressed_length = 0;
    if (length > INT32_MAX) /* what protobuf can hold; zlib's numbers are not much wider */
        return NULL;
#ifdef OTELI_WITH_ZSTD
    if (compressor->compression == OTEL_OTLP_COMPRESSION_ZSTD)
        *compressed_length = zstd(compressor, bytes, length, room_before);
    else
#endif
        *compressed_length = gzip(compressor, bytes, length, room_before);
    return *compressed_length != 0 ? compressor->out.bytes + room_before : NULL;
}

/* What one call of zlib can take: its numbers are narrower than ours. */
static uInt one_piece(size_t bytes)
{
    return bytes < UINT_MAX ? (uInt)bytes : UINT_MAX;
}

static size_t gunzip(const void *bytes, size_t length, void *out, size_t size, bool *is_whole)
{
    z_stream stream = {.next_in = (z_const Bytef *)bytes, .avail_in = one_piece(length)};
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
        return 0;
    const uInt room = one_piece(size);
    stream.next_out = out;
    stream.avail_out = room;
    *is_whole = inflate(&stream, Z_FINISH) == Z_STREAM_END;
    inflateEnd(&stream);
    return room - stream.avail_out;
}

#ifdef OTELI_WITH_ZSTD
static size_t unzstd(const void *bytes, size_t length, void *out, size_t size, bool *is_whole)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    if (stream == NULL)
        return 0;
    ZSTD_inBuffer in = {.src = bytes, .size = length};
    ZSTD_outBuffer to = {.dst = out, .size = size};
    size_t left;
    size_t before;
    do {
        before = to.pos + in.pos;
        left = ZSTD_decompressStream(stream, &to, &in);
    } while (left != 0 && !ZSTD_isError(left) && to.pos + in.pos != before);
    *is_whole = left == 0;
    ZSTD_freeDStream(stream);
    return to.pos;
}
#endif

size_t oteli_decompress(const void *bytes, size_t length, void *out, size_t size, bool *is_whole)
{
    *is_whole = false;
    if (length >= 2 && memcmp(bytes, "\x1f\x8b", 2) == 0)
        return gunzip(bytes, length, out, size, is_whole);
#ifdef OTELI_WITH_ZSTD
    if (length >= 4 && memcmp(bytes, "\x28\xb5\x2f\xfd", 4) == 0)
        return unzstd(bytes, length, out, size, is_whole);
#endif
    return 0;
}

uint32_t oteli_checksum(uint32_t before, const void *bytes, size_t length)
{
    return (uint32_t)crc32_z(before, bytes, length);
}

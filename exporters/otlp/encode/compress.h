/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/encode/compress.h - compress request bodies, and decompress short answers. The
 * door to zlib and, where it was there at build time, to libzstd: only compress.c includes them.
 *
 * A compressor keeps its state and its memory from request to request, so that in the steady state
 * nothing is allocated; after one huge request the memory is given back.
 *
 * Threads:  one thread at a time for a compressor. */
#ifndef OTELI_COMPRESS_H
#define OTELI_COMPRESS_H

#include "common/base/internal_api.h"

#include <otel/otlp.h>

struct oteli_compressor;

/* Whether this build can do it. */
OTELI_INTERNAL_API bool oteli_compression_is_known(otel_otlp_compression compression);

/* For gzip or zstd. NULL: no memory. */
struct oteli_compressor *oteli_compressor_new(otel_otlp_compression compression);
void oteli_compressor_free(struct oteli_compressor *compressor);

/* The compressed bytes, which stay until the next call; NULL: no memory. In front of them
 * `room_before` bytes are the caller's. */
uint8_t *oteli_compress(struct oteli_compressor *compressor, const void *bytes, size_t length,
                        size_t room_before, size_t *compressed_length);

/* Decompress gzip or zstd, whichever the first bytes say, into at most `size` bytes; *is_whole
 * says whether that was all. Gives how many there are; what is broken ends where it breaks. */
size_t oteli_decompress(const void *bytes, size_t length, void *out, size_t size, bool *is_whole);

/* The CRC-32 of bytes that come in pieces; `before` is that of what came before, 0 at the
 * beginning. */
uint32_t oteli_checksum(uint32_t before, const void *bytes, size_t length);

#endif

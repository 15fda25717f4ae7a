/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/request.c - the contracts are in request.h. One thread at a time; owns the encoder,
 * the compressor and the bytes. */
#include "exporters/otlp/request.h"

#include "exporters/otlp/compress.h"

#include <stdlib.h>
#include <string.h>

/* gRPC's frame in front of a message: whether it is compressed, and its length. */
enum { FRAME_BYTES = 5 };

static size_t frame_bytes(const struct oteli_request *request)
{
    return request->protocol == OTEL_OTLP_GRPC ? FRAME_BYTES : 0;
}

bool oteli_request_init(struct oteli_request *request, otel_otlp_protocol protocol,
                        otel_otlp_compression compression, size_t max_request_bytes)
{
    *request = (struct oteli_request){.protocol = protocol};
    const bool is_compressed = compression != OTEL_OTLP_COMPRESSION_NONE;
    oteli_encoder_init(&request->encoder, max_request_bytes,
                       is_compressed ? 0 : frame_bytes(request));
    if (!is_compressed)
        return true;
    request->compressor = oteli_compressor_new(compression);
    return request->compressor != NULL;
}

static void forget(struct oteli_request *request)
{
    request->bytes = NULL;
    request->length = 0;
    request->plain = NULL;
    request->plain_length = 0;
    request->spans = 0;
}

void oteli_request_fini(struct oteli_request *request)
{
    forget(request);
    oteli_encoder_fini(&request->encoder);
    oteli_compressor_free(request->compressor);
    request->compressor = NULL;
    oteli_kept_buffer_free(&request->framed);
}

static uint8_t *put_frame(uint8_t *at, bool is_compressed, size_t length)
{
    *at++ = is_compressed;
    for (int shift = 24; shift >= 0; shift -= 8)
        *at++ = (uint8_t)(length >> shift);
    return at;
}

/* Compress the plain bytes, and frame them. */
static bool compress(struct oteli_request *request)
{
    const size_t frame = frame_bytes(request);
    uint8_t *compressed = oteli_compress(request->compressor, request->plain, request->plain_length,
                                         frame, &request->length);
    if (compressed == NULL)
        return false;
    if (frame != 0)
        put_frame(compressed - frame, true, request->length);
    request->bytes = compressed - frame;
    request->length += frame;
    return true;
}

enum oteli_encode_result oteli_request_make(struct oteli_request *request, const otel_batch *batch,
                                            size_t first, size_t max_spans)
{
    struct oteli_encoder *encoder = &request->encoder;
    forget(request);
    const enum oteli_encode_result result =
        oteli_encode(encoder, batch, first, max_spans, &request->spans);
    if (result != OTELI_ENCODE_OK)
        return result;
    request->plain = encoder->request;
    request->plain_length = encoder->request_bytes;
    if (request->compressor != NULL)
        return compress(request) ? OTELI_ENCODE_OK : OTELI_ENCODE_NO_MEMORY;
    const size_t frame = frame_bytes(request);
    if (frame != 0)
        put_frame(encoder->request - frame, false, encoder->request_bytes);
    request->bytes = encoder->request - frame;
    request->length = frame + encoder->request_bytes;
    return OTELI_ENCODE_OK;
}

bool oteli_request_wrap(struct oteli_request *request, const void *plain, size_t length,
                        size_t spans)
{
    forget(request);
    request->plain = plain;
    request->plain_length = length;
    request->spans = spans;
    if (request->compressor != NULL)
        return compress(request);
    request->bytes = plain;
    request->length = length;
    const size_t frame = frame_bytes(request);
    if (frame == 0)
        return true;
    if (!oteli_kept_buffer_fit(&request->framed, frame + length))
        return false;
    memcpy(put_frame(request->framed.bytes, false, length), plain, length);
    request->bytes = request->framed.bytes;
    request->length = frame + length;
    return true;
}

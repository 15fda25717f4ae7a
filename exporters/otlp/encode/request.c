/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/encode/request.c - the contracts are in request.h. One thread at a time; owns the
 * encoder, the compressor and the bytes. */
#include "exporters/otlp/encode/request.h"

#include "exporters/json/otlp_json.h"
#include "exporters/otlp/encode/compress.h"
#include "exporters/otlp/encode/grpc_frame.h"

#include <stdlib.h>
#include <string.h>

static size_t frame_bytes(const struct oteli_request *request)
{
    return request->protocol == OTEL_OTLP_GRPC ? OTELI_GRPC_FRAME : 0;
}

bool oteli_request_init(struct oteli_request *request, otel_otlp_protocol protocol,
                        otel_otlp_compression compression, size_t max_request_bytes)
{
    *request = (struct oteli_request){.protocol = protocol};
    const bool is_json = protocol == OTEL_OTLP_HTTP_JSON;
    const bool is_compressed = compression != OTEL_OTLP_COMPRESSION_NONE;
    oteli_encoder_init(&request->encoder, max_request_bytes,
                       is_compressed ? 0 : frame_bytes(request));
    if (is_json)
        request->json = calloc(1, sizeof *request->json);
    if (is_compressed)
        request->compressor = oteli_compressor_new(compression);
    if ((request->json != NULL) == is_json && (request->compressor != NULL) == is_compressed)
        return true;
    oteli_request_fini(request);
    return false;
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
    oteli_encoder_fini(&request->encoder);
    if (request->json != NULL)
        oteli_text_fini(request->json);
    free(request->json);
    oteli_compressor_free(request->compressor);
    oteli_reusable_buffer_free(&request->framed);
    *request = (struct oteli_request){0};
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
        oteli_grpc_put_frame(compressed - frame, true, request->length);
    request->bytes = compressed - frame;
    request->length += frame;
    return true;
}

static enum oteli_encode_result encode_json(struct oteli_request *request, const otel_batch *batch,
                                            size_t first, size_t max_spans)
{
    struct oteli_text *json = request->json;
    request->spans =
        oteli_otlp_json_request(json, batch, first, max_spans, request->encoder.max_request_bytes);
    if (request->spans == 0)
        return json->failed ? OTELI_ENCODE_NO_MEMORY : OTELI_ENCODE_TOO_LARGE;
    request->plain = json->data;
    request->plain_length = json->length;
    return OTELI_ENCODE_OK;
}

enum oteli_encode_result oteli_request_make(struct oteli_request *request, const otel_batch *batch,
                                            size_t first, size_t max_spans)
{
    struct oteli_encoder *encoder = &request->encoder;
    enum oteli_encode_result result;
    forget(request);
    if (request->json != NULL) {
        result = encode_json(request, batch, first, max_spans);
    } else {
        result = oteli_encode(encoder, batch, first, max_spans, &request->spans);
        request->plain = encoder->request;
        request->plain_length = encoder->request_bytes;
    }
    if (result != OTELI_ENCODE_OK || (request->compressor != NULL && !compress(request))) {
        forget(request);
        return result != OTELI_ENCODE_OK ? result : OTELI_ENCODE_NO_MEMORY;
    }
    if (request->compressor != NULL)
        return OTELI_ENCODE_OK;
    const size_t frame = frame_bytes(request);
    request->bytes = request->plain;
    request->length = frame + request->plain_length;
    if (frame != 0) {
        request->bytes = encoder->request - frame;
        oteli_grpc_put_frame(encoder->request - frame, false, request->plain_length);
    }
    return OTELI_ENCODE_OK;
}

/* The plain bytes behind a frame, in memory of our own. */
static bool copy_framed(struct oteli_request *request, size_t frame)
{
    if (!oteli_reusable_buffer_fit(&request->framed, frame + request->plain_length))
        return false;
    uint8_t *at = oteli_grpc_put_frame(request->framed.bytes, false, request->plain_length);
    if (request->plain_length != 0)
        memcpy(at, request->plain, request->plain_length);
    request->bytes = request->framed.bytes;
    request->length = frame + request->plain_length;
    return true;
}

bool oteli_request_wrap(struct oteli_request *request, const void *plain, size_t length,
                        size_t spans)
{
    const size_t frame = frame_bytes(request);
    forget(request);
    request->plain = plain;
    request->plain_length = length;
    request->spans = spans;
    request->bytes = plain;
    request->length = length;
    const bool is_made = request->compressor != NULL ? compress(request)
                         : frame != 0                ? copy_framed(request, frame)
                                                     : true;
    if (!is_made)
        forget(request);
    return is_made;
}

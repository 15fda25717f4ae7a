/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/grpc.c - any bytes as the body, the trailers and the compressed message of gRPC, and
 * as a body in JSON. What is found lies in the input, and is what can be put into a frame again. */
#include "exporters/otlp/protocol/grpc.h"
#include "common/text/utf8.h"
#include "exporters/otlp/encode/compress.h"
#include "exporters/otlp/encode/grpc_frame.h"
#include "exporters/otlp/protocol/response.h"
#include "tests/fuzz/fuzz.h"

static void read_frame(const uint8_t *data, size_t size, bool is_cut)
{
    const struct oteli_response_body body = {data, size, is_cut};
    bool is_compressed;
    const struct oteli_response_body message = oteli_grpc_message(&body, &is_compressed);
    if (message.length != 0 &&
        (message.bytes != data + OTELI_GRPC_FRAME || message.length > size - OTELI_GRPC_FRAME))
        abort();
    if (message.is_cut && !is_cut)
        abort();
    uint8_t frame[OTELI_GRPC_FRAME];
    oteli_grpc_put_frame(frame, is_compressed, message.length);
    if (message.length != 0 && !message.is_cut && memcmp(frame, data, sizeof frame) != 0)
        abort();
}

static void decompress(const uint8_t *data, size_t size)
{
    uint8_t out[1000];
    bool is_whole;
    fuzz_check(oteli_decompress(data, size, out, sizeof out, &is_whole) <= sizeof out);
}

static void read_text(const char *text)
{
    char line[64];
    uint64_t delay_ms;
    oteli_grpc_text(text, line, sizeof line);
    if (!oteli_utf8_is_valid(line, strlen(line)) || strchr(line, '\n') != NULL)
        abort();
    if (!oteli_grpc_retry_ms(text, &delay_ms) && delay_ms != 0)
        abort();
    const int code = oteli_grpc_code(text);
    if (code < 0 || code > 16 || *oteli_grpc_code_name(code) == '\0')
        abort();
}

static void read_json(const uint8_t *data, size_t size, bool is_cut)
{
    const struct oteli_response_body body = {data, size, is_cut};
    char message[40];
    if (oteli_response_json_partial_success(&body, message, sizeof message) > INT64_MAX ||
        !oteli_utf8_is_valid(message, strlen(message)))
        abort();
    if (oteli_response_json_status_message(&body, message, sizeof message) !=
            (message[0] != '\0') ||
        !oteli_utf8_is_valid(message, strlen(message)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    if (text == NULL)
        return 0;
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        read_frame(data, size, is_cut != 0);
        read_json(data, size, is_cut != 0);
    }
    decompress(data, size);
    read_text(text);
    free(text);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/text.c - the texts of environment variables: numbers, ratios, lists, percent
 * encoding, headers, endpoints; and bad UTF-8 made good. */
#include "common/text/text.h"
#include "common/config/configuration.h"
#include "common/text/utf8.h"
#include "exporters/otlp/call/request_headers.h"
#include "exporters/otlp/endpoint.h"
#include "tests/fuzz/fuzz.h"

static void replace_bad_utf8(const char *text, size_t length)
{
    const size_t size = oteli_utf8_replace(text, length, NULL);
    char *good = malloc(size + 1);
    if (good == NULL)
        return;
    if (oteli_utf8_replace(text, length, good) != size || !oteli_utf8_is_valid(good, size))
        abort();
    free(good);
}

static void decode(const char *text, size_t length)
{
    char *decoded = malloc(length + 1);
    size_t decoded_length;
    if (decoded != NULL && oteli_percent_decode(text, length, decoded, &decoded_length) &&
        decoded_length > length)
        abort();
    free(decoded);
}

static void parse_otlp(const char *text)
{
    otel_otlp_header *headers = NULL;
    size_t count = 0;
    char *url = NULL;
    if (oteli_otlp_headers_parse("FUZZ", text, &headers, &count))
        for (size_t i = 0; i < count; i++)
            fuzz_check(oteli_otlp_header_is_valid(headers[i].name, headers[i].value));
    oteli_otlp_headers_free(headers, count);
    for (int protocol = 0; protocol <= OTEL_OTLP_GRPC; protocol++) {
        if (oteli_otlp_endpoint(OTELI_SIGNAL_TRACES, (otel_otlp_protocol)protocol, text, NULL,
                                &url))
            free(url);
        if (oteli_otlp_endpoint(OTELI_SIGNAL_TRACES, (otel_otlp_protocol)protocol, NULL, text,
                                &url))
            free(url);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_be_quiet();
    char *text = fuzz_text(data, size);
    if (text == NULL)
        return 0;
    double ratio = 0;
    int64_t number = 0;
    if (oteli_parse_ratio(text, &ratio) && !(ratio >= 0 && ratio <= 1))
        abort();
    if (oteli_parse_whole(oteli_slice_of(text), &number) && number < 0)
        abort();
    otel_slice rest = oteli_slice_of(text);
    otel_slice member;
    while (oteli_list_next(&rest, &member))
        fuzz_check(member.length != 0);
    decode(text, size);
    replace_bad_utf8(text, size);
    parse_otlp(text);
    free(text);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/jaeger.c - any bytes as the answer of a Jaeger server, as the argument of its sampler,
 * and as the name of a service. */
#include "exporters/jaeger_sampler/jaeger_url.h"
#include "exporters/jaeger_sampler/strategy.h"
#include "exporters/otlp/protocol/json_reader.h"
#include "exporters/otlp/transport/transport.h"
#include "tests/fuzz/fuzz.h"

static void parse_answer(const char *text, size_t size)
{
    struct oteli_json json = oteli_json_begin(text, size);
    oteli_json_skip(&json);
    const bool is_json = oteli_json_end(&json);
    struct oteli_strategy *strategy = oteli_strategy_parse(text, size);
    if (strategy == NULL)
        return;
    if (!is_json || !(strategy->others.probability >= 0 && strategy->others.probability <= 1))
        abort();
    const uint8_t trace_id[16] = {1, 2, 3};
    for (size_t i = 0; i < strategy->operation_count; i++)
        (void)oteli_strategy_samples(strategy, strategy->operations[i].name, trace_id, i);
    (void)oteli_strategy_samples(strategy, (otel_slice){text, size}, trace_id, UINT64_MAX);
    oteli_strategy_free(strategy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_be_quiet();
    char *text = fuzz_text(data, size);
    if (text == NULL)
        return 0;
    parse_answer(text, size);
    struct oteli_jaeger_argument argument;
    if (oteli_jaeger_argument_parse(text, &argument) && argument.endpoint != NULL &&
        !oteli_transport_url_is_valid(argument.endpoint))
        abort();
    char *url = oteli_jaeger_url(argument.endpoint, text);
    if (url != NULL && strstr(url, "service=") == NULL)
        abort();
    free(url);
    free(argument.endpoint);
    free(text);
    return 0;
}

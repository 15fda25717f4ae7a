/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/random_strings.c - random bytes in every string that the API takes, and every
 * span arrives all the same.
 *
 *     random_strings [--long]             to a receiver of its own that forgives nothing
 *     random_strings STRINGS URL PROTOCOL to a real one; says how many spans it must have
 *
 * Names, keys and values, nested ones, of spans, events, links, tracers and the resource,
 * descriptions and tracestates: 65,536 strings, and in the long form 40 times as many. */
#include "tests/support/dice.h"
#include "tests/support/fault_peer.h"
#include "tests/support/oracle.h"

#include <inttypes.h>
#include <otel/otlp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRINGS = 65536, LONG_SCALE = 40, TRACERS = 32, STARTS = 4, BATCH = 512, MEMORY = 1 << 18 };
enum { FLUSH_MS = 60000 };

static struct dice dice;
static uint64_t strings_made;
static char memory[MEMORY]; /* of the strings of one span */
static size_t memory_used;

static char *some_bytes(size_t *length, bool with_zeros)
{
    *length = dice_below(&dice, dice_one_in(&dice, 40) ? 2000 : 24);
    STRESS_CHECK(memory_used + *length + 1 <= sizeof memory);
    char *text = memory + memory_used;
    memory_used += *length + 1;
    for (size_t i = 0; i < *length; i++)
        text[i] = (char)(with_zeros ? dice_below(&dice, 256) : 1 + dice_below(&dice, 255));
    text[*length] = '\0';
    strings_made++;
    return text;
}

static const char *some_string(void)
{
    size_t length;
    return some_bytes(&length, false);
}

/* The value may be in an array or a map at the bottom of others. */
static otel_attribute some_attribute(void)
{
    size_t length;
    const char *bytes = some_bytes(&length, true);
    return otel_attribute_of(some_string(), dice_one_in(&dice, 2)
                                                ? otel_value_string_n(bytes, length)
                                                : dice_value(&dice));
}

static otel_tracer *some_tracer(void)
{
    const otel_attribute attributes[] = {some_attribute(), some_attribute()};
    return otel_tracer_get_with(some_string(), some_string(),
                                OTEL_TRACER_OPTIONS(.schema_url = some_string(),
                                                    .attributes = attributes,
                                                    .attribute_count = 2));
}

static otel_span_context some_context(void)
{
    const uint64_t trace_id[2] = {dice_next(&dice) | 1, dice_next(&dice)};
    const uint64_t span_id = dice_next(&dice) | 1;
    return otel_span_context_make((const uint8_t *)trace_id, (const uint8_t *)&span_id,
                                  OTEL_TRACE_FLAG_SAMPLED, true, some_string());
}

static void some_span(otel_tracer *tracer)
{
    const otel_attribute attributes[] = {some_attribute(), some_attribute(), some_attribute()};
    const otel_span_context remote = some_context();
    const otel_context parent =
        otel_context_with_span((otel_context){{{0}}, NULL, 0}, otel_span_wrap(&remote));
    const otel_link link = {some_context(), attributes, 2};
    const otel_span span =
        otel_span_enter(tracer, some_string(),
                        OTEL_SPAN_OPTIONS(.parent = &parent, .attributes = &attributes[2],
                                          .attribute_count = 1, .links = &link, .link_count = 1));
    size_t length;
    const char *value = some_bytes(&length, true);
    size_t key_length;
    const char *key = some_bytes(&key_length, true);
    otel_span_set_string_n(otel_span_ref_of(&span), key, key_length, value, length);
    otel_span_set_string(span, some_string(), some_string());
    otel_span_set_int(span, some_string(), 1);
    otel_span_add_event(span, some_string(), attributes, 3);
    otel_span_record_exception(span, some_string(), some_string(), some_string(), NULL, 0);
    otel_span_add_link(span, &link);
    otel_span_fail(span, some_string());
    otel_span_update_name(span, some_string());
    otel_span_end(span);
}

/* One life of an SDK with random strings in its resource. Returns how many spans it had. */
static uint64_t send_some(const char *endpoint, otel_otlp_protocol protocol, uint64_t strings)
{
    otel_exporter exporter;
    const otel_attribute resource[] = {some_attribute(), some_attribute(), some_attribute()};
    STRESS_CHECK(
        otel_otlp_exporter_new(
            OTEL_OTLP_OPTIONS(.endpoint = endpoint, .protocol = protocol, .timeout_ms = FLUSH_MS),
            &exporter) == OTEL_OK);
    stress_start_sdk(exporter, &(otel_sdk_options){.service_name = some_string(),
                                                   .resource = resource,
                                                   .resource_count = 3,
                                                   .bsp_export_timeout = FLUSH_MS,
                                                   .bsp_max_queue_size = 4 * BATCH});
    otel_tracer *tracers[TRACERS];
    for (size_t i = 0; i < TRACERS; i++)
        tracers[i] = some_tracer();
    uint64_t spans = 0;
    while (strings_made < strings) {
        memory_used = 0;
        dice_forget(&dice);
        some_span(tracers[dice_below(&dice, TRACERS)]);
        if (++spans % BATCH == 0)
            STRESS_CHECK(otel_flush(FLUSH_MS) == OTEL_OK);
    }
    const otel_stats stats = stress_stop_sdk();
    STRESS_CHECK(stats.delivered == spans && stats.rejected == 0);
    return spans;
}

static uint64_t send_all(const char *endpoint, otel_otlp_protocol protocol, uint64_t strings)
{
    uint64_t spans = 0;
    dice_init(&dice, stress_seed());
    for (uint64_t start = 1; start <= STARTS; start++)
        spans += send_some(endpoint, protocol, strings * start / STARTS);
    dice_fini(&dice);
    return spans;
}

/* spec: X19 Q3 error-handling.md#basic-error-handling-principles MUST stable */
int main(int argc, char **argv)
{
    if (argc == 4) {
        const otel_otlp_protocol protocol = strcmp(argv[3], "grpc") == 0 ? OTEL_OTLP_GRPC
                                            : strcmp(argv[3], "http/json") == 0
                                                ? OTEL_OTLP_HTTP_JSON
                                                : OTEL_OTLP_HTTP_PROTOBUF;
        printf("%" PRIu64 "\n", send_all(argv[2], protocol, strtoull(argv[1], NULL, 10)));
        return 0;
    }
    const uint64_t strings = (uint64_t)STRINGS * stress_scale(argc, argv, LONG_SCALE);
    struct fault_peer *peer = fault_peer_start(NULL);
    const uint64_t sent = send_all(fault_peer_url(peer), OTEL_OTLP_HTTP_PROTOBUF, strings);
    if (fault_peer_problem(peer) != NULL)
        fprintf(stderr, "refused: %s\n", fault_peer_problem(peer));
    STRESS_CHECK(fault_peer_problem(peer) == NULL);
    STRESS_CHECK(fault_peer_spans(peer).distinct == sent);
    printf("%" PRIu64 " strings in %" PRIu64 " spans and %zu requests: nothing is wrong\n",
           strings_made, sent, fault_peer_requests(peer));
    fault_peer_stop(peer);
    return 0;
}

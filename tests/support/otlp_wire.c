/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/otlp_wire.c - the contracts are in otlp_wire.h. */
#include "tests/support/otlp_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { POLLS_MAX = 1000000, POLL_MS = 100 };

static struct certificates *certificates;

otel_otlp_protocol wire_protocol(unsigned way)
{
    return (otel_otlp_protocol)(way % WIRE_PLAIN_WAYS);
}

bool wire_is_tls(unsigned way)
{
    return way >= WIRE_PLAIN_WAYS;
}

int wire_set_up(void **state)
{
    (void)state;
    certificates = certificates_new();
    certificates_issue(certificates, &(struct certificate_request){.name = "server"});
    return 0;
}

int wire_tear_down(void **state)
{
    (void)state;
    certificates_free(certificates);
    return 0;
}

struct certificates *wire_certificates(void)
{
    return certificates;
}

void wire_init(struct wire *wire, unsigned way, const struct fault_peer_options *peer,
               const otel_otlp_options *exporter)
{
    struct fault_peer_options served = {0};
    otel_otlp_options chosen = {.size = sizeof chosen};
    if (peer != NULL)
        served = *peer;
    if (exporter != NULL)
        chosen = *exporter;
    if (wire_is_tls(way)) {
        served.tls.certificate = certificates_path(certificates, "server.pem");
        served.tls.key = certificates_path(certificates, "server.key");
        if (chosen.ca_file == NULL)
            chosen.ca_file = certificates_path(certificates, "ca.pem");
    }
    chosen.protocol = wire_protocol(way);
    wire->peer = fault_peer_start(&served);
    const bool is_grpc = chosen.protocol == OTEL_OTLP_GRPC;
    snprintf(wire->endpoint, sizeof wire->endpoint, "%s",
             is_grpc ? fault_peer_origin(wire->peer) : fault_peer_url(wire->peer));
    if (chosen.endpoint == NULL)
        chosen.endpoint = wire->endpoint;
    fixture_init(&wire->fixture, NULL, 0, &chosen);
    wire_clear(wire);
    for (uint64_t id = 1; id <= 3; id++)
        wire_add(wire, id, 10);
}

void wire_init_answer(struct wire *wire, unsigned way, const struct fault_answer *answer,
                      const otel_otlp_options *exporter)
{
    wire_init(wire, way, &(struct fault_peer_options){.otherwise = *answer}, exporter);
}

void wire_fini(struct wire *wire)
{
    fault_peer_stop(wire->peer);
    fixture_fini(&wire->fixture); /* counts what is left */
}

void wire_clear(struct wire *wire)
{
    const otel_slice resource = wire->fixture.batch.resource;
    batch_double_fini(&wire->fixture.batch);
    wire->fixture.batch.resource = resource;
}

static size_t put_varint(uint8_t *at, size_t value)
{
    size_t length = 0;
    for (; value >= 0x80; value >>= 7)
        at[length++] = (uint8_t)(value | 0x80);
    at[length++] = (uint8_t)value;
    return length;
}

/* trace_id, span_id, name */
void wire_add(struct wire *wire, uint64_t id, size_t name_length)
{
    static const otel_scope_view scope = {.otlp = {"\x0a\x04shop", 6}};
    uint8_t *bytes = malloc(name_length + 64);
    assert_non_null(bytes);
    memcpy(bytes, "\x0a\x10one trace of all\x12\x08", 20);
    for (size_t i = 0; i < 8; i++)
        bytes[20 + i] = (uint8_t)(id >> (56 - 8 * i));
    size_t length = 28;
    bytes[length++] = 0x2a;
    length += put_varint(bytes + length, name_length);
    memset(bytes + length, 'n', name_length);
    batch_double_add(&wire->fixture.batch, &scope, bytes, length + name_length);
    free(bytes);
}

/* How long the exporter said that it would wait, in the last line of its log. */
static uint64_t announced_wait_ms(const char *log)
{
    static const char words[] = "again in ";
    const char *said = strstr(log, words);
    return said != NULL ? strtoull(said + sizeof words - 1, NULL, 10) : 0;
}

void wire_export(struct wire *wire)
{
    struct fixture *fixture = &wire->fixture;
    fixture->log[0] = '\0';
    bool is_done = fixture_export(fixture);
    for (size_t polls = 0; !is_done; polls++) {
        const size_t length = strlen(fixture->log);
        assert_true(polls < POLLS_MAX);
        is_done = fixture->exporter.poll(fixture->exporter.state, &fixture->call.export, POLL_MS,
                                         false) == OTEL_EXPORT_DONE;
        if (!is_done)
            fixture_advance_ms(announced_wait_ms(fixture->log + length));
    }
}

size_t wire_delivered(const struct wire *wire)
{
    return wire->fixture.batch.size - export_double_lost(&wire->fixture.call);
}

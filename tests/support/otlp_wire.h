/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/otlp_wire.h - the OTLP exporter between a batch made by hand and the fault
 * receiver, over every protocol, with and without TLS; otherwise as otlp_fixture.h, whose functions
 * work on `fixture`.
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_TESTS_OTLP_WIRE_H
#define OTELI_TESTS_OTLP_WIRE_H

#include "tests/support/certificates.h"
#include "tests/support/fault_peer.h"
#include "tests/support/otlp_fixture.h"

/* A way to send: a protocol, and whether it is under TLS. */
enum { WIRE_PLAIN_WAYS = 3, WIRE_WAYS = 6 };
#define FOR_EACH_WAY(way) for (unsigned way = 0; (way) < WIRE_WAYS; (way)++)
#define FOR_EACH_PLAIN_WAY(way) for (unsigned way = 0; (way) < WIRE_PLAIN_WAYS; (way)++)
otel_otlp_protocol wire_protocol(unsigned way);
bool wire_is_tls(unsigned way);

struct wire {
    struct fixture fixture;
    struct fault_peer *peer;
    char endpoint[160];
};

/* For cmocka's group: the certificates. */
int wire_set_up(void **state);
int wire_tear_down(void **state);
struct certificates *wire_certificates(void);

/* A peer with these options, an exporter for it with these (both may be NULL; what the way decides
 * is filled in), and a batch of three spans whose ids are 1, 2 and 3. */
void wire_init(struct wire *wire, unsigned way, const struct fault_peer_options *peer,
               const otel_otlp_options *exporter);
/* The same with one answer to everything. */
void wire_init_answer(struct wire *wire, unsigned way, const struct fault_answer *answer,
                      const otel_otlp_options *exporter);
void wire_fini(struct wire *wire);

/* Other spans for the batch. */
void wire_clear(struct wire *wire);
void wire_add(struct wire *wire, uint64_t id, size_t name_length);

/* Export until it is done. Time stands still, but for the exporter's waits between attempts. The
 * log has the lines of this export. */
void wire_export(struct wire *wire);

/* Spans of the batch that were not lost. */
size_t wire_delivered(const struct wire *wire);

#endif

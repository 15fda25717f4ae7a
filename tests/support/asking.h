/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/asking.h - a transport by itself, asked one thing after the other.
 *
 * The log is kept here: link it without common/log.c.
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_TESTS_ASKING_H
#define OTELI_TESTS_ASKING_H

#include "exporters/otlp/transport/transport.h"
#include "tests/support/certificates.h"

/* What a transport needs to be told in any case, and then what else is chosen. */
#define ASKING_OPTIONS(...) \
    (&(const struct oteli_transport_options){.user_agent = "asking", __VA_ARGS__})

/* Post some bytes, and wait for what comes of it: ten seconds, and then it is broken off. */
struct oteli_transport_response asking_post(struct oteli_transport *transport, const void *body,
                                            size_t length);
struct oteli_transport_response asking_request(struct oteli_transport *transport,
                                               const struct oteli_transport_request *request);

/* A gRPC message of so many bytes, frame included; one at a time. */
const void *asking_message(size_t length);

/* What was logged since the last call, line by line; valid until the next one. */
const char *asking_log(void);

/* For AROUND_ALL: certificates of a "server" and a "client". */
extern struct certificates *asking_certificates;
int asking_set_up(void **state);
int asking_tear_down(void **state);

#endif

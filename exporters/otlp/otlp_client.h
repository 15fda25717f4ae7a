/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/otlp_client.h - posts ready-made OTLP messages, of whatever signal, one at a time:
 * for exporters in other libraries. Compression, framing, headers, TLS, retries and the deadline
 * are those of spans (request_call.h), and so is what it remembers of how large a message may be
 * (size_limit.h); what becomes of a message is the caller's to count and to log, and to halve.
 *
 * Threads:  one thread at a time; oteli_otlp_client_wake from any thread. */
#ifndef OTELI_OTLP_CLIENT_H
#define OTELI_OTLP_CLIENT_H

#include "common/base/internal_api.h"
#include "exporters/otlp/endpoint.h"

struct oteli_otlp_client;

/* As otel_otlp_exporter_new, which says what the errors mean; `given` may be NULL. What it says of
 * spooling and of requests at a time does not count. */
OTELI_INTERNAL_API otel_status oteli_otlp_client_new(const otel_otlp_options *given,
                                                     enum oteli_otlp_signal signal,
                                                     struct oteli_otlp_client **client);
OTELI_INTERNAL_API void oteli_otlp_client_free(struct oteli_otlp_client *client);

/* The receiver as it may stand in a log line, and the most bytes that a message may have. */
OTELI_INTERNAL_API const char *oteli_otlp_client_receiver(const struct oteli_otlp_client *client);
OTELI_INTERNAL_API size_t oteli_otlp_client_max_bytes(const struct oteli_otlp_client *client);

/* A message. What is known to be too large is not sent if it can be made smaller instead. */
struct oteli_message {
    const void *bytes;
    size_t length;
    size_t items; /* into so many it could be parted; 1: it cannot */
    bool is_part; /* of one that was too large */
};

/* What became of a message. The text stays until the next one is posted. */
struct oteli_otlp_result {
    bool is_delivered;
    bool is_too_large; /* for the receiver, or for us: then there was no attempt */
    bool has_no_memory;
    bool has_no_service;   /* the receiver is there, and knows nothing of this signal */
    bool has_no_time;      /* none was left, or oteli_otlp_client_wake was called */
    bool may_have_arrived; /* not delivered, as far as is known */
    uint64_t rejected;     /* delivered: items that the receiver refuses */
    unsigned attempts;
    const char *text; /* why not; or what the receiver says of a message that it took, perhaps "" */
};

/* What there is to do while a message is on its way. Gives in how many ms it is to be called
 * again. */
struct oteli_meanwhile {
    int (*run)(void *state); /* NULL: nothing */
    void *state;
};

/* Begin with messages that belong together, which have `timeout_ms` for all of them, and not more
 * than the options allow; and be done with them. */
OTELI_INTERNAL_API void oteli_otlp_client_open(struct oteli_otlp_client *client, int64_t timeout_ms,
                                               struct oteli_meanwhile meanwhile);
OTELI_INTERNAL_API void oteli_otlp_client_close(struct oteli_otlp_client *client);

/* Between the two: wait for the end of a message. */
OTELI_INTERNAL_API struct oteli_otlp_result oteli_otlp_client_post(
    struct oteli_otlp_client *client, const struct oteli_message *message);

/* Have the post that waits come back, and those that follow until the close not wait at all. While
 * it is closed nothing happens: what comes too late is not meant for the next messages. */
OTELI_INTERNAL_API void oteli_otlp_client_wake(struct oteli_otlp_client *client);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/posting.h - posts ready-made OTLP messages, of whatever signal, one at a time: for
 * exporters in other libraries. Compression, framing, headers, TLS, retries and the deadline are
 * those of spans (delivery.h); what becomes of a message is the caller's to count and to log.
 *
 * Threads:  one thread at a time; oteli_posting_wake from any thread. */
#ifndef OTELI_OTLP_POSTING_H
#define OTELI_OTLP_POSTING_H

#include "common/lent.h"
#include "exporters/otlp/endpoint.h"

struct oteli_posting;

/* As otel_otlp_exporter_new, which says what the errors mean; `given` may be NULL. What it says of
 * spooling and of requests at a time does not count. */
OTELI_LENT otel_status oteli_posting_new(const otel_otlp_options *given,
                                         enum oteli_otlp_signal signal,
                                         struct oteli_posting **posting);
OTELI_LENT void oteli_posting_free(struct oteli_posting *posting);

/* The receiver as it may stand in a log line, and the most bytes that a message may have. */
OTELI_LENT const char *oteli_posting_receiver(const struct oteli_posting *posting);
OTELI_LENT size_t oteli_posting_max_bytes(const struct oteli_posting *posting);

/* What became of a message. The text stays until the next one is posted. */
struct oteli_posted {
    bool is_delivered;
    bool has_no_memory;
    bool has_no_service;   /* the receiver is there, and knows nothing of this signal */
    bool has_no_time;      /* none was left, or somebody has woken it */
    bool may_have_arrived; /* not delivered, as far as is known */
    uint64_t rejected;     /* delivered: items that the receiver refuses */
    unsigned attempts;
    const char *text; /* why not; or what the receiver says of a message that it took, perhaps "" */
};

/* Wait for the end of it, for `timeout_ms` at most and not for longer than the options allow. */
OTELI_LENT struct oteli_posted oteli_posting_post(struct oteli_posting *posting,
                                                  const void *message, size_t length,
                                                  int64_t timeout_ms);

/* Have the post that waits come back, or if there is none the next one. */
OTELI_LENT void oteli_posting_wake(struct oteli_posting *posting);

#endif

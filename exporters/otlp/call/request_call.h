/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/call/request_call.h - a request call: one OTLP request, from its first attempt
 * until it is known what became of its spans. It has the attempts, the back-off, what the receiver
 * asks for, and the deadline. An export call (sdk/worker/export.h) makes one or several.
 *
 *     begin ─┬─▶ SENDING ── response ───▶ ENDED: delivered, refused, too large, hopeless
 *            │    ▲   └ receiver busy, no response or no connection ─┐
 *            │    └───── the time of the next attempt ─── WAITING ◀──┤
 *            └ the program has no headers, or there is no memory ────┘
 *
 *     from each of them, when no attempt fits before the deadline ─▶ ENDED: exhausted, unconfirmed
 *
 * No accounting and no log line about lost spans: its owner does that.
 *
 * Threads:  one thread at a time; oteli_request_call_wake from any thread.
 * Fork:     a child makes its own, with a transport like the parent's (oteli_transport_renew). */
#ifndef OTELI_REQUEST_CALL_H
#define OTELI_REQUEST_CALL_H

#include "exporters/otlp/call/request_headers.h"
#include "exporters/otlp/protocol/protocol.h"
#include "exporters/otlp/transport/transport.h"

/* What all request calls to a receiver have in common. Constant, and outlives them. */
struct oteli_receiver {
    const char *name; /* its endpoint, as it may stand in a log line */
    otel_otlp_protocol protocol;
    bool (*add_headers)(void *state, otel_otlp_request_headers *headers); /* or NULL */
    void *add_headers_state;
};

enum oteli_request_call_state {
    OTELI_CALL_IDLE, /* before the first request */
    OTELI_CALL_SENDING,
    OTELI_CALL_WAITING, /* for the next attempt */
    OTELI_CALL_ENDED
};

enum oteli_request_call_end {
    OTELI_CALL_DELIVERED,   /* outcome.rejected and outcome.message say more */
    OTELI_CALL_REFUSED,     /* the receiver's answer is final */
    OTELI_CALL_TOO_LARGE,   /* it would take less at a time */
    OTELI_CALL_HOPELESS,    /* no answer, and no retry can help: a bad certificate */
    OTELI_CALL_EXHAUSTED,   /* no time left; nothing of it can have arrived */
    OTELI_CALL_UNCONFIRMED, /* no time left; some attempt was sent and got no answer */
};

struct oteli_request_call {
    const struct oteli_receiver *receiver;
    struct oteli_transport *transport; /* its own */
    struct otel_otlp_request_headers headers;
    bool hurries;     /* the program ends: one attempt if it is refused. Its owner sets it */
    bool wants_fresh; /* connection: the one before led to a busy receiver, or to none */

    /* Of the request on its way, or that ended last. */
    enum oteli_request_call_state state;
    enum oteli_request_call_end end; /* when ENDED */
    const void *bytes;
    size_t length;
    uint64_t deadline_ns;
    unsigned attempts;
    bool may_have_arrived;        /* some attempt was sent and got no answer */
    uint64_t retry_at_ns;         /* when WAITING */
    struct oteli_outcome outcome; /* of the last attempt; its `problem` is never empty unless
                                     DELIVERED */
};

/* `transport` is adopted in any case; NULL: false, no memory. */
bool oteli_request_call_init(struct oteli_request_call *request_call,
                             const struct oteli_receiver *receiver,
                             struct oteli_transport *transport);
/* Also of one that is all zero. */
void oteli_request_call_fini(struct oteli_request_call *request_call);

/* Begin with a request, which stays until the end. It has ended at once when there is no time. */
void oteli_request_call_begin(struct oteli_request_call *request_call, const void *bytes,
                              size_t length, uint64_t deadline_ns);

/* Go on for at most `timeout_ms`; the deadline may have become earlier (0: to the end, at once).
 * true: it has ended. */
bool oteli_request_call_go_on(struct oteli_request_call *request_call, int timeout_ms,
                              uint64_t deadline_ns);

/* Whether there is a request that has not ended. */
bool oteli_request_call_is_pending(const struct oteli_request_call *request_call);

/* Whether this end says that the receiver is there. */
bool oteli_request_call_ended_by_receiver(enum oteli_request_call_end end);

/* In how many milliseconds it can go on in any case, with this deadline; -1: no such time. The
 * descriptor of its transport says when it can before. */
int oteli_request_call_timeout_ms(struct oteli_request_call *request_call, uint64_t deadline_ns);

void oteli_request_call_wake(struct oteli_request_call *request_call);

#endif

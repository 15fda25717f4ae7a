/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/call/request_call.c - the contracts are in exporters/otlp/call/request_call.h. Exporter thread;
 * owns the transport and the headers of an attempt, borrows the request. */
#include "exporters/otlp/call/request_call.h"

#include "common/clock/clock.h"
#include "common/log.h"
#include "common/base/random.h"
#include "common/clock/time_units.h"
#include "exporters/otlp/call/retry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FOREVER UINT64_MAX

enum { GRPC_TIMEOUT_MAX = 99999999 }; /* eight digits */

bool oteli_request_call_init(struct oteli_request_call *delivery,
                             const struct oteli_receiver *receiver,
                             struct oteli_transport *transport)
{
    *delivery = (struct oteli_request_call){.receiver = receiver, .transport = transport};
    return transport != NULL;
}

bool oteli_request_call_renew(struct oteli_request_call *delivery,
                              const struct oteli_receiver *receiver,
                              const struct oteli_request_call *parents)
{
    return oteli_request_call_init(delivery, receiver, oteli_transport_renew(parents->transport));
}

void oteli_request_call_fini(struct oteli_request_call *delivery)
{
    if (delivery->transport != NULL)
        oteli_transport_free(delivery->transport);
    oteli_headers_fini(&delivery->headers);
    *delivery = (struct oteli_request_call){.state = OTELI_CALL_IDLE};
}

static int shorter_ms(int timeout_ms, uint64_t other_ms)
{
    return timeout_ms < 0 || other_ms < (uint64_t)timeout_ms
               ? (int)(other_ms < INT32_MAX ? other_ms : INT32_MAX)
               : timeout_ms;
}

static bool end(struct oteli_request_call *delivery, enum oteli_request_call_end how)
{
    delivery->state = OTELI_CALL_ENDED;
    delivery->end = how;
    return true;
}

/* No time is left. */
static bool give_up(struct oteli_request_call *delivery)
{
    return end(delivery,
               delivery->may_have_arrived ? OTELI_CALL_UNCONFIRMED : OTELI_CALL_EXHAUSTED);
}

static bool retry(struct oteli_request_call *delivery)
{
    const struct oteli_outcome *outcome = &delivery->outcome;
    if (delivery->hurries && outcome->was_refused)
        return give_up(delivery);
    const uint64_t now = oteli_monotonic_ns();
    const uint64_t wait_ms = oteli_retry_wait_ms(
        delivery->attempts - 1, outcome->is_throttled ? outcome->asked_ms : 0, oteli_random_once());
    delivery->retry_at_ns = oteli_ns_after(now, wait_ms);
    if (delivery->retry_at_ns >= delivery->deadline_ns)
        return give_up(delivery);
    OTELI_LOG(OTEL_LOG_DEBUG, "OTLP export to %s: %s; again in %" PRIu64 " ms",
              delivery->receiver->name, outcome->problem, wait_ms);
    delivery->state = OTELI_CALL_WAITING;
    return false;
}

/* Act on what came of an attempt. */
static bool settle(struct oteli_request_call *delivery,
                   const struct oteli_transport_response *answer)
{
    struct oteli_outcome *outcome = &delivery->outcome;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    oteli_protocol_read(delivery->receiver->protocol, answer, now.tv_sec, outcome);
    delivery->may_have_arrived |= outcome->may_have_arrived;
    delivery->wants_fresh = outcome->verdict == OTELI_VERDICT_RETRY;
    switch (outcome->verdict) {
    case OTELI_VERDICT_DELIVERED:
        return end(delivery, OTELI_CALL_DELIVERED);
    case OTELI_VERDICT_TOO_LARGE:
        return end(delivery, OTELI_CALL_TOO_LARGE);
    case OTELI_VERDICT_HOPELESS:
        return end(delivery, OTELI_CALL_HOPELESS);
    case OTELI_VERDICT_FINAL:
        return end(delivery, OTELI_CALL_REFUSED);
    case OTELI_VERDICT_RETRY:
        break;
    }
    return retry(delivery);
}

/* An attempt that found nobody, for a reason of our own. */
static bool fail(struct oteli_request_call *delivery, const char *problem)
{
    delivery->outcome = (struct oteli_outcome){.verdict = OTELI_VERDICT_RETRY};
    snprintf(delivery->outcome.problem, sizeof delivery->outcome.problem, "%s", problem);
    return retry(delivery);
}

/* How long the receiver may take, as gRPC writes it down. */
static bool put_grpc_timeout(struct oteli_request_call *delivery, uint64_t left_ms)
{
    char text[24];
    if (delivery->receiver->protocol != OTEL_OTLP_GRPC || delivery->deadline_ns == FOREVER)
        return true;
    uint64_t value = left_ms;
    const char *unit = "m";
    if (value > GRPC_TIMEOUT_MAX) {
        value = left_ms / 1000;
        unit = "S";
    }
    if (value > GRPC_TIMEOUT_MAX)
        return true; /* more than three years */
    snprintf(text, sizeof text, "%" PRIu64 "%s", value, unit);
    return oteli_headers_put(&delivery->headers, "grpc-timeout", text);
}

static bool attempt(struct oteli_request_call *delivery)
{
    const struct oteli_receiver *receiver = delivery->receiver;
    if (oteli_monotonic_ns() >= delivery->deadline_ns)
        return give_up(delivery);
    delivery->attempts++;
    oteli_headers_clear(&delivery->headers);
    if (receiver->add_headers != NULL &&
        !receiver->add_headers(receiver->add_headers_state, &delivery->headers))
        return fail(delivery, "the program has no headers for the request");
    const uint64_t left_ms = oteli_ms_between(oteli_monotonic_ns(), delivery->deadline_ns);
    if (left_ms == 0)
        return give_up(delivery);
    if (!put_grpc_timeout(delivery, left_ms))
        return fail(delivery, "no memory for the headers of the request");
    const struct oteli_transport_request request = {
        .body = delivery->bytes,
        .length = delivery->length,
        .connect_ms = oteli_retry_connect_ms(left_ms),
        .fresh = delivery->wants_fresh,
        .headers = delivery->headers.list,
        .header_count = delivery->headers.count,
    };
    oteli_transport_start(delivery->transport, &request);
    delivery->state = OTELI_CALL_SENDING;
    return false;
}

void oteli_request_call_begin(struct oteli_request_call *delivery, const void *bytes, size_t length,
                              uint64_t deadline_ns)
{
    delivery->bytes = bytes;
    delivery->length = length;
    delivery->deadline_ns = deadline_ns;
    delivery->attempts = 0;
    delivery->may_have_arrived = false;
    delivery->outcome = (struct oteli_outcome){.problem = "no time was left"};
    (void)attempt(delivery);
}

static bool go_on_sending(struct oteli_request_call *delivery, int timeout_ms)
{
    struct oteli_transport_response answer;
    const uint64_t left_ms = oteli_ms_between(oteli_monotonic_ns(), delivery->deadline_ns);
    if (oteli_transport_poll(delivery->transport, shorter_ms(timeout_ms, left_ms), &answer))
        return settle(delivery, &answer);
    if (oteli_monotonic_ns() < delivery->deadline_ns)
        return false;
    oteli_transport_cancel(delivery->transport, &answer);
    return settle(delivery, &answer);
}

static bool go_on_waiting(struct oteli_request_call *delivery, int timeout_ms)
{
    const uint64_t now = oteli_monotonic_ns();
    if (delivery->hurries && delivery->outcome.was_refused)
        return attempt(delivery); /* the last one */
    if (delivery->retry_at_ns >= delivery->deadline_ns)
        return give_up(delivery);
    if (delivery->retry_at_ns > now) {
        oteli_transport_sleep(delivery->transport,
                              shorter_ms(timeout_ms, oteli_ms_between(now, delivery->retry_at_ns)));
        if (delivery->retry_at_ns > oteli_monotonic_ns())
            return false;
    }
    return attempt(delivery);
}

bool oteli_request_call_go_on(struct oteli_request_call *delivery, int timeout_ms,
                              uint64_t deadline_ns)
{
    if (deadline_ns < delivery->deadline_ns)
        delivery->deadline_ns = deadline_ns;
    switch (delivery->state) {
    case OTELI_CALL_SENDING:
        return go_on_sending(delivery, timeout_ms);
    case OTELI_CALL_WAITING:
        return go_on_waiting(delivery, timeout_ms);
    case OTELI_CALL_IDLE:
    case OTELI_CALL_ENDED:
        break;
    }
    return true;
}

bool oteli_request_call_is_pending(const struct oteli_request_call *delivery)
{
    return delivery->state == OTELI_CALL_SENDING || delivery->state == OTELI_CALL_WAITING;
}

bool oteli_request_call_is_failing(const struct oteli_request_call *delivery)
{
    return delivery->state == OTELI_CALL_WAITING ||
           (delivery->state == OTELI_CALL_SENDING && delivery->attempts > 1) ||
           (delivery->state == OTELI_CALL_ENDED && !oteli_request_call_was_answered(delivery->end));
}

bool oteli_request_call_was_answered(enum oteli_request_call_end how)
{
    return how == OTELI_CALL_DELIVERED || how == OTELI_CALL_REFUSED || how == OTELI_CALL_TOO_LARGE;
}

int oteli_request_call_timeout_ms(struct oteli_request_call *delivery, uint64_t deadline_ns)
{
    uint64_t then = deadline_ns < delivery->deadline_ns ? deadline_ns : delivery->deadline_ns;
    int timeout_ms = -1;
    if (!oteli_request_call_is_pending(delivery))
        return -1;
    if (delivery->state == OTELI_CALL_SENDING)
        timeout_ms = oteli_transport_timeout_ms(delivery->transport);
    else if (delivery->retry_at_ns < then)
        then = delivery->retry_at_ns;
    else
        return 0; /* to give up */
    return then != FOREVER ? shorter_ms(timeout_ms, oteli_ms_between(oteli_monotonic_ns(), then))
                           : timeout_ms;
}

void oteli_request_call_wake(struct oteli_request_call *delivery)
{
    oteli_transport_wake(delivery->transport);
}

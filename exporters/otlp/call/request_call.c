/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/call/request_call.c - the contracts are in exporters/otlp/call/request_call.h.
 * Exporter thread; owns the transport and the headers of an attempt, borrows the request. */
#include "exporters/otlp/call/request_call.h"

#include "common/base/random.h"
#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "common/log.h"
#include "exporters/otlp/call/retry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FOREVER UINT64_MAX

enum { GRPC_TIMEOUT_MAX = 99999999 }; /* eight digits */

bool oteli_request_call_init(struct oteli_request_call *request_call,
                             const struct oteli_receiver *receiver,
                             struct oteli_transport *transport)
{
    *request_call = (struct oteli_request_call){.receiver = receiver, .transport = transport};
    return transport != NULL;
}

void oteli_request_call_fini(struct oteli_request_call *request_call)
{
    if (request_call->transport != NULL)
        oteli_transport_free(request_call->transport);
    oteli_headers_fini(&request_call->headers);
    *request_call = (struct oteli_request_call){.state = OTELI_CALL_IDLE};
}

static int shorter_ms(int timeout_ms, uint64_t other_ms)
{
    return timeout_ms < 0 || other_ms < (uint64_t)timeout_ms
               ? (int)(other_ms < INT32_MAX ? other_ms : INT32_MAX)
               : timeout_ms;
}

static bool end(struct oteli_request_call *request_call, enum oteli_request_call_end how)
{
    request_call->state = OTELI_CALL_ENDED;
    request_call->end = how;
    return true;
}

/* No time is left. */
static bool end_without_time(struct oteli_request_call *request_call)
{
    return end(request_call,
               request_call->may_have_arrived ? OTELI_CALL_UNCONFIRMED : OTELI_CALL_EXHAUSTED);
}

static bool retry(struct oteli_request_call *request_call)
{
    const struct oteli_outcome *outcome = &request_call->outcome;
    if (request_call->hurries && outcome->connection_refused)
        return end_without_time(request_call);
    const uint64_t now = oteli_monotonic_ns();
    const uint64_t wait_ms =
        oteli_retry_wait_ms(request_call->attempts - 1,
                            outcome->is_throttled ? outcome->asked_ms : 0, oteli_random_once());
    request_call->retry_at_ns = oteli_ns_after(now, wait_ms);
    if (request_call->retry_at_ns >= request_call->deadline_ns)
        return end_without_time(request_call);
    OTELI_LOG(OTEL_LOG_DEBUG, "OTLP export to %s: %s; again in %" PRIu64 " ms",
              request_call->receiver->name, outcome->problem, wait_ms);
    request_call->state = OTELI_CALL_WAITING;
    return false;
}

/* Act on what came of an attempt. */
static bool act_on(struct oteli_request_call *request_call,
                   const struct oteli_transport_response *answer)
{
    struct oteli_outcome *outcome = &request_call->outcome;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    oteli_protocol_read(request_call->receiver->protocol, answer, outcome);
    oteli_retry_read(outcome, now.tv_sec);
    request_call->may_have_arrived |= outcome->may_have_arrived;
    request_call->wants_fresh = outcome->verdict == OTELI_VERDICT_RETRY;
    switch (outcome->verdict) {
    case OTELI_VERDICT_DELIVERED:
        return end(request_call, OTELI_CALL_DELIVERED);
    case OTELI_VERDICT_TOO_LARGE:
        return end(request_call, OTELI_CALL_TOO_LARGE);
    case OTELI_VERDICT_HOPELESS:
        return end(request_call, OTELI_CALL_HOPELESS);
    case OTELI_VERDICT_FINAL:
        return end(request_call, OTELI_CALL_REFUSED);
    case OTELI_VERDICT_RETRY:
        break;
    }
    return retry(request_call);
}

/* An attempt that failed before anything was sent, for lack of headers or memory: try again
 * later. */
static bool fail(struct oteli_request_call *request_call, const char *problem)
{
    request_call->outcome = (struct oteli_outcome){.verdict = OTELI_VERDICT_RETRY};
    snprintf(request_call->outcome.problem, sizeof request_call->outcome.problem, "%s", problem);
    return retry(request_call);
}

/* How long the receiver may take, as gRPC writes it down. */
static bool put_grpc_timeout(struct oteli_request_call *request_call, uint64_t left_ms)
{
    char text[24];
    if (request_call->receiver->protocol != OTEL_OTLP_GRPC || request_call->deadline_ns == FOREVER)
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
    return oteli_headers_put(&request_call->headers, "grpc-timeout", text);
}

static bool attempt(struct oteli_request_call *request_call)
{
    const struct oteli_receiver *receiver = request_call->receiver;
    if (oteli_monotonic_ns() >= request_call->deadline_ns)
        return end_without_time(request_call);
    request_call->attempts++;
    oteli_headers_clear(&request_call->headers);
    if (receiver->add_headers != NULL &&
        !receiver->add_headers(receiver->add_headers_state, &request_call->headers))
        return fail(request_call, "the program has no headers for the request");
    const uint64_t left_ms = oteli_ms_between(oteli_monotonic_ns(), request_call->deadline_ns);
    if (left_ms == 0)
        return end_without_time(request_call);
    if (!put_grpc_timeout(request_call, left_ms))
        return fail(request_call, "no memory for the headers of the request");
    const struct oteli_transport_request request = {
        .body = request_call->bytes,
        .length = request_call->length,
        .connect_ms = oteli_retry_connect_ms(left_ms),
        .fresh = request_call->wants_fresh,
        .headers = request_call->headers.list,
        .header_count = request_call->headers.count,
    };
    oteli_transport_start(request_call->transport, &request);
    request_call->state = OTELI_CALL_SENDING;
    return false;
}

void oteli_request_call_begin(struct oteli_request_call *request_call, const void *bytes,
                              size_t length, uint64_t deadline_ns)
{
    request_call->bytes = bytes;
    request_call->length = length;
    request_call->deadline_ns = deadline_ns;
    request_call->attempts = 0;
    request_call->may_have_arrived = false;
    request_call->outcome = (struct oteli_outcome){.problem = "no time was left"};
    (void)attempt(request_call);
}

static bool go_on_sending(struct oteli_request_call *request_call, int timeout_ms)
{
    struct oteli_transport_response answer;
    const uint64_t left_ms = oteli_ms_between(oteli_monotonic_ns(), request_call->deadline_ns);
    if (oteli_transport_poll(request_call->transport, shorter_ms(timeout_ms, left_ms), &answer))
        return act_on(request_call, &answer);
    if (oteli_monotonic_ns() < request_call->deadline_ns)
        return false;
    oteli_transport_cancel(request_call->transport, &answer);
    return act_on(request_call, &answer);
}

static bool go_on_waiting(struct oteli_request_call *request_call, int timeout_ms)
{
    const uint64_t now = oteli_monotonic_ns();
    if (request_call->hurries && request_call->outcome.connection_refused)
        return attempt(request_call); /* the last one */
    if (request_call->retry_at_ns >= request_call->deadline_ns)
        return end_without_time(request_call);
    if (request_call->retry_at_ns > now) {
        oteli_transport_sleep(
            request_call->transport,
            shorter_ms(timeout_ms, oteli_ms_between(now, request_call->retry_at_ns)));
        if (request_call->retry_at_ns > oteli_monotonic_ns())
            return false;
    }
    return attempt(request_call);
}

bool oteli_request_call_go_on(struct oteli_request_call *request_call, int timeout_ms,
                              uint64_t deadline_ns)
{
    if (deadline_ns < request_call->deadline_ns)
        request_call->deadline_ns = deadline_ns;
    switch (request_call->state) {
    case OTELI_CALL_SENDING:
        return go_on_sending(request_call, timeout_ms);
    case OTELI_CALL_WAITING:
        return go_on_waiting(request_call, timeout_ms);
    case OTELI_CALL_IDLE:
    case OTELI_CALL_ENDED:
        break;
    }
    return true;
}

bool oteli_request_call_is_pending(const struct oteli_request_call *request_call)
{
    return request_call->state == OTELI_CALL_SENDING || request_call->state == OTELI_CALL_WAITING;
}

bool oteli_request_call_ended_by_receiver(enum oteli_request_call_end how)
{
    return how == OTELI_CALL_DELIVERED || how == OTELI_CALL_REFUSED || how == OTELI_CALL_TOO_LARGE;
}

int oteli_request_call_timeout_ms(struct oteli_request_call *request_call, uint64_t deadline_ns)
{
    uint64_t then =
        deadline_ns < request_call->deadline_ns ? deadline_ns : request_call->deadline_ns;
    int timeout_ms = -1;
    if (!oteli_request_call_is_pending(request_call))
        return -1;
    if (request_call->state == OTELI_CALL_SENDING)
        timeout_ms = oteli_transport_timeout_ms(request_call->transport);
    else if (request_call->retry_at_ns < then)
        then = request_call->retry_at_ns;
    else
        return 0; /* to give up */
    return then != FOREVER ? shorter_ms(timeout_ms, oteli_ms_between(oteli_monotonic_ns(), then))
                           : timeout_ms;
}

void oteli_request_call_wake(struct oteli_request_call *request_call)
{
    oteli_transport_wake(request_call->transport);
}

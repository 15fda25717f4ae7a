/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/batch_export.c - the contracts are in exporters/otlp/batch_export.h. Exporter thread. */
#include "exporters/otlp/batch_export.h"

#include "common/clock/clock.h"
#include "common/log.h"
#include "common/text/text.h"
#include "common/clock/time_units.h"

#include <inttypes.h>
#include <poll.h>

enum {
    PREPARED_BYTES_MAX = 512 * 1024,
    BLIND_MS = 10 /* between looks at what no descriptor speaks for */
};

static uint64_t deadline_of(const struct oteli_sending *sending, const otel_export *call)
{
    return call->deadline_ns < sending->deadline_ns ? call->deadline_ns : sending->deadline_ns;
}

/* --- One request --- */

/* Make a request that is not larger than what the receiver takes, as far as that is known. */
static enum oteli_encode_result make(const struct oteli_sending *sending,
                                     struct oteli_request *request, const otel_batch *batch,
                                     size_t first, size_t most)
{
    enum oteli_encode_result result = oteli_request_make(request, batch, first, most);
    while (result == OTELI_ENCODE_OK) {
        const size_t fitting =
            oteli_fitting_spans(&sending->fitting, request->spans, request->plain_length);
        if (fitting == request->spans)
            break;
        result = oteli_request_make(request, batch, first, fitting);
    }
    return result;
}

static enum oteli_encode_result make_or_take(struct oteli_sending *sending, struct oteli_lane *lane,
                                             const otel_batch *batch, size_t most)
{
    if (sending->is_prepared && lane->first == 0) {
        struct oteli_request *prepared = sending->spare;
        sending->is_prepared = false;
        sending->spare = lane->request;
        lane->request = prepared;
        if (oteli_fitting_spans(&sending->fitting, prepared->spans, prepared->plain_length) ==
            prepared->spans)
            return OTELI_ENCODE_OK;
    }
    return make(sending, lane->request, batch, lane->first, most);
}

static void lose_too_large(const struct oteli_sending *sending, otel_export *call)
{
    otel_export_drop(call, OTEL_DROP_TOO_LARGE, 1);
    OTELI_LOG_LOST(OTEL_LOG_ERROR, 1,
                   "a span is larger than an OTLP request may be (%zu bytes); it is lost",
                   sending->max_request_bytes);
}

/* The rest of the batch that is not in another lane's hands. Gives how many spans that is. */
static size_t leave_rest(struct oteli_sending *sending, const otel_export *call,
                         struct oteli_lane *lane)
{
    const size_t left = lane->end - lane->first + otel_batch_size(call->batch) - sending->next;
    sending->next = otel_batch_size(call->batch);
    lane->first = lane->end;
    return left;
}

static void lose_without_memory(struct oteli_sending *sending, otel_export *call,
                                struct oteli_lane *lane)
{
    const size_t left = leave_rest(sending, call, lane);
    otel_export_drop(call, OTEL_DROP_NO_MEMORY, left);
    OTELI_LOG_LOST(OTEL_LOG_ERROR, left, "no memory for an OTLP request; %zu span%s lost", left,
                   oteli_is_or_are(left));
}

/* How many spans the next request of a stretch may have. */
static size_t most_of(const struct oteli_lane *lane)
{
    const size_t stretch = lane->end - lane->first;
    const size_t most = lane->most < stretch ? lane->most : stretch;
    if (lane->suspect_end <= lane->first)
        return most;
    const size_t half = (lane->suspect_end - lane->first + 1) / 2;
    return half < most ? half : most;
}

/* Make the lane's next request: from the rest of its stretch, or else from a new one. Spans that
 * fit into no request are left behind. false: nothing is left. */
static bool make_next(struct oteli_sending *sending, otel_export *call, struct oteli_lane *lane)
{
    for (;;) {
        const bool is_new = lane->first == lane->end;
        if (is_new) {
            if (sending->next == otel_batch_size(call->batch))
                return false;
            lane->first = sending->next;
            lane->end = sending->next;
            lane->most = SIZE_MAX;
            lane->suspect_end = 0;
        }
        switch (make_or_take(sending, lane, call->batch, is_new ? lane->most : most_of(lane))) {
        case OTELI_ENCODE_OK:
            if (is_new) {
                lane->end = lane->first + lane->request->spans;
                sending->next = lane->end;
            }
            return true;
        case OTELI_ENCODE_TOO_LARGE:
            lose_too_large(sending, call);
            lane->first++;
            if (is_new) {
                lane->end++;
                sending->next++;
            }
            break;
        case OTELI_ENCODE_NO_MEMORY:
            lose_without_memory(sending, call, lane);
            return false;
        }
    }
}

/* --- What becomes of it --- */

static void accept(struct oteli_sending *sending, otel_export *call, const struct oteli_lane *lane)
{
    const struct oteli_outcome *outcome = &lane->delivery.outcome;
    const size_t spans = lane->request->spans;
    OTELI_LOG_ALWAYS(OTEL_LOG_DEBUG, "OTLP export to %s: %zu span%s, %zu bytes, in %" PRIu64 " ms",
                     sending->receiver->name, spans, spans == 1 ? "" : "s", lane->request->length,
                     (oteli_monotonic_ns() - lane->started_ns) / OTELI_NS_PER_MS);
    oteli_culprit_accepted(&sending->culprit);
    oteli_fitting_taken(&sending->fitting, lane->request->plain_length, lane->most != SIZE_MAX,
                        sending->max_request_bytes);
    if (outcome->rejected != 0) {
        const size_t rejected = outcome->rejected < spans ? (size_t)outcome->rejected : spans;
        otel_export_reject(call, rejected);
        OTELI_LOG_LOST(OTEL_LOG_ERROR, rejected, "%s rejected %zu of %zu span%s: %s",
                       sending->receiver->name, rejected, spans, oteli_plural(spans),
                       outcome->message);
    } else if (outcome->message[0] != '\0') {
        OTELI_LOG(OTEL_LOG_WARN, "%s accepted all spans and warns: %s", sending->receiver->name,
                  outcome->message);
    }
}

/* Put the request to disk, if that is possible. */
static bool keep(struct oteli_sending *sending, otel_export *call, const struct oteli_lane *lane)
{
    if (sending->spooling == NULL || !oteli_spooling_keep(sending->spooling, lane->request))
        return false;
    otel_export_spool(call, lane->request->spans);
    return true;
}

/* A request that is not sent again. */
static void lose(const struct oteli_sending *sending, otel_export *call,
                 const struct oteli_lane *lane, otel_drop_reason reason)
{
    const struct oteli_delivery *delivery = &lane->delivery;
    const size_t spans = lane->request->spans;
    const bool may_be_there = delivery->may_have_arrived;
    otel_export_drop(call, may_be_there ? OTEL_DROP_UNCONFIRMED : reason, spans);
    OTELI_LOG_LOST(OTEL_LOG_ERROR, spans, "OTLP export to %s failed: %s; %zu span%s lost%s",
                   sending->receiver->name, delivery->outcome.problem, spans,
                   oteli_is_or_are(spans), may_be_there ? ", or arrived unconfirmed" : "");
}

/* No time is left for this request, so there is none for those behind it. */
static void give_up(struct oteli_sending *sending, otel_export *call, struct oteli_lane *lane)
{
    const struct oteli_delivery *delivery = &lane->delivery;
    const bool may_be_there = delivery->end == OTELI_DELIVERY_UNCONFIRMED;
    const size_t spans = lane->request->spans;
    const size_t left = leave_rest(sending, call, lane);
    const size_t unsent = may_be_there ? left - spans : left;
    if (may_be_there)
        otel_export_drop(call, OTEL_DROP_UNCONFIRMED, spans);
    if (unsent != 0)
        otel_export_drop(call, OTEL_DROP_RETRY_EXHAUSTED, unsent);
    OTELI_LOG_LOST(OTEL_LOG_ERROR, left,
                   "OTLP export to %s gave up after %u attempt%s: %s; %zu span%s lost%s",
                   sending->receiver->name, delivery->attempts, delivery->attempts == 1 ? "" : "s",
                   delivery->outcome.problem, left, oteli_is_or_are(left),
                   may_be_there ? ", or arrived unconfirmed" : "");
}

/* true: the lane goes on with smaller requests. */
static bool halve(struct oteli_sending *sending, struct oteli_lane *lane)
{
    const struct oteli_request *request = lane->request;
    if (request->spans < 2)
        return false;
    oteli_fitting_refused(&sending->fitting, request->spans, request->plain_length);
    lane->most = (request->spans + 1) / 2;
    OTELI_LOG(OTEL_LOG_DEBUG, "OTLP export to %s: %s; again with %zu of %zu spans",
              sending->receiver->name, lane->delivery.outcome.problem, lane->most, request->spans);
    return true;
}

/* true: the lane goes on with halves, to find the span for which the request was refused. */
static bool look_for_culprit(struct oteli_sending *sending, struct oteli_lane *lane)
{
    const struct oteli_request *request = lane->request;
    lane->suspect_end = 0;
    if (!lane->delivery.outcome.is_about_content || lane->delivery.may_have_arrived ||
        !oteli_culprit_halve(&sending->culprit, request->spans, oteli_monotonic_ns()))
        return false;
    lane->suspect_end = lane->first + request->spans;
    OTELI_LOG(OTEL_LOG_DEBUG, "OTLP export to %s: %s; again with half of %zu spans",
              sending->receiver->name, lane->delivery.outcome.problem, request->spans);
    return true;
}

/* Tell the spool, if there is one, what an attempt has shown. */
static void note(struct oteli_sending *sending, const struct oteli_delivery *delivery,
                 bool was_answered)
{
    if (sending->spooling == NULL || delivery->attempts == 0)
        return;
    oteli_spooling_note(sending->spooling, was_answered);
    if (!was_answered && delivery->outcome.is_throttled)
        oteli_spooling_hold_off(sending->spooling, delivery->outcome.asked_ms);
}

/* Spans wait because of an attempt that failed. Their loss, if it comes to that, would be said after
 * the time of the whole export only. */
static void say_away(struct oteli_sending *sending, const struct oteli_lane *lane)
{
    const size_t spans = lane->request->spans;
    if (!sending->is_away)
        OTELI_LOG(OTEL_LOG_WARN, "OTLP export to %s: %s; %zu span%s for the next attempt",
                  sending->receiver->name, lane->delivery.outcome.problem, spans,
                  spans == 1 ? " waits" : "s wait");
    sending->is_away = true;
}

/* Account for the request that has come to its end. */
static void settle(struct oteli_sending *sending, otel_export *call, struct oteli_lane *lane)
{
    const enum oteli_delivery_end end = lane->delivery.end;
    note(sending, &lane->delivery, oteli_delivery_was_answered(end));
    sending->is_away = sending->is_away && !oteli_delivery_was_answered(end);
    switch (end) {
    case OTELI_DELIVERED:
        accept(sending, call, lane);
        break;
    case OTELI_DELIVERY_REFUSED:
        if (look_for_culprit(sending, lane))
            return;
        lose(sending, call, lane, OTEL_DROP_PERMANENT_ERROR);
        break;
    case OTELI_DELIVERY_TOO_LARGE:
        if (halve(sending, lane))
            return;
        lose(sending, call, lane, OTEL_DROP_TOO_LARGE);
        break;
    case OTELI_DELIVERY_HOPELESS:
        if (!keep(sending, call, lane))
            lose(sending, call, lane, OTEL_DROP_PERMANENT_ERROR);
        break;
    case OTELI_DELIVERY_EXHAUSTED:
    case OTELI_DELIVERY_UNCONFIRMED:
        if (keep(sending, call, lane))
            break;
        give_up(sending, call, lane);
        return;
    }
    lane->first += lane->request->spans;
}

/* --- The lanes --- */

/* Give the lane something to do, if there is anything. */
static void start(struct oteli_sending *sending, otel_export *call, struct oteli_lane *lane)
{
    lane->is_busy = false;
    while (!lane->is_busy && make_next(sending, call, lane)) {
        struct oteli_delivery *delivery = &lane->delivery;
        if (sending->spooling != NULL && oteli_spooling_is_away(sending->spooling) &&
            keep(sending, call, lane)) {
            lane->first += lane->request->spans;
            continue;
        }
        delivery->hurries = call->is_stopping;
        lane->started_ns = oteli_monotonic_ns();
        oteli_delivery_begin(delivery, lane->request->bytes, lane->request->length,
                             deadline_of(sending, call));
        lane->kept_after = 0;
        lane->is_busy = oteli_delivery_is_pending(delivery);
        if (!lane->is_busy)
            settle(sending, call, lane);
    }
}

/* The receiver is away or busy, and the spool has more time than this export. Asked once after
 * each attempt. true: the request is on disk, and not waited for any more. */
static bool keep_instead(struct oteli_sending *sending, otel_export *call, struct oteli_lane *lane)
{
    struct oteli_delivery *delivery = &lane->delivery;
    if (sending->spooling == NULL || lane->kept_after == delivery->attempts)
        return false;
    lane->kept_after = delivery->attempts;
    note(sending, delivery, false);
    if (!keep(sending, call, lane))
        return false;
    (void)oteli_delivery_go_on(delivery, 0, 0);
    return true;
}

static void go_on(struct oteli_sending *sending, otel_export *call, struct oteli_lane *lane,
                  int timeout_ms)
{
    struct oteli_delivery *delivery = &lane->delivery;
    delivery->hurries = call->is_stopping;
    if (oteli_delivery_go_on(delivery, timeout_ms, deadline_of(sending, call))) {
        settle(sending, call, lane);
    } else if (delivery->state != OTELI_DELIVERY_WAITING) {
        return;
    } else if (keep_instead(sending, call, lane)) {
        lane->first += lane->request->spans;
    } else {
        say_away(sending, lane);
        return;
    }
    start(sending, call, lane);
}

static size_t busy_lanes(const struct oteli_sending *sending, struct oteli_lane **first)
{
    size_t busy = 0;
    for (size_t i = 0; i < sending->lane_count; i++) {
        if (sending->lanes[i].is_busy && busy++ == 0)
            *first = &sending->lanes[i];
    }
    return busy;
}

static void shorten(int *timeout_ms, int other_ms)
{
    if (other_ms >= 0 && (*timeout_ms < 0 || other_ms < *timeout_ms))
        *timeout_ms = other_ms;
}

/* Until one of several lanes can go on. */
static void wait_for_any(struct oteli_sending *sending, const otel_export *call, int timeout_ms)
{
    struct pollfd watched[OTELI_LANES_MAX];
    nfds_t count = 0;
    for (size_t i = 0; i < sending->lane_count; i++) {
        struct oteli_delivery *delivery = &sending->lanes[i].delivery;
        if (!sending->lanes[i].is_busy)
            continue;
        const int fd = oteli_transport_descriptor(delivery->transport, true);
        watched[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
        shorten(&timeout_ms, oteli_delivery_timeout_ms(delivery, deadline_of(sending, call)));
        if (fd < 0)
            shorten(&timeout_ms, BLIND_MS);
    }
    (void)poll(watched, count, timeout_ms);
}

/* Done, if there is nothing that is on its way. */
static otel_export_result result_of(struct oteli_sending *sending)
{
    struct oteli_lane *lane;
    if (busy_lanes(sending, &lane) != 0)
        return OTEL_EXPORT_PENDING;
    for (size_t i = 0; i < sending->lane_count; i++)
        oteli_transport_rest(sending->lanes[i].delivery.transport);
    sending->call = NULL;
    return OTEL_EXPORT_DONE;
}

otel_export_result oteli_sending_begin(struct oteli_sending *sending, otel_export *call)
{
    const uint64_t now_ns = oteli_monotonic_ns();
    sending->is_prepared = sending->prepared == call->batch;
    sending->prepared = NULL;
    sending->call = call;
    sending->deadline_ns =
        sending->timeout_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + sending->timeout_ns;
    sending->next = 0;
    for (size_t i = 0; i < sending->lane_count; i++) {
        struct oteli_lane *lane = &sending->lanes[i];
        lane->first = 0;
        lane->end = 0;
        start(sending, call, lane);
    }
    return result_of(sending);
}

/* The descriptor that the program watches is the first lane's, and says that somebody has woken it,
 * also when only others are busy: nobody else would take that back. */
static void hear_wakes(struct oteli_sending *sending)
{
    const struct oteli_lane *first = &sending->lanes[0];
    if (!first->is_busy)
        oteli_transport_sleep(first->delivery.transport, 0);
}

otel_export_result oteli_sending_go_on(struct oteli_sending *sending, otel_export *call,
                                       int timeout_ms, bool abandon)
{
    struct oteli_lane *only = NULL;
    hear_wakes(sending);
    if (abandon) {
        /* With the deadline in the past every way leads to the end at once. */
        sending->deadline_ns = 0;
        timeout_ms = 0;
    }
    const size_t busy = busy_lanes(sending, &only);
    if (busy < 2) {
        if (busy != 0)
            go_on(sending, call, only, timeout_ms);
        return result_of(sending);
    }
    if (timeout_ms != 0)
        wait_for_any(sending, call, timeout_ms);
    for (size_t i = 0; i < sending->lane_count; i++) {
        if (sending->lanes[i].is_busy)
            go_on(sending, call, &sending->lanes[i], 0);
    }
    return result_of(sending);
}

/* To make a large request early saves little of the time that it takes to send it, and costs a
 * second copy of it. Its spans are likely to be as large as those on their way. */
static bool is_worth_it(const struct oteli_sending *sending, const otel_batch *next)
{
    const struct oteli_request *request = sending->lanes[0].request;
    const size_t size = otel_batch_size(next);
    const size_t span =
        request->spans != 0 ? request->plain_length / request->spans : 0; /* not known yet */
    return size != 0 && span * size <= PREPARED_BYTES_MAX;
}

void oteli_sending_prepare(struct oteli_sending *sending, const otel_batch *next)
{
    const bool is_made = is_worth_it(sending, next) &&
                         make(sending, sending->spare, next, 0, SIZE_MAX) == OTELI_ENCODE_OK;
    sending->prepared = is_made ? next : NULL;
}

int oteli_sending_descriptor(struct oteli_sending *sending, int *timeout_ms)
{
    *timeout_ms = -1;
    const int fd = oteli_transport_descriptor(sending->lanes[0].delivery.transport, true);
    for (size_t i = 0; i < sending->lane_count; i++) {
        struct oteli_lane *lane = &sending->lanes[i];
        if (!lane->is_busy)
            continue;
        shorten(timeout_ms,
                oteli_delivery_timeout_ms(&lane->delivery, deadline_of(sending, sending->call)));
        if (i != 0)
            shorten(timeout_ms, BLIND_MS);
    }
    return fd;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/batch_export.c - the contracts are in exporters/otlp/batch_export.h. Exporter
 * thread. */
#include "exporters/otlp/batch_export.h"

#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "common/log.h"
#include "common/text/text.h"

#include <inttypes.h>

enum { BLIND_MS = 10 }; /* between looks at a slot that has no descriptor */

static uint64_t deadline_of(const struct oteli_batch_export *batch_export, const otel_export *call)
{
    return call->deadline_ns < batch_export->deadline_ns ? call->deadline_ns
                                                         : batch_export->deadline_ns;
}

/* --- One request --- */

/* Make a request that is not larger than what the receiver takes, as far as that is known. */
static enum oteli_encode_result make(const struct oteli_batch_export *batch_export,
                                     struct oteli_request *request, const otel_batch *batch,
                                     size_t first, size_t most)
{
    enum oteli_encode_result result = oteli_request_make(request, batch, first, most);
    while (result == OTELI_ENCODE_OK) {
        const size_t fits = oteli_size_limit_spans(&batch_export->size_limit, request->spans,
                                                   request->plain_length);
        if (fits == request->spans)
            break;
        result = oteli_request_make(request, batch, first, fits);
    }
    return result;
}

static void lose_too_large(const struct oteli_batch_export *batch_export, otel_export *call)
{
    otel_export_drop(call, OTEL_DROP_TOO_LARGE, 1);
    OTELI_LOG_LOST(OTEL_LOG_ERROR, 1,
                   "a span is larger than an OTLP request may be (%zu bytes); it is lost",
                   batch_export->max_request_bytes);
}

/* The rest of the batch that is not in another slot's hands. Gives how many spans that is. */
static size_t leave_rest(struct oteli_batch_export *batch_export, const otel_export *call,
                         struct oteli_request_slot *slot)
{
    const size_t left = slot->end - slot->first + otel_batch_size(call->batch) - batch_export->next;
    batch_export->next = otel_batch_size(call->batch);
    slot->first = slot->end;
    return left;
}

static void lose_without_memory(struct oteli_batch_export *batch_export, otel_export *call,
                                struct oteli_request_slot *slot)
{
    const size_t left = leave_rest(batch_export, call, slot);
    otel_export_drop(call, OTEL_DROP_NO_MEMORY, left);
    OTELI_LOG_LOST(OTEL_LOG_ERROR, left, "no memory for an OTLP request; %zu span%s lost", left,
                   oteli_is_or_are(left));
}

/* How many spans the next request of a range may have. */
static size_t most_of(const struct oteli_request_slot *slot)
{
    const size_t range = slot->end - slot->first;
    const size_t most = slot->most < range ? slot->most : range;
    if (slot->suspect_end <= slot->first)
        return most;
    const size_t half = (slot->suspect_end - slot->first + 1) / 2;
    return half < most ? half : most;
}

/* Make the slot's next request: from the rest of its range, or else from a new one. Spans that
 * fit into no request are left behind. false: nothing is left. */
static bool make_next(struct oteli_batch_export *batch_export, otel_export *call,
                      struct oteli_request_slot *slot)
{
    for (;;) {
        const bool is_new = slot->first == slot->end;
        if (is_new) {
            if (batch_export->next == otel_batch_size(call->batch))
                return false;
            slot->first = batch_export->next;
            slot->end = batch_export->next;
            slot->most = SIZE_MAX;
            slot->suspect_end = 0;
        }
        switch (make(batch_export, &slot->request, call->batch, slot->first,
                     is_new ? slot->most : most_of(slot))) {
        case OTELI_ENCODE_OK:
            if (is_new) {
                slot->end = slot->first + slot->request.spans;
                batch_export->next = slot->end;
            }
            return true;
        case OTELI_ENCODE_TOO_LARGE:
            lose_too_large(batch_export, call);
            slot->first++;
            if (is_new) {
                slot->end++;
                batch_export->next++;
            }
            break;
        case OTELI_ENCODE_NO_MEMORY:
            lose_without_memory(batch_export, call, slot);
            return false;
        }
    }
}

/* --- What becomes of it --- */

static void accept(struct oteli_batch_export *batch_export, otel_export *call,
                   const struct oteli_request_slot *slot)
{
    const struct oteli_outcome *outcome = &slot->request_call.outcome;
    const size_t spans = slot->request.spans;
    OTELI_LOG_ALWAYS(OTEL_LOG_DEBUG, "OTLP export to %s: %zu span%s, %zu bytes, in %" PRIu64 " ms",
                     batch_export->receiver->name, spans, oteli_plural(spans), slot->request.length,
                     (oteli_monotonic_ns() - slot->started_ns) / OTELI_NS_PER_MS);
    oteli_culprit_accepted(&batch_export->culprit);
    oteli_size_limit_accepted(&batch_export->size_limit, slot->request.plain_length,
                              slot->most != SIZE_MAX, batch_export->max_request_bytes);
    if (outcome->rejected != 0) {
        const size_t rejected = outcome->rejected < spans ? (size_t)outcome->rejected : spans;
        otel_export_reject(call, rejected);
        OTELI_LOG_LOST(OTEL_LOG_ERROR, rejected, "%s rejected %zu of %zu span%s: %s",
                       batch_export->receiver->name, rejected, spans, oteli_plural(spans),
                       outcome->message);
    } else if (outcome->message[0] != '\0') {
        OTELI_LOG(OTEL_LOG_WARN, "%s accepted all spans and warns: %s",
                  batch_export->receiver->name, outcome->message);
    }
}

/* Put the request to disk, if that is possible. */
static bool keep(struct oteli_batch_export *batch_export, otel_export *call,
                 const struct oteli_request_slot *slot)
{
    if (batch_export->spool_sender == NULL ||
        !oteli_spool_sender_keep(batch_export->spool_sender, &slot->request))
        return false;
    otel_export_spool(call, slot->request.spans);
    return true;
}

/* A request is not sent again: `lost` spans, of which those of the request come first. */
static void lose(const struct oteli_batch_export *batch_export, otel_export *call,
                 const struct oteli_request_slot *slot, otel_drop_reason reason, size_t lost)
{
    const struct oteli_request_call *request_call = &slot->request_call;
    const bool may_be_there = request_call->may_have_arrived;
    const size_t unconfirmed = may_be_there ? slot->request.spans : 0;
    otel_export_drop(call, OTEL_DROP_UNCONFIRMED, unconfirmed);
    otel_export_drop(call, reason, lost - unconfirmed);
    OTELI_LOG_LOST(OTEL_LOG_ERROR, lost,
                   "OTLP export to %s failed after %u attempt%s: %s; %zu span%s lost%s",
                   batch_export->receiver->name, request_call->attempts,
                   oteli_plural(request_call->attempts), request_call->outcome.problem, lost,
                   oteli_is_or_are(lost), may_be_there ? ", or arrived unconfirmed" : "");
}

/* true: the slot goes on with smaller requests. */
static bool halve(struct oteli_batch_export *batch_export, struct oteli_request_slot *slot)
{
    const struct oteli_request *request = &slot->request;
    if (request->spans < 2)
        return false;
    oteli_size_limit_too_large(&batch_export->size_limit, request->spans, request->plain_length);
    slot->most = (request->spans + 1) / 2;
    OTELI_LOG(OTEL_LOG_DEBUG, "OTLP export to %s: %s; again with %zu of %zu spans",
              batch_export->receiver->name, slot->request_call.outcome.problem, slot->most,
              request->spans);
    return true;
}

/* true: the slot goes on with halves, to find the span for which the request was refused. */
static bool look_for_culprit(struct oteli_batch_export *batch_export,
                             struct oteli_request_slot *slot)
{
    const struct oteli_request *request = &slot->request;
    slot->suspect_end = 0;
    if (!slot->request_call.outcome.is_about_content || slot->request_call.may_have_arrived ||
        !oteli_culprit_halve(&batch_export->culprit, request->spans, oteli_monotonic_ns()))
        return false;
    slot->suspect_end = slot->first + request->spans;
    OTELI_LOG(OTEL_LOG_DEBUG, "OTLP export to %s: %s; again with half of %zu spans",
              batch_export->receiver->name, slot->request_call.outcome.problem, request->spans);
    return true;
}

/* Tell the spool, if there is one, what an attempt has shown. */
static void note(struct oteli_batch_export *batch_export,
                 const struct oteli_request_call *request_call, bool was_answered)
{
    if (batch_export->spool_sender == NULL || request_call->attempts == 0)
        return;
    oteli_spool_sender_note(batch_export->spool_sender,
                            was_answered ? NULL : request_call->outcome.problem);
    if (!was_answered && request_call->outcome.is_throttled)
        oteli_spool_sender_hold_off(batch_export->spool_sender, request_call->outcome.asked_ms);
}

/* Spans wait because of an attempt that failed. Their loss, if it comes to that, would be said
 * after the time of the whole export only. */
static void say_away(struct oteli_batch_export *batch_export, const struct oteli_request_slot *slot)
{
    const size_t spans = slot->request.spans;
    if (!batch_export->is_away)
        OTELI_LOG(OTEL_LOG_WARN, "OTLP export to %s: %s; %zu span%s for the next attempt",
                  batch_export->receiver->name, slot->request_call.outcome.problem, spans,
                  spans == 1 ? " waits" : "s wait");
    batch_export->is_away = true;
}

/* Account for the request that has come to its end. */
static void account_for(struct oteli_batch_export *batch_export, otel_export *call,
                        struct oteli_request_slot *slot)
{
    const enum oteli_request_call_end end = slot->request_call.end;
    note(batch_export, &slot->request_call, oteli_request_call_ended_by_receiver(end));
    batch_export->is_away = batch_export->is_away && !oteli_request_call_ended_by_receiver(end);
    switch (end) {
    case OTELI_CALL_DELIVERED:
        accept(batch_export, call, slot);
        break;
    case OTELI_CALL_REFUSED:
        if (look_for_culprit(batch_export, slot))
            return;
        lose(batch_export, call, slot, OTEL_DROP_PERMANENT_ERROR, slot->request.spans);
        break;
    case OTELI_CALL_TOO_LARGE:
        if (halve(batch_export, slot))
            return;
        lose(batch_export, call, slot, OTEL_DROP_TOO_LARGE, slot->request.spans);
        break;
    case OTELI_CALL_HOPELESS:
        if (!keep(batch_export, call, slot))
            lose(batch_export, call, slot, OTEL_DROP_PERMANENT_ERROR, slot->request.spans);
        break;
    case OTELI_CALL_EXHAUSTED:
    case OTELI_CALL_UNCONFIRMED:
        if (keep(batch_export, call, slot))
            break;
        /* Requests behind this one would meet the same receiver: all are given up now. */
        lose(batch_export, call, slot, OTEL_DROP_RETRY_EXHAUSTED,
             leave_rest(batch_export, call, slot));
        return;
    }
    slot->first += slot->request.spans;
}

/* --- The slots --- */

/* Give the slot something to do, if there is anything. */
static void start(struct oteli_batch_export *batch_export, otel_export *call,
                  struct oteli_request_slot *slot)
{
    slot->is_busy = false;
    while (!slot->is_busy && make_next(batch_export, call, slot)) {
        struct oteli_request_call *request_call = &slot->request_call;
        if (batch_export->spool_sender != NULL &&
            oteli_spool_sender_is_away(batch_export->spool_sender) &&
            keep(batch_export, call, slot)) {
            slot->first += slot->request.spans;
            continue;
        }
        request_call->hurries = call->is_stopping;
        slot->started_ns = oteli_monotonic_ns();
        oteli_request_call_begin(request_call, slot->request.bytes, slot->request.length,
                                 deadline_of(batch_export, call));
        slot->kept_after = 0;
        slot->is_busy = oteli_request_call_is_pending(request_call);
        if (!slot->is_busy)
            account_for(batch_export, call, slot);
    }
}

/* The receiver is away or busy, and the spool has more time than this export. Asked once after
 * each attempt. true: the request is on disk, and not waited for any more. */
static bool keep_instead(struct oteli_batch_export *batch_export, otel_export *call,
                         struct oteli_request_slot *slot)
{
    struct oteli_request_call *request_call = &slot->request_call;
    if (batch_export->spool_sender == NULL || slot->kept_after == request_call->attempts)
        return false;
    slot->kept_after = request_call->attempts;
    note(batch_export, request_call, false);
    if (!keep(batch_export, call, slot))
        return false;
    (void)oteli_request_call_go_on(request_call, 0, 0); /* with no time left: ends it */
    return true;
}

static void go_on(struct oteli_batch_export *batch_export, otel_export *call,
                  struct oteli_request_slot *slot)
{
    struct oteli_request_call *request_call = &slot->request_call;
    request_call->hurries = call->is_stopping;
    if (oteli_request_call_go_on(request_call, 0, deadline_of(batch_export, call))) {
        account_for(batch_export, call, slot);
    } else if (request_call->state != OTELI_CALL_WAITING) {
        return;
    } else if (keep_instead(batch_export, call, slot)) {
        slot->first += slot->request.spans;
    } else {
        say_away(batch_export, slot);
        return;
    }
    start(batch_export, call, slot);
}

static void shorten(int *timeout_ms, int other_ms)
{
    if (other_ms >= 0 && (*timeout_ms < 0 || other_ms < *timeout_ms))
        *timeout_ms = other_ms;
}

/* Done, if no request is on its way. */
static otel_export_result result_of(struct oteli_batch_export *batch_export)
{
    for (size_t i = 0; i < batch_export->slot_count; i++) {
        if (batch_export->slots[i].is_busy)
            return OTEL_EXPORT_PENDING;
    }
    const bool rests = batch_export->is_watched || batch_export->slot_count > 1;
    for (size_t i = 0; rests && i < batch_export->slot_count; i++)
        oteli_transport_rest(batch_export->slots[i].request_call.transport);
    batch_export->call = NULL;
    return OTEL_EXPORT_DONE;
}

otel_export_result oteli_batch_export_begin(struct oteli_batch_export *batch_export,
                                            otel_export *call)
{
    const uint64_t now_ns = oteli_monotonic_ns();
    batch_export->call = call;
    batch_export->deadline_ns = batch_export->timeout_ns > UINT64_MAX - now_ns
                                    ? UINT64_MAX
                                    : now_ns + batch_export->timeout_ns;
    batch_export->next = 0;
    for (size_t i = 0; i < batch_export->slot_count; i++) {
        struct oteli_request_slot *slot = &batch_export->slots[i];
        slot->first = 0;
        slot->end = 0;
        start(batch_export, call, slot);
    }
    return result_of(batch_export);
}

/* When a slot can go on in any case; -1: never. The first one's descriptor stands for all. */
static int latest_ms(struct oteli_batch_export *batch_export)
{
    const uint64_t deadline_ns = deadline_of(batch_export, batch_export->call);
    struct oteli_transport *first = batch_export->slots[0].request_call.transport;
    int timeout_ms = -1;
    for (size_t i = 0; i < batch_export->slot_count; i++) {
        struct oteli_request_call *request_call = &batch_export->slots[i].request_call;
        if (!batch_export->slots[i].is_busy)
            continue;
        shorten(&timeout_ms, oteli_request_call_timeout_ms(request_call, deadline_ns));
        if (i != 0 && !oteli_transport_include(first, request_call->transport))
            shorten(&timeout_ms, BLIND_MS);
    }
    return timeout_ms;
}

int oteli_batch_export_descriptor(struct oteli_batch_export *batch_export, int *timeout_ms)
{
    *timeout_ms = latest_ms(batch_export);
    batch_export->is_watched = true;
    for (size_t i = 0; i < batch_export->slot_count; i++) {
        const struct oteli_request_slot *slot = &batch_export->slots[i];
        if (slot->is_busy && oteli_transport_is_lost(slot->request_call.transport))
            *timeout_ms = 0;
    }
    return oteli_transport_descriptor(batch_export->slots[0].request_call.transport);
}

otel_export_result oteli_batch_export_go_on(struct oteli_batch_export *batch_export,
                                            otel_export *call, int timeout_ms, bool abandon)
{
    struct oteli_request_slot *first = &batch_export->slots[0];
    if (abandon) {
        /* With the deadline in the past every way leads to the end at once. */
        batch_export->deadline_ns = 0;
    } else if (timeout_ms != 0 && batch_export->call != NULL) {
        shorten(&timeout_ms, latest_ms(batch_export));
        oteli_transport_wait(first->request_call.transport, timeout_ms);
    }
    if (!first->is_busy) /* a wake that its descriptor has shown is taken back */
        oteli_transport_sleep(first->request_call.transport, 0);
    for (size_t i = 0; i < batch_export->slot_count; i++) {
        if (batch_export->slots[i].is_busy)
            go_on(batch_export, call, &batch_export->slots[i]);
    }
    return result_of(batch_export);
}

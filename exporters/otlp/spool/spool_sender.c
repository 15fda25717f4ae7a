/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/spool_sender.c - see spool_sender.h.
 *
 * What an attempt shows, of a file or of a batch, is all that is known of the receiver. So that an
 * exporter notices when the receiver is back, it tries to send the oldest file every few seconds.
 * Where another process sends the files, it tries a batch instead, and where nothing could be put
 * to disk, every batch. */
#include "exporters/otlp/spool/spool_sender.h"
#include "common/base/random.h"
#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "common/log.h"
#include "common/text/text.h"
#include "exporters/otlp/call/retry.h"
#include "exporters/otlp/spool/disk_spool.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    ASKED_MS_MAX = 5 * 60 * 1000, /* the longest that a receiver can send us away for */
    TAKEN_MS = 1000,              /* between looks whether another process still is the sender */
    BLIND_MS = 5,                 /* between looks at a request that has no descriptor */
    UNREADABLE_MS = 5000          /* between looks at a directory that cannot be read */
};

struct oteli_spool_sender {
    struct oteli_spool_sender_options
        options; /* constant, for forked children; its texts are owned */

    const struct oteli_receiver *receiver;
    struct oteli_spool *spool;
    struct oteli_request_call request_call;
    struct oteli_request request; /* made of the file that is being sent */

    bool is_away;
    unsigned failures;    /* since it was last there */
    uint64_t next_try_ns; /* when to look for it again */
    bool is_sending;      /* a file */
    unsigned attempts;    /* with it, that are known to have failed */
    uint64_t deadline_ns;
};

/* ---- making ---------------------------------------------------------------------------- */

void oteli_spool_sender_free(struct oteli_spool_sender *spool_sender)
{
    if (spool_sender == NULL)
        return;
    oteli_request_call_fini(&spool_sender->request_call);
    oteli_spool_close(spool_sender->spool);
    oteli_request_fini(&spool_sender->request);
    free((char *)(uintptr_t)spool_sender->options.directory);
    free((char *)(uintptr_t)spool_sender->options.endpoint);
    free(spool_sender);
}

static otel_otlp_protocol format_of(const struct oteli_receiver *receiver)
{
    return receiver->protocol == OTEL_OTLP_HTTP_JSON ? OTEL_OTLP_HTTP_JSON
                                                     : OTEL_OTLP_HTTP_PROTOBUF;
}

struct oteli_spool_sender *oteli_spool_sender_new(const struct oteli_spool_sender_options *options,
                                                  const struct oteli_receiver *receiver,
                                                  struct oteli_transport *transport)
{
    struct oteli_spool_sender *made = calloc(1, sizeof *made);
    if (made == NULL) {
        oteli_transport_free(transport);
        return NULL;
    }
    const bool has_transport = oteli_request_call_init(&made->request_call, receiver, transport);
    made->options = *options;
    made->options.directory = strdup(options->directory);
    made->options.endpoint = strdup(options->endpoint);
    made->receiver = receiver;
    if (made->options.directory != NULL && made->options.endpoint != NULL)
        made->spool = oteli_spool_open(options->directory, options->endpoint, format_of(receiver),
                                       options->max_bytes, options->max_age_ms);
    if (has_transport && made->spool != NULL &&
        oteli_request_init(&made->request, receiver->protocol, options->compression,
                           options->max_request_bytes)) {
        oteli_spool_warn(made->spool);
        return made;
    }
    oteli_spool_sender_free(made);
    return NULL;
}

struct oteli_spool_sender *oteli_spool_sender_renew(const struct oteli_spool_sender *parents,
                                                    const struct oteli_receiver *receiver)
{
    oteli_spool_close_copies(parents->spool);
    return oteli_spool_sender_new(&parents->options, receiver,
                                  oteli_transport_renew(parents->request_call.transport));
}

/* ---- is it there? ---------------------------------------------------------------------- */

static uint64_t in_ms(uint64_t ms)
{
    return oteli_monotonic_ns() + ms * OTELI_NS_PER_MS;
}

/* It is away, and has asked for so much time. */
static void set_next_try(struct oteli_spool_sender *spool_sender, uint64_t asked_ms)
{
    spool_sender->next_try_ns =
        in_ms(oteli_retry_wait_ms(spool_sender->failures - 1, asked_ms, oteli_random_once()));
}

static void mark_reachable(struct oteli_spool_sender *spool_sender)
{
    if (spool_sender->is_away)
        OTELI_LOG(OTEL_LOG_WARN, "%s is back; sending what is in %s", spool_sender->receiver->name,
                  spool_sender->options.directory);
    spool_sender->is_away = false;
    spool_sender->failures = 0;
    spool_sender->next_try_ns = 0;
}

static void mark_unreachable(struct oteli_spool_sender *spool_sender, const char *problem)
{
    if (!spool_sender->is_away)
        OTELI_LOG(OTEL_LOG_WARN, "%s is away: %s; spans are put to disk in %s",
                  spool_sender->receiver->name, problem, spool_sender->options.directory);
    spool_sender->is_away = true;
    spool_sender->failures++;
    set_next_try(spool_sender, 0);
}

bool oteli_spool_sender_is_away(const struct oteli_spool_sender *spool_sender)
{
    if (!spool_sender->is_away || oteli_spool_is_empty(spool_sender->spool))
        return false;
    const bool can_try_files =
        spool_sender->is_sending || !oteli_spool_is_taken(spool_sender->spool);
    return can_try_files || oteli_monotonic_ns() < spool_sender->next_try_ns;
}

void oteli_spool_sender_note(struct oteli_spool_sender *spool_sender, const char *problem)
{
    if (problem == NULL)
        mark_reachable(spool_sender);
    else
        mark_unreachable(spool_sender, problem);
}

void oteli_spool_sender_hold_off(struct oteli_spool_sender *spool_sender, uint64_t asked_ms)
{
    set_next_try(spool_sender, asked_ms < ASKED_MS_MAX ? asked_ms : ASKED_MS_MAX);
}

bool oteli_spool_sender_keep(struct oteli_spool_sender *spool_sender,
                             const struct oteli_request *request)
{
    return oteli_spool_put(spool_sender->spool, request->plain, request->plain_length,
                           (uint32_t)request->spans);
}

/* ---- sending --------------------------------------------------------------------------- */

static void tell_delivered(const struct oteli_spool_sender *spool_sender)
{
    const struct oteli_outcome *outcome = &spool_sender->request_call.outcome;
    if (outcome->rejected != 0)
        OTELI_LOG_LOST(OTEL_LOG_ERROR, outcome->rejected,
                       "%s rejected %" PRIu64 " of %zu span%s from disk: %s",
                       spool_sender->receiver->name, outcome->rejected, spool_sender->request.spans,
                       oteli_plural(spool_sender->request.spans), outcome->message);
    else if (outcome->message[0] != '\0')
        OTELI_LOG(OTEL_LOG_WARN, "%s accepted all spans from disk and warns: %s",
                  spool_sender->receiver->name, outcome->message);
}

/* What became of the file. */
static void end_request(struct oteli_spool_sender *spool_sender)
{
    const struct oteli_request_call *request_call = &spool_sender->request_call;
    const struct oteli_outcome *outcome = &request_call->outcome;
    const enum oteli_request_call_end end = request_call->end;
    spool_sender->is_sending = false;
    if (end == OTELI_CALL_DELIVERED)
        tell_delivered(spool_sender);
    else if (oteli_request_call_ended_by_receiver(end))
        OTELI_LOG_LOST(OTEL_LOG_ERROR, spool_sender->request.spans,
                       "%s refused a request from disk, whose %zu span%s lost: %s",
                       spool_sender->receiver->name, spool_sender->request.spans,
                       oteli_is_or_are(spool_sender->request.spans), outcome->problem);
    oteli_spool_settle(spool_sender->spool, end, outcome->rejected);
    if (oteli_request_call_ended_by_receiver(end)) {
        mark_reachable(spool_sender);
    } else {
        mark_unreachable(spool_sender, outcome->problem);
        if (outcome->is_throttled)
            oteli_spool_sender_hold_off(spool_sender, outcome->asked_ms);
    }
}

/* An attempt has failed, and there will be another one. */
static void note_failure(struct oteli_spool_sender *spool_sender)
{
    const struct oteli_request_call *request_call = &spool_sender->request_call;
    if (request_call->state != OTELI_CALL_WAITING ||
        request_call->attempts == spool_sender->attempts)
        return;
    spool_sender->attempts = request_call->attempts;
    mark_unreachable(spool_sender, request_call->outcome.problem);
}

/* Go on with the file that is being sent; true: that is over. */
static bool go_on(struct oteli_spool_sender *spool_sender)
{
    if (oteli_request_call_go_on(&spool_sender->request_call, 0, spool_sender->deadline_ns)) {
        end_request(spool_sender);
        return true;
    }
    note_failure(spool_sender);
    return false;
}

static bool begin_request(struct oteli_spool_sender *spool_sender,
                          const struct oteli_spool_item *item)
{
    if (!oteli_request_wrap(&spool_sender->request, item->bytes, item->length, item->spans)) {
        oteli_spool_settle(spool_sender->spool, OTELI_CALL_EXHAUSTED, 0);
        return false;
    }
    const uint64_t now_ns = oteli_monotonic_ns();
    spool_sender->deadline_ns = spool_sender->options.timeout_ns < UINT64_MAX - now_ns
                                    ? now_ns + spool_sender->options.timeout_ns
                                    : UINT64_MAX;
    spool_sender->attempts = 0;
    spool_sender->is_sending = true;
    oteli_request_call_begin(&spool_sender->request_call, spool_sender->request.bytes,
                             spool_sender->request.length, spool_sender->deadline_ns);
    return true;
}

/* Begin with the oldest file. Otherwise, after how many milliseconds to look again. */
static bool begin(struct oteli_spool_sender *spool_sender, int *again_ms)
{
    struct oteli_spool_item item;
    if (oteli_spool_first(spool_sender->spool, &item)) {
        *again_ms = UNREADABLE_MS; /* without memory to send it */
        return begin_request(spool_sender, &item);
    }
    if (oteli_spool_is_taken(spool_sender->spool))
        *again_ms = TAKEN_MS;
    else
        *again_ms = oteli_spool_is_empty(spool_sender->spool) ? -1 : UNREADABLE_MS;
    return false;
}

int oteli_spool_sender_attend(struct oteli_spool_sender *spool_sender)
{
    int again_ms;
    if (spool_sender->is_sending && go_on(spool_sender))
        return oteli_ms_until(spool_sender->next_try_ns); /* that can wait for a batch */
    if (!spool_sender->is_sending) {
        again_ms = oteli_ms_until(spool_sender->next_try_ns);
        if (again_ms != 0)
            return again_ms;
        if (!begin(spool_sender, &again_ms))
            return again_ms;
        if (go_on(spool_sender))
            return oteli_ms_until(spool_sender->next_try_ns);
    }
    again_ms =
        oteli_request_call_timeout_ms(&spool_sender->request_call, spool_sender->deadline_ns);
    return again_ms >= 0 ? again_ms : INT_MAX;
}

int oteli_spool_sender_finish(struct oteli_spool_sender *spool_sender)
{
    const int again_ms = oteli_spool_sender_attend(spool_sender);
    const bool is_sending =
        spool_sender->is_sending && spool_sender->request_call.state == OTELI_CALL_SENDING;
    if (!is_sending)
        return again_ms == 0 ? 0 : -1;
    const bool is_blind = oteli_spool_sender_descriptor(spool_sender) < 0;
    return is_blind && again_ms > BLIND_MS ? BLIND_MS : again_ms;
}

int oteli_spool_sender_descriptor(struct oteli_spool_sender *spool_sender)
{
    return spool_sender->is_sending && spool_sender->request_call.state == OTELI_CALL_SENDING
               ? oteli_transport_descriptor(spool_sender->request_call.transport)
               : -1;
}

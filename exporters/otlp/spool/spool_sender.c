/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/spool_sender.c - see spool_sender.h.
 *
 * What an attempt shows, of a file or of a batch, is all that is known of the receiver. So that it
 * is found when it is back, somebody has to try: the oldest file is, every few seconds. Where
 * another process is at the files, a batch is. And where nothing could be put to disk, every
 * batch. */
#include "exporters/otlp/spool/spool_sender.h"
#include "common/clock/clock.h"
#include "common/log.h"
#include "common/text/text.h"
#include "common/base/random.h"
#include "common/clock/time_units.h"
#include "exporters/otlp/call/culprit.h"
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
    struct oteli_request_call delivery;
    struct oteli_request request; /* made of the file that is being sent */
    struct oteli_culprit culprit;

    bool is_away;
    unsigned failures;    /* since it was last there */
    uint64_t asked_ms;    /* by the receiver, with the last of them */
    uint64_t next_try_ns; /* when to look for it again */
    bool is_sending;      /* a file */
    unsigned attempts;    /* with it, that are known to have failed */
    uint64_t deadline_ns;
};

/* ---- making ---------------------------------------------------------------------------- */

void oteli_spool_sender_free(struct oteli_spool_sender *spooling)
{
    if (spooling == NULL)
        return;
    oteli_request_call_fini(&spooling->delivery);
    oteli_spool_close(spooling->spool);
    oteli_request_fini(&spooling->request);
    free((char *)(uintptr_t)spooling->options.directory);
    free((char *)(uintptr_t)spooling->options.endpoint);
    free(spooling);
}

static otel_otlp_protocol format_of(const struct oteli_receiver *receiver)
{
    return receiver->protocol == OTEL_OTLP_HTTP_JSON ? OTEL_OTLP_HTTP_JSON
                                                     : OTEL_OTLP_HTTP_PROTOBUF;
}

/* All but the delivery. NULL: no memory. */
static struct oteli_spool_sender *new_with(const struct oteli_spool_sender_options *options,
                                           const struct oteli_receiver *receiver)
{
    struct oteli_spool_sender *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->options = *options;
    made->options.directory = strdup(options->directory);
    made->options.endpoint = strdup(options->endpoint);
    made->receiver = receiver;
    if (made->options.directory != NULL && made->options.endpoint != NULL)
        made->spool = oteli_spool_open(options->directory, options->endpoint, format_of(receiver),
                                       options->max_bytes, options->max_age_ms);
    if (made->spool != NULL && oteli_request_init(&made->request, receiver->protocol,
                                                  options->compression, options->max_request_bytes))
        return made;
    oteli_spool_sender_free(made);
    return NULL;
}

struct oteli_spool_sender *oteli_spool_sender_new(const struct oteli_spool_sender_options *options,
                                                  const struct oteli_receiver *receiver,
                                                  struct oteli_transport *transport)
{
    struct oteli_spool_sender *made = new_with(options, receiver);
    if (made == NULL) {
        oteli_transport_free(transport);
        return NULL;
    }
    if (oteli_request_call_init(&made->delivery, receiver, transport)) {
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
    struct oteli_spool_sender *made = new_with(&parents->options, receiver);
    if (made == NULL || oteli_request_call_renew(&made->delivery, receiver, &parents->delivery))
        return made;
    oteli_spool_sender_free(made);
    return NULL;
}

/* ---- is it there? ---------------------------------------------------------------------- */

static uint64_t in_ms(uint64_t ms)
{
    return oteli_monotonic_ns() + ms * OTELI_NS_PER_MS;
}

/* It is away. */
static void set_next_try(struct oteli_spool_sender *spooling)
{
    spooling->next_try_ns =
        in_ms(oteli_retry_wait_ms(spooling->failures - 1, spooling->asked_ms, oteli_random_once()));
}

static void find_there(struct oteli_spool_sender *spooling)
{
    if (spooling->is_away)
        OTELI_LOG(OTEL_LOG_WARN, "%s is back; sending what is in %s", spooling->receiver->name,
                  spooling->options.directory);
    spooling->is_away = false;
    spooling->failures = 0;
    spooling->asked_ms = 0;
    spooling->next_try_ns = 0;
}

static void find_away(struct oteli_spool_sender *spooling, const char *problem)
{
    if (!spooling->is_away)
        OTELI_LOG(OTEL_LOG_WARN, "%s is away%s%s; spans are put to disk in %s",
                  spooling->receiver->name, problem[0] != '\0' ? ": " : "", problem,
                  spooling->options.directory);
    spooling->is_away = true;
    spooling->failures++;
    spooling->asked_ms = 0;
    set_next_try(spooling);
}

bool oteli_spool_sender_is_away(const struct oteli_spool_sender *spooling)
{
    if (!spooling->is_away || oteli_spool_is_empty(spooling->spool))
        return false;
    const bool can_try_files = spooling->is_sending || !oteli_spool_is_taken(spooling->spool);
    return can_try_files || oteli_monotonic_ns() < spooling->next_try_ns;
}

void oteli_spool_sender_note(struct oteli_spool_sender *spooling, bool has_answered)
{
    if (has_answered)
        find_there(spooling);
    else
        find_away(spooling, "");
}

void oteli_spool_sender_hold_off(struct oteli_spool_sender *spooling, uint64_t asked_ms)
{
    spooling->asked_ms = asked_ms < ASKED_MS_MAX ? asked_ms : ASKED_MS_MAX;
    set_next_try(spooling);
}

bool oteli_spool_sender_keep(struct oteli_spool_sender *spooling,
                             const struct oteli_request *request)
{
    return oteli_spool_put(spooling->spool, request->plain, request->plain_length,
                           (uint32_t)request->spans);
}

/* ---- sending --------------------------------------------------------------------------- */

static void tell_delivered(const struct oteli_spool_sender *spooling)
{
    const struct oteli_outcome *outcome = &spooling->delivery.outcome;
    if (outcome->rejected != 0)
        OTELI_LOG_LOST(OTEL_LOG_ERROR, outcome->rejected,
                       "%s rejected %" PRIu64 " of %zu span%s from disk: %s",
                       spooling->receiver->name, outcome->rejected, spooling->request.spans,
                       oteli_plural(spooling->request.spans), outcome->message);
    else if (outcome->message[0] != '\0')
        OTELI_LOG(OTEL_LOG_WARN, "%s accepted all spans from disk and warns: %s",
                  spooling->receiver->name, outcome->message);
}

/* Go on with the halves of a file, one of which has the span for which it was refused. */
static bool look_for_culprit(struct oteli_spool_sender *spooling)
{
    return spooling->delivery.outcome.is_about_content &&
           oteli_culprit_halve(&spooling->culprit, spooling->request.spans, oteli_monotonic_ns()) &&
           oteli_spool_halve(spooling->spool);
}

/* What became of the file. */
static void end_request(struct oteli_spool_sender *spooling)
{
    const struct oteli_request_call *delivery = &spooling->delivery;
    const struct oteli_outcome *outcome = &delivery->outcome;
    const enum oteli_request_call_end end = delivery->end;
    spooling->is_sending = false;
    if (end == OTELI_CALL_DELIVERED)
        oteli_culprit_accepted(&spooling->culprit);
    if ((end == OTELI_CALL_TOO_LARGE && oteli_spool_halve(spooling->spool)) ||
        (end == OTELI_CALL_REFUSED && look_for_culprit(spooling))) {
        find_there(spooling);
        return;
    }
    if (end == OTELI_CALL_DELIVERED)
        tell_delivered(spooling);
    else if (oteli_request_call_was_answered(end))
        OTELI_LOG_LOST(OTEL_LOG_ERROR, spooling->request.spans,
                       "%s refused a request from disk, whose %zu span%s lost: %s",
                       spooling->receiver->name, spooling->request.spans,
                       oteli_is_or_are(spooling->request.spans), outcome->problem);
    oteli_spool_settle(spooling->spool, end, outcome->rejected);
    if (oteli_request_call_was_answered(end)) {
        find_there(spooling);
    } else {
        find_away(spooling, outcome->problem);
        if (outcome->is_throttled)
            oteli_spool_sender_hold_off(spooling, outcome->asked_ms);
    }
}

/* An attempt has failed, and there will be another one. */
static void note_failure(struct oteli_spool_sender *spooling)
{
    const struct oteli_request_call *delivery = &spooling->delivery;
    if (delivery->state != OTELI_CALL_WAITING || delivery->attempts == spooling->attempts)
        return;
    spooling->attempts = delivery->attempts;
    find_away(spooling, delivery->outcome.problem);
}

/* Go on with the file that is being sent; true: that is over. */
static bool go_on(struct oteli_spool_sender *spooling)
{
    if (oteli_request_call_go_on(&spooling->delivery, 0, spooling->deadline_ns)) {
        end_request(spooling);
        return true;
    }
    note_failure(spooling);
    return false;
}

static bool begin_request(struct oteli_spool_sender *spooling, const struct oteli_spool_item *item)
{
    if (!oteli_request_wrap(&spooling->request, item->bytes, item->length, item->spans)) {
        oteli_spool_settle(spooling->spool, OTELI_CALL_EXHAUSTED, 0);
        return false;
    }
    const uint64_t now_ns = oteli_monotonic_ns();
    spooling->deadline_ns = spooling->options.timeout_ns < UINT64_MAX - now_ns
                                ? now_ns + spooling->options.timeout_ns
                                : UINT64_MAX;
    spooling->attempts = 0;
    spooling->is_sending = true;
    oteli_request_call_begin(&spooling->delivery, spooling->request.bytes, spooling->request.length,
                             spooling->deadline_ns);
    return true;
}

/* Begin with the oldest file. Otherwise, after how many milliseconds to look again. */
static bool begin(struct oteli_spool_sender *spooling, int *again_ms)
{
    struct oteli_spool_item item;
    if (oteli_spool_first(spooling->spool, &item)) {
        *again_ms = UNREADABLE_MS; /* without memory to send it */
        return begin_request(spooling, &item);
    }
    if (oteli_spool_is_taken(spooling->spool))
        *again_ms = TAKEN_MS;
    else
        *again_ms = oteli_spool_is_empty(spooling->spool) ? -1 : UNREADABLE_MS;
    return false;
}

/* Until a file may be sent. */
static int wait_ms(const struct oteli_spool_sender *spooling)
{
    return oteli_ms_until(spooling->next_try_ns);
}

int oteli_spool_sender_attend(struct oteli_spool_sender *spooling)
{
    int again_ms;
    if (spooling->is_sending && go_on(spooling))
        return wait_ms(spooling); /* what comes next can wait for a batch */
    if (!spooling->is_sending) {
        again_ms = wait_ms(spooling);
        if (again_ms != 0)
            return again_ms;
        if (!begin(spooling, &again_ms))
            return again_ms;
        if (go_on(spooling))
            return wait_ms(spooling);
    }
    again_ms = oteli_request_call_timeout_ms(&spooling->delivery, spooling->deadline_ns);
    return again_ms >= 0 ? again_ms : INT_MAX;
}

int oteli_spool_sender_finish(struct oteli_spool_sender *spooling)
{
    const int again_ms = oteli_spool_sender_attend(spooling);
    const bool is_sending = spooling->is_sending && spooling->delivery.state == OTELI_CALL_SENDING;
    if (!is_sending)
        return again_ms == 0 ? 0 : -1;
    const bool is_blind = oteli_spool_sender_descriptor(spooling) < 0;
    return is_blind && again_ms > BLIND_MS ? BLIND_MS : again_ms;
}

void oteli_spool_sender_disconnect(struct oteli_spool_sender *spooling)
{
    oteli_transport_disconnect(spooling->delivery.transport);
}

int oteli_spool_sender_descriptor(struct oteli_spool_sender *spooling)
{
    return spooling->is_sending && spooling->delivery.state == OTELI_CALL_SENDING
               ? oteli_transport_descriptor(spooling->delivery.transport, false)
               : -1;
}

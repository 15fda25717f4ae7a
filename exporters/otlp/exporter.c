/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/exporter.c - the OTLP exporter: what happens to a batch until every span
 * of it is accounted for. Exporter thread; owns the encoders and the transport.
 *
 *                 ┌──────────── next part of a batch too large for one request ─────┐
 *     export_batch ─▶ encode ─▶ SENDING ── answer ─▶ delivered, rejected or refused ─┴▶ IDLE
 *                                 ▲  └ busy or no answer ─▶ WAITING ── no time left ──▶ IDLE
 *                                 └───────── time ────────────┘
 *
 * Whatever happens, the rest of the batch is given up when the deadline comes.
 *
 * There are two encoders: while one holds the request on its way, which may have to be sent
 * again, the other can encode the batch that comes next. */
#include "common/clock.h"
#include "common/log.h"
#include "common/random.h"
#include "exporters/otlp/encode.h"
#include "exporters/otlp/endpoint.h"
#include "exporters/otlp/retry.h"
#include "exporters/otlp/transport.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define NS_PER_MS UINT64_C(1000000)
#define FOREVER UINT64_MAX

enum {
    DEFAULT_TIMEOUT_MS = 10000,
    DEFAULT_MAX_REQUEST_BYTES = 64 * 1024 * 1024,
    PREPARED_BYTES_MAX = 512 * 1024,
    MESSAGE_SHOWN = 256 /* of what a receiver says, in a log line */
};

enum state { STATE_IDLE, STATE_SENDING, STATE_WAITING };

struct otlp_exporter {
    struct oteli_encoder encoders[2];
    struct oteli_encoder *encoder; /* of the request on its way */
    struct oteli_encoder *spare;
    struct oteli_transport *transport;
    char *endpoint; /* as it is shown in log lines */
    uint64_t timeout_ns;
    size_t max_request_bytes;

    /* Of the batch that comes next. */
    const otel_batch *prepared; /* its first request is in the spare encoder; NULL: none */
    size_t prepared_count;      /* spans in it */

    /* Of the batch that is being exported. */
    enum state state;
    const otel_export *call;
    bool wants_fresh;      /* connection: the one before led to a busy receiver, or to nobody */
    uint64_t deadline_ns;  /* our own; that of the call may be earlier */
    size_t first;          /* span of the request on its way */
    size_t count;          /* spans in it */
    unsigned attempts;     /* that were made with it */
    bool may_have_arrived; /* some attempt was sent and got no answer */
    uint64_t retry_at_ns;
    char problem[MESSAGE_SHOWN + 64]; /* of the last attempt */
};

static uint64_t after(uint64_t start_ns, uint64_t wait_ns)
{
    return wait_ns > FOREVER - start_ns ? FOREVER : start_ns + wait_ns;
}

static uint64_t deadline_of(const struct otlp_exporter *exporter, const otel_export *call)
{
    return call->deadline_ns < exporter->deadline_ns ? call->deadline_ns : exporter->deadline_ns;
}

/* Milliseconds from now to then, rounded up so that a wait ends behind it. */
static uint64_t ms_until(uint64_t then_ns, uint64_t now_ns)
{
    return then_ns > now_ns ? (then_ns - now_ns - 1) / NS_PER_MS + 1 : 0;
}

static int shorter_ms(int timeout_ms, uint64_t other_ms)
{
    return timeout_ms < 0 || other_ms < (uint64_t)timeout_ms
               ? (int)(other_ms < INT32_MAX ? other_ms : INT32_MAX)
               : timeout_ms;
}

static otel_export_result finish(struct otlp_exporter *exporter)
{
    exporter->state = STATE_IDLE;
    exporter->call = NULL;
    oteli_transport_rest(exporter->transport);
    return OTEL_EXPORT_DONE;
}

/* No time is left: account for the request on its way and for the rest of the batch. */
static otel_export_result give_up(struct otlp_exporter *exporter, otel_export *call)
{
    const size_t left = otel_batch_size(call->batch) - exporter->first;
    const size_t unsent = exporter->may_have_arrived ? left - exporter->count : left;
    if (exporter->may_have_arrived)
        otel_export_drop(call, OTEL_DROP_UNCONFIRMED, exporter->count);
    if (unsent != 0)
        otel_export_drop(call, OTEL_DROP_RETRY_EXHAUSTED, unsent);
    OTELI_LOG(OTEL_LOG_ERROR,
              "OTLP export to %s gave up after %u attempts: %s; %zu spans are lost%s",
              exporter->endpoint, exporter->attempts, exporter->problem, left,
              exporter->may_have_arrived ? ", or arrived unconfirmed" : "");
    return finish(exporter);
}

/* A request that was never sent. */
static void begin_request(struct otlp_exporter *exporter)
{
    exporter->attempts = 0;
    exporter->may_have_arrived = false;
    snprintf(exporter->problem, sizeof exporter->problem, "no time was left");
}

static otel_export_result attempt(struct otlp_exporter *exporter, otel_export *call)
{
    const uint64_t now = oteli_monotonic_ns();
    const uint64_t left_ms = ms_until(deadline_of(exporter, call), now);
    if (left_ms == 0)
        return give_up(exporter, call);
    oteli_transport_start(exporter->transport, &(const struct oteli_transport_request){
                                                   .body = exporter->encoder->request,
                                                   .length = exporter->encoder->request_bytes,
                                                   .connect_ms = oteli_retry_connect_ms(left_ms),
                                                   .fresh = exporter->wants_fresh,
                                               });
    exporter->attempts++;
    exporter->state = STATE_SENDING;
    return OTEL_EXPORT_PENDING;
}

/* Encode and send what begins at `first`; spans that fit into no request are left behind. */
static otel_export_result send_next(struct otlp_exporter *exporter, otel_export *call)
{
    const size_t size = otel_batch_size(call->batch);
    begin_request(exporter);
    while (exporter->first < size) {
        switch (oteli_encode(exporter->encoder, call->batch, exporter->first, &exporter->count)) {
        case OTELI_ENCODE_OK:
            return attempt(exporter, call);
        case OTELI_ENCODE_TOO_LARGE:
            otel_export_drop(call, OTEL_DROP_TOO_LARGE, 1);
            OTELI_LOG(OTEL_LOG_ERROR,
                      "a span is larger than an OTLP request may be (%zu bytes); "
                      "it is lost",
                      exporter->max_request_bytes);
            exporter->first++;
            break;
        case OTELI_ENCODE_NO_MEMORY:
            otel_export_drop(call, OTEL_DROP_NO_MEMORY, size - exporter->first);
            OTELI_LOG(OTEL_LOG_ERROR, "no memory for an OTLP request; %zu spans are lost",
                      size - exporter->first);
            exporter->first = size;
            break;
        }
    }
    return finish(exporter);
}

static otel_export_result go_on(struct otlp_exporter *exporter, otel_export *call)
{
    exporter->first += exporter->count;
    return send_next(exporter, call);
}

static void accept(struct otlp_exporter *exporter, otel_export *call,
                   const struct oteli_transport_answer *answer)
{
    const struct oteli_partial_success partial = oteli_answer_partial_success(&answer->body);
    char message[MESSAGE_SHOWN];
    if (partial.rejected_spans != 0) {
        const size_t rejected = partial.rejected_spans < exporter->count
                                    ? (size_t)partial.rejected_spans
                                    : exporter->count;
        otel_export_reject(call, rejected);
        OTELI_LOG(OTEL_LOG_ERROR, "%s rejected %zu of %zu spans: %s", exporter->endpoint, rejected,
                  exporter->count,
                  oteli_answer_printable(partial.message, message, sizeof message));
    } else if (partial.message.length != 0) {
        OTELI_LOG(OTEL_LOG_WARN, "%s accepted all spans and warns: %s", exporter->endpoint,
                  oteli_answer_printable(partial.message, message, sizeof message));
    }
}

/* Put into words why the attempt failed. */
static void describe(struct otlp_exporter *exporter, const struct oteli_transport_answer *answer)
{
    if (answer->status == 0) {
        snprintf(exporter->problem, sizeof exporter->problem, "%s", answer->problem);
        return;
    }
    char message[MESSAGE_SHOWN];
    oteli_answer_printable(oteli_answer_status_message(&answer->body), message, sizeof message);
    snprintf(exporter->problem, sizeof exporter->problem, "HTTP status %d%s%s%s", answer->status,
             answer->is_too_long ? " with an endless answer" : "", message[0] != '\0' ? ": " : "",
             message);
}

/* Retries are rare, so each asks the kernel anew for its share of chance: that keeps
 * forked children, which have the same exporter, from coming back together. */
static uint32_t chance(void)
{
    struct oteli_random random;
    return oteli_random_seed(&random) ? (uint32_t)(oteli_random_next(&random) >> 32) : 0;
}

static uint64_t retry_wait_ms(const struct otlp_exporter *exporter,
                              const struct oteli_transport_answer *answer)
{
    uint64_t asked_ms = 0;
    if (answer->retry_after != NULL && oteli_retry_is_throttled(answer->status)) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (!oteli_retry_after_ms(answer->retry_after, now.tv_sec, &asked_ms))
            asked_ms = 0;
    }
    return oteli_retry_wait_ms(exporter->attempts - 1, asked_ms, chance());
}

static otel_export_result retry(struct otlp_exporter *exporter, otel_export *call,
                                const struct oteli_transport_answer *answer)
{
    const uint64_t now = oteli_monotonic_ns();
    const uint64_t wait_ms = retry_wait_ms(exporter, answer);
    const uint64_t wait_ns = wait_ms < FOREVER / NS_PER_MS ? wait_ms * NS_PER_MS : FOREVER;
    exporter->retry_at_ns = after(now, wait_ns);
    if (exporter->retry_at_ns >= deadline_of(exporter, call))
        return give_up(exporter, call);
    OTELI_LOG(OTEL_LOG_DEBUG, "OTLP export to %s: %s; again in %" PRIu64 " ms", exporter->endpoint,
              exporter->problem, wait_ms);
    exporter->state = STATE_WAITING;
    return OTEL_EXPORT_PENDING;
}

/* Act on what came of an attempt. */
static otel_export_result settle(struct otlp_exporter *exporter, otel_export *call,
                                 const struct oteli_transport_answer *answer)
{
    exporter->may_have_arrived |= answer->body_was_sent;
    const enum oteli_verdict verdict = oteli_retry_verdict(answer->status);
    exporter->wants_fresh = verdict == OTELI_VERDICT_RETRY;
    if (verdict == OTELI_VERDICT_DELIVERED) {
        accept(exporter, call, answer);
        return go_on(exporter, call);
    }
    describe(exporter, answer);
    if (verdict == OTELI_VERDICT_RETRY && !answer->is_too_long && !answer->is_hopeless)
        return retry(exporter, call, answer);
    otel_export_drop(call, OTEL_DROP_PERMANENT_ERROR, exporter->count);
    OTELI_LOG(OTEL_LOG_ERROR, "OTLP export to %s failed: %s; %zu spans are lost",
              exporter->endpoint, exporter->problem, exporter->count);
    return go_on(exporter, call);
}

/* Encode the first request of the next batch. What cannot be encoded is left to the export
 * itself, which reports it. */
/* To encode a large batch early saves little of the time that it takes to send it, and costs a
 * second copy of it. Its spans are likely to be as large as those on their way. */
static bool is_worth_it(const struct otlp_exporter *exporter, const otel_batch *next)
{
    const size_t size = otel_batch_size(next);
    const size_t span = exporter->count != 0 ? exporter->encoder->request_bytes / exporter->count
                                             : 0; /* not known yet */
    return size != 0 && span * size <= PREPARED_BYTES_MAX;
}

static void prepare(void *state, const otel_batch *next)
{
    struct otlp_exporter *exporter = state;
    const bool is_encoded =
        is_worth_it(exporter, next) &&
        oteli_encode(exporter->spare, next, 0, &exporter->prepared_count) == OTELI_ENCODE_OK;
    exporter->prepared = is_encoded ? next : NULL;
}

static void take_prepared(struct otlp_exporter *exporter)
{
    struct oteli_encoder *prepared = exporter->spare;
    exporter->spare = exporter->encoder;
    exporter->encoder = prepared;
    exporter->count = exporter->prepared_count;
    begin_request(exporter);
}

static otel_export_result export_batch(void *state, otel_export *call)
{
    struct otlp_exporter *exporter = state;
    const bool is_prepared = exporter->prepared == call->batch;
    exporter->prepared = NULL;
    exporter->call = call;
    exporter->deadline_ns = after(oteli_monotonic_ns(), exporter->timeout_ns);
    exporter->first = 0;
    exporter->count = 0;
    if (is_prepared) {
        take_prepared(exporter);
        return attempt(exporter, call);
    }
    return send_next(exporter, call);
}

static otel_export_result poll_sending(struct otlp_exporter *exporter, otel_export *call,
                                       int timeout_ms)
{
    struct oteli_transport_answer answer;
    const uint64_t deadline = deadline_of(exporter, call);
    const uint64_t left_ms = ms_until(deadline, oteli_monotonic_ns());
    if (oteli_transport_poll(exporter->transport, shorter_ms(timeout_ms, left_ms), &answer))
        return settle(exporter, call, &answer);
    if (oteli_monotonic_ns() < deadline)
        return OTEL_EXPORT_PENDING;
    oteli_transport_cancel(exporter->transport, &answer);
    return settle(exporter, call, &answer);
}

static otel_export_result poll_waiting(struct otlp_exporter *exporter, otel_export *call,
                                       int timeout_ms)
{
    const uint64_t now = oteli_monotonic_ns();
    if (exporter->retry_at_ns >= deadline_of(exporter, call))
        return give_up(exporter, call);
    if (exporter->retry_at_ns > now) {
        oteli_transport_sleep(exporter->transport,
                              shorter_ms(timeout_ms, ms_until(exporter->retry_at_ns, now)));
        if (exporter->retry_at_ns > oteli_monotonic_ns())
            return OTEL_EXPORT_PENDING;
    }
    return attempt(exporter, call);
}

static otel_export_result poll_export(void *state, otel_export *call, int timeout_ms, bool abandon)
{
    struct otlp_exporter *exporter = state;
    if (abandon) {
        /* With the deadline in the past every way below leads to the end at once. */
        exporter->deadline_ns = 0;
        timeout_ms = 0;
    }
    switch (exporter->state) {
    case STATE_SENDING:
        return poll_sending(exporter, call, timeout_ms);
    case STATE_WAITING:
        return poll_waiting(exporter, call, timeout_ms);
    case STATE_IDLE:
        break;
    }
    return OTEL_EXPORT_DONE;
}

static int descriptor(void *state, int *timeout_ms)
{
    struct otlp_exporter *exporter = state;
    *timeout_ms = -1;
    if (exporter->state == STATE_IDLE)
        return oteli_transport_descriptor(exporter->transport, false);
    const int fd = oteli_transport_descriptor(exporter->transport, true);
    uint64_t then = deadline_of(exporter, exporter->call);
    if (exporter->state == STATE_SENDING)
        *timeout_ms = oteli_transport_timeout_ms(exporter->transport);
    else if (exporter->retry_at_ns < then)
        then = exporter->retry_at_ns;
    else
        *timeout_ms = 0; /* to give up */
    if (then != FOREVER)
        *timeout_ms = shorter_ms(*timeout_ms, ms_until(then, oteli_monotonic_ns()));
    return fd;
}

static void wake(void *state)
{
    struct otlp_exporter *exporter = state;
    oteli_transport_wake(exporter->transport);
}

static void free_exporter(void *state)
{
    struct otlp_exporter *exporter = state;
    if (exporter == NULL)
        return;
    oteli_transport_free(exporter->transport);
    oteli_encoder_fini(&exporter->encoders[0]);
    oteli_encoder_fini(&exporter->encoders[1]);
    free(exporter->endpoint);
    free(exporter);
}

/* These say how the body is framed and are ours to say. */
static bool is_reserved(const char *name)
{
    static const char *const reserved[] = {"Content-Type", "Content-Length", "Content-Encoding",
                                           "Transfer-Encoding"};
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        if (strcasecmp(name, reserved[i]) == 0)
            return true;
    }
    return false;
}

/* Copies the views of the headers that are sent; NULL without memory. */
static otel_otlp_header *choose_headers(const otel_otlp_options *options, size_t *count)
{
    otel_otlp_header *headers = calloc(options->header_count + 1, sizeof *headers);
    *count = 0;
    if (headers != NULL)
        headers[(*count)++] = (otel_otlp_header){"Content-Type", "application/x-protobuf"};
    for (size_t i = 0; headers != NULL && i < options->header_count; i++) {
        if (is_reserved(options->headers[i].name))
            OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                             "the header %s is set by the OTLP exporter itself; "
                             "the one that was given is left out",
                             options->headers[i].name);
        else
            headers[(*count)++] = options->headers[i];
    }
    return headers;
}

static struct oteli_transport *make_transport(const otel_otlp_options *options)
{
    static const char product[] = "OTel-OTLP-Exporter-C/" OTEL_VERSION;
    const char *prefix = options->user_agent != NULL ? options->user_agent : "";
    const size_t agent_size = strlen(prefix) + 1 + sizeof product;
    struct oteli_transport *transport = NULL;
    struct oteli_transport_options chosen = {.url = options->endpoint};
    otel_otlp_header *headers = choose_headers(options, &chosen.header_count);
    char *agent = malloc(agent_size);
    if (headers != NULL && agent != NULL) {
        snprintf(agent, agent_size, "%s%s%s", prefix, *prefix != '\0' ? " " : "", product);
        chosen.headers = headers;
        chosen.user_agent = agent;
        oteli_otlp_proxy(chosen.url, &chosen.proxy, &chosen.no_proxy);
        transport = oteli_transport_new(&chosen);
    }
    free(agent);
    free(headers);
    return transport;
}

static bool options_are_valid(const otel_otlp_options *options)
{
    if (!oteli_transport_url_is_valid(options->endpoint) || options->timeout_ms < OTEL_ZERO ||
        !oteli_otlp_header_is_valid("User-Agent", options->user_agent ? options->user_agent : ""))
        return false;
    for (size_t i = 0; i < options->header_count; i++) {
        if (!oteli_otlp_header_is_valid(options->headers[i].name, options->headers[i].value))
            return false;
    }
    return true;
}

static uint64_t timeout_ns_of(int64_t timeout_ms)
{
    if (timeout_ms == 0)
        timeout_ms = DEFAULT_TIMEOUT_MS;
    return timeout_ms < 0 || (uint64_t)timeout_ms > FOREVER / NS_PER_MS
               ? FOREVER
               : (uint64_t)timeout_ms * NS_PER_MS;
}

static struct otlp_exporter *new_without_transport(uint64_t timeout_ns, size_t max_request_bytes)
{
    struct otlp_exporter *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->timeout_ns = timeout_ns;
    made->max_request_bytes = max_request_bytes;
    made->encoder = &made->encoders[0];
    made->spare = &made->encoders[1];
    oteli_encoder_init(made->encoder, max_request_bytes);
    oteli_encoder_init(made->spare, max_request_bytes);
    return made;
}

static otel_status renew(const void *state, otel_exporter *renewed);

/* To the caller, or back where it came from if it could not be made whole. */
static otel_status hand_out(struct otlp_exporter *made, otel_exporter *exporter)
{
    if (made->endpoint == NULL || made->transport == NULL) {
        free_exporter(made);
        return OTEL_ERROR_NO_MEMORY;
    }
    *exporter = OTEL_EXPORTER(.name = "otlp_http_span_exporter", .state = made,
                              .export_batch = export_batch, .poll = poll_export, .wake = wake,
                              .free = free_exporter, .prepare = prepare, .descriptor = descriptor,
                              .renew = renew);
    return OTEL_OK;
}

static otel_status renew(const void *state, otel_exporter *renewed)
{
    const struct otlp_exporter *parents = state;
    struct otlp_exporter *made =
        new_without_transport(parents->timeout_ns, parents->max_request_bytes);
    if (made == NULL)
        return OTEL_ERROR_NO_MEMORY;
    made->endpoint = strdup(parents->endpoint);
    made->transport = oteli_transport_renew(parents->transport);
    return hand_out(made, renewed);
}

otel_status otel_otlp_exporter_new(const otel_otlp_options *options, otel_exporter *exporter)
{
    otel_otlp_options chosen = {0};
    if (options != NULL)
        memcpy(&chosen, options, options->size < sizeof chosen ? options->size : sizeof chosen);
    if (chosen.endpoint == NULL)
        chosen.endpoint = OTELI_OTLP_DEFAULT_ENDPOINT;
    if (!options_are_valid(&chosen))
        return OTEL_ERROR_INVALID_ARGUMENT;
    if (chosen.max_request_bytes == 0)
        chosen.max_request_bytes = DEFAULT_MAX_REQUEST_BYTES;
    if (chosen.max_request_bytes > INT32_MAX) /* what protobuf can hold */
        chosen.max_request_bytes = INT32_MAX;

    struct otlp_exporter *made =
        new_without_transport(timeout_ns_of(chosen.timeout_ms), chosen.max_request_bytes);
    if (made == NULL)
        return OTEL_ERROR_NO_MEMORY;
    made->endpoint = oteli_transport_url_for_log(chosen.endpoint);
    made->transport = made->endpoint != NULL ? make_transport(&chosen) : NULL;
    return hand_out(made, exporter);
}

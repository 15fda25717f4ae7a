/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/jaeger_sampler/jaeger_remote.c - a sampler whose strategy comes from a Jaeger server.
 *
 *     app threads ── sample ──▶ strategy (or, before the first answer, the initial sampler)
 *                                  ▲ exchanged under a lock that is held for one decision
 *     otel-sampler: ask ─▶ parse ──┘ ─▶ sleep ─▶ ask …
 *
 * The thread is needed because no other can wait for the server: the exporter thread sleeps while
 * no span is sampled, which is what a strategy may lead to, and an app thread must not wait.
 *
 * Fork: a child has a copy of the strategy and no thread. The first decision there resets the lock,
 * whose holder may not exist in the child, and starts a thread with a connection of its own. */
#include "common/base/atomic.h"
#include "common/base/spin_lock.h"
#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "common/log.h"
#include "common/os/fork.h"
#include "exporters/jaeger_sampler/jaeger_url.h"
#include "exporters/jaeger_sampler/strategy.h"
#include "exporters/otlp/endpoint.h"
#include "exporters/otlp/transport/transport.h"
#include "sdk/worker/helper_thread.h"

#include <inttypes.h>
#include <otel/jaeger_remote.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_INTERVAL_MS = 60000, DEFAULT_TIMEOUT_MS = 10000, TURN_MS = 60000 };
static const double default_ratio = 0.001;

struct remote {
    otel_sampler initial;
    uint64_t interval_ns;
    uint64_t timeout_ns;
    char *shown_url; /* in log lines */

    /* of any thread */
    uint64_t forks; /* that it knows of; BEING_ADOPTED: a child is just taking it over */
    uint32_t lock;  /* of what comes next */
    struct oteli_strategy *strategy; /* NULL: no answer yet */

    /* of the helper, from its start to its end */
    struct oteli_transport *transport;
    uint8_t *answer; /* the one that the strategy comes from */
    size_t answer_length;
    bool is_failing; /* for the log: first failure, and recovery */

    pthread_t thread;
    bool has_thread;
    uint32_t is_stopping;
};

#define BEING_ADOPTED UINT64_MAX

static uint64_t forks; /* from the first process with a sampler to this one */

static void count_fork(void)
{
    oteli_store_relaxed_64(&forks, oteli_load_relaxed_64(&forks) + 1);
}

static bool is_stopping(const struct remote *remote)
{
    return oteli_load_acquire_32(&remote->is_stopping) != 0; /* pairs with stop */
}

static void set_strategy(struct remote *remote, struct oteli_strategy *strategy)
{
    oteli_spin_lock(&remote->lock);
    struct oteli_strategy *before = remote->strategy;
    remote->strategy = strategy;
    oteli_spin_unlock(&remote->lock);
    oteli_strategy_free(before);
}

static void fail(struct remote *remote, const char *problem)
{
    const bool is_grpc = strstr(remote->shown_url, ":14250/") != NULL;
    if (!remote->is_failing)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "no sampling strategy from %s: %s; %s%s", remote->shown_url,
                         problem,
                         remote->answer != NULL ? "the one from before goes on to hold"
                                                : "the initial sampler decides",
                         is_grpc ? " (14250 is Jaeger's port for gRPC; HTTP is on 5778)" : "");
    remote->is_failing = true;
}

static void recover(struct remote *remote)
{
    if (remote->is_failing)
        OTELI_LOG_ALWAYS(OTEL_LOG_INFO, "%s has a sampling strategy again", remote->shown_url);
    remote->is_failing = false;
}

/* A strategy that stays the same goes on as it is, with its rates. */
static bool is_the_same(const struct remote *remote, const struct oteli_response_body *body)
{
    return remote->answer != NULL && remote->answer_length == body->length &&
           memcmp(remote->answer, body->bytes, body->length) == 0;
}

static void take_answer(struct remote *remote, const struct oteli_transport_response *answer)
{
    char problem[64];
    if (answer->status != 200) {
        snprintf(problem, sizeof problem, "HTTP status %d", answer->status);
        fail(remote, answer->status != 0 ? problem : answer->problem);
        return;
    }
    if (is_the_same(remote, &answer->body)) {
        recover(remote);
        return;
    }
    struct oteli_strategy *strategy =
        answer->body.is_cut
            ? NULL
            : oteli_strategy_parse((const char *)answer->body.bytes, answer->body.length);
    uint8_t *copy = strategy != NULL ? malloc(answer->body.length) : NULL;
    if (copy == NULL) {
        oteli_strategy_free(strategy);
        fail(remote, answer->body.is_cut ? "the answer is too long or was cut off"
                                         : "the answer is no strategy");
        return;
    }
    memcpy(copy, answer->body.bytes, answer->body.length);
    free(remote->answer);
    remote->answer = copy;
    remote->answer_length = answer->body.length;
    set_strategy(remote, strategy);
    recover(remote);
}

static int ms_until(uint64_t then_ns)
{
    const uint64_t left_ms = oteli_ms_between(oteli_monotonic_ns(), then_ns);
    return left_ms < TURN_MS ? (int)left_ms : TURN_MS;
}

/* One question, at most as long as the timeout. */
static void ask(struct remote *remote)
{
    struct oteli_transport_response answer;
    const uint64_t deadline_ns = oteli_monotonic_ns() + remote->timeout_ns;
    const struct oteli_transport_request request = {
        .connect_ms = (int64_t)(remote->timeout_ns / OTELI_NS_PER_MS)};
    oteli_transport_start(remote->transport, &request);
    while (!oteli_transport_poll(remote->transport, ms_until(deadline_ns), &answer)) {
        if (!is_stopping(remote) && ms_until(deadline_ns) != 0)
            continue;
        oteli_transport_cancel(remote->transport, &answer);
        break;
    }
    if (!is_stopping(remote))
        take_answer(remote, &answer);
}

static void *refresh(void *argument)
{
    struct remote *remote = argument;
    pthread_setname_np(pthread_self(), "otel-sampler");
    while (!is_stopping(remote)) {
        ask(remote);
        const uint64_t next_ns = oteli_monotonic_ns() + remote->interval_ns;
        while (!is_stopping(remote) && ms_until(next_ns) != 0)
            oteli_transport_sleep(remote->transport, ms_until(next_ns));
    }
    return NULL;
}

static bool start(struct remote *remote)
{
    remote->has_thread = oteli_helper_start(&remote->thread, refresh, remote);
    return remote->has_thread;
}

/* In a child, once: the parent's thread may have been anywhere, but only the strategy, which is
 * exchanged by one store, and what is constant is used. */
static void adopt(struct remote *remote, uint64_t known, uint64_t now)
{
    if (!oteli_cas_full_64(&remote->forks, known, BEING_ADOPTED))
        return;
    remote->lock = 0;
    remote->has_thread = false;
    remote->answer = NULL;
    struct oteli_transport *transport = oteli_transport_renew(remote->transport);
    if (transport != NULL)
        remote->transport = transport;
    if (transport == NULL || !start(remote))
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                         "the sampling strategy of %s stays as it is in this forked "
                         "child: no memory or no thread",
                         remote->shown_url);
    oteli_store_release_64(&remote->forks, now); /* pairs with is_ours */
}

/* Whether this process has the sampler, or has just got it. */
static bool is_ours(struct remote *remote)
{
    const uint64_t now = oteli_load_relaxed_64(&forks);
    const uint64_t known = oteli_load_acquire_64(&remote->forks);
    if (OTELI_LIKELY(known == now))
        return true;
    if (known != BEING_ADOPTED)
        adopt(remote, known, now);
    return oteli_load_acquire_64(&remote->forks) == now;
}

static void sample(const void *state, const otel_sampling_query *query,
                   otel_sampling_result *result)
{
    struct remote *remote = (struct remote *)(uintptr_t)state;
    bool is_decided = false;
    bool is_sampled = false;
    if (is_ours(remote)) {
        const uint64_t now_ns = oteli_monotonic_ns();
        oteli_spin_lock(&remote->lock);
        is_decided = remote->strategy != NULL;
        is_sampled = is_decided &&
                     oteli_strategy_samples(remote->strategy, query->name, query->trace_id, now_ns);
        oteli_spin_unlock(&remote->lock);
    }
    if (is_decided)
        result->decision = is_sampled ? OTEL_SAMPLING_RECORD_AND_SAMPLE : OTEL_SAMPLING_DROP;
    else
        remote->initial.sample(remote->initial.state, query, result);
}

/* In the words of TraceIdRatioBased, which no locale changes. */
static void describe_ratio(double ratio, char *text, size_t size)
{
    otel_sampler sampler;
    text[0] = '\0';
    if (otel_sampler_trace_id_ratio(ratio, &sampler) != OTEL_OK)
        return;
    (void)sampler.describe(sampler.state, text, size);
    sampler.free(sampler.state);
}

/* The strategy without its operations; false: there is none. */
static bool look(struct remote *remote, struct oteli_strategy *strategy)
{
    if (!is_ours(remote))
        return false;
    oteli_spin_lock(&remote->lock);
    const bool is_there = remote->strategy != NULL;
    if (is_there)
        *strategy = *remote->strategy;
    oteli_spin_unlock(&remote->lock);
    return is_there;
}

static size_t describe(const void *state, char *text, size_t size)
{
    struct remote *remote = (struct remote *)(uintptr_t)state;
    struct oteli_strategy strategy;
    char inner[512] = "custom";
    int length;
    if (!look(remote, &strategy)) {
        if (remote->initial.describe != NULL)
            (void)remote->initial.describe(remote->initial.state, inner, sizeof inner);
        length = snprintf(text, size, "JaegerRemoteSampler{%s}", inner);
    } else if (strategy.kind == OTELI_STRATEGY_RATE) {
        const uint64_t thousandths = (uint64_t)(strategy.rate.per_second * 1000);
        length = snprintf(text, size, "JaegerRemoteSampler{RateLimiting{%" PRIu64 ".%03u}}",
                          thousandths / 1000, (unsigned)(thousandths % 1000));
    } else {
        describe_ratio(strategy.others.probability, inner, sizeof inner);
        if (strategy.kind == OTELI_STRATEGY_RATIO)
            length = snprintf(text, size, "JaegerRemoteSampler{%s}", inner);
        else
            length = snprintf(text, size, "JaegerRemoteSampler{%zu operations,others:%s}",
                              strategy.operation_count, inner);
    }
    return length > 0 ? (size_t)length : 0;
}

static void free_remote(void *state)
{
    struct remote *remote = state;
    const bool is_here = remote->forks == oteli_load_relaxed_64(&forks);
    if (remote->has_thread && is_here) {
        oteli_store_release_32(&remote->is_stopping, 1);
        oteli_transport_wake(remote->transport);
        pthread_join(remote->thread, NULL);
    }
    if (remote->initial.free != NULL)
        remote->initial.free(remote->initial.state);
    oteli_transport_free(remote->transport);
    oteli_strategy_free(remote->strategy);
    free(remote->answer);
    free(remote->shown_url);
    free(remote);
}

static struct oteli_transport *make_transport(const char *url)
{
    static const otel_otlp_header accept = {"Accept", "application/json"};
    struct oteli_transport_options options = {
        .url = url,
        .user_agent = "OTel-Jaeger-Remote-Sampler-C/" OTEL_VERSION,
        .headers = &accept,
        .header_count = 1,
        .gets = true,
    };
    oteli_otlp_proxy(url, &options.proxy, &options.no_proxy);
    return oteli_transport_new(&options);
}

static uint64_t ns_of(int64_t ms, int64_t if_zero)
{
    const uint64_t chosen = (uint64_t)(ms != 0 ? ms : if_zero);
    return chosen < UINT64_MAX / OTELI_NS_PER_MS / 2 ? chosen * OTELI_NS_PER_MS : UINT64_MAX / 2;
}

/* Everything but the thread. After an error the initial sampler is still the caller's. */
static otel_status make(const otel_jaeger_remote_options *options, struct remote *remote)
{
    char *url;
    if (options->polling_interval_ms < 0 || options->timeout_ms < 0 ||
        (options->endpoint != NULL && !oteli_transport_url_is_valid(options->endpoint)))
        return OTEL_ERROR_INVALID_ARGUMENT;
    url = oteli_jaeger_url(options->endpoint, options->service_name);
    if (url == NULL)
        return OTEL_ERROR_NO_MEMORY;
    remote->interval_ns = ns_of(options->polling_interval_ms, DEFAULT_INTERVAL_MS);
    remote->timeout_ns = ns_of(options->timeout_ms, DEFAULT_TIMEOUT_MS);
    remote->transport = make_transport(url);
    remote->shown_url = oteli_transport_url_for_log(url);
    free(url);
    if (remote->transport == NULL || remote->shown_url == NULL)
        return OTEL_ERROR_NO_MEMORY;
    if (options->initial.sample == NULL)
        return otel_sampler_trace_id_ratio(default_ratio, &remote->initial);
    return OTEL_OK;
}

otel_status otel_sampler_jaeger_remote(const otel_jaeger_remote_options *options,
                                       otel_sampler *sampler)
{
    otel_jaeger_remote_options known = {.size = sizeof known};
    if (options != NULL && options->size == 0)
        return OTEL_ERROR_INVALID_ARGUMENT;
    if (options != NULL)
        memcpy(&known, options, options->size < sizeof known ? options->size : sizeof known);
    oteli_fork_add(count_fork);
    struct remote *remote = calloc(1, sizeof *remote);
    otel_status status = remote != NULL ? make(&known, remote) : OTEL_ERROR_NO_MEMORY;
    if (known.initial.sample != NULL && remote != NULL)
        remote->initial = known.initial;
    else if (known.initial.free != NULL)
        known.initial.free(known.initial.state);
    if (status == OTEL_OK) {
        remote->forks = oteli_load_relaxed_64(&forks);
        status = start(remote) ? OTEL_OK : OTEL_ERROR_SYSTEM;
    }
    if (status == OTEL_OK)
        *sampler = OTEL_SAMPLER(.state = remote, .sample = sample, .describe = describe,
                                .free = free_remote);
    else if (remote != NULL)
        free_remote(remote);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/started/sampler_jaeger_test.c - specification of otel/jaeger_remote.h: the sampler
 * against a scripted server. An answer has been taken by the time that the next question comes. */
#include "exporters/otel_start.h"
#include "sdk/engine/engine.h"
#include "sdk/lifecycle/lifecycle.h"

#include "tests/support/http_sink.h"
#include "tests/support/leaks.h"
#include "tests/support/sampling.h"
#include "tests/support/unit.h"

#include <arpa/inet.h>
#include <otel/jaeger_remote.h>
#include <otel/otel.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whoever is left hanging stays so to the end of the test. */
enum { SOON_MS = 5, LATE_MS = 60000 };

#define SCRIPT HTTP_SINK_SCRIPT
#define ANSWER(text)                                 \
    {                                                \
        .body = text, .body_length = sizeof text - 1 \
    }
#define HALF "{\"probabilisticSampling\":{\"samplingRate\":0.5}}"
#define ALL "{\"probabilisticSampling\":{\"samplingRate\":1}}"
#define NONE "{\"probabilisticSampling\":{\"samplingRate\":0}}"
#define RATE \
    "{\"strategyType\":\"RATE_LIMITING\",\"rateLimitingSampling\":{\"maxTracesPerSecond\":7}}"
#define BEYOND_ALL \
    "{\"strategyType\":\"RATE_LIMITING\",\"rateLimitingSampling\":{\"maxTracesPerSecond\":1e300}}"
#define OPERATIONS                                                                          \
    "{\"operationSampling\":{\"defaultSamplingProbability\":0,\"perOperationStrategies\":[" \
    "{\"operation\":\"GET /\",\"probabilisticSampling\":{\"samplingRate\":1}}]}}"

static struct http_sink *sink;
static otel_sampler sampler;
static struct lines lines;

static void ask_every(int64_t ms, const char *service)
{
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", (unsigned)http_sink_port(sink));
    assert_int_equal(
        otel_sampler_jaeger_remote(
            OTEL_JAEGER_REMOTE_OPTIONS(.endpoint = endpoint, .service_name = service,
                                       .polling_interval_ms = ms, .timeout_ms = LATE_MS),
            &sampler),
        OTEL_OK);
}

/* A server with this script, and a sampler that asks it. */
static void start(const struct http_sink_answer *script, size_t count, const char *service)
{
    sink = http_sink_start(script, count);
    ask_every(SOON_MS, service);
}

static void stop(void)
{
    free_sampler(&sampler);
    memset(&sampler, 0, sizeof sampler);
    if (sink != NULL)
        http_sink_stop(sink);
    sink = NULL;
}

static int begin(void **state)
{
    (void)state;
    memset(&lines, 0, sizeof lines);
    otel_log_set_handler(keep_line, &lines);
    return 0;
}

static int end(void **state)
{
    (void)state;
    stop();
    otel_log_set_handler(NULL, NULL);
    return 0;
}

AROUND_EACH(begin, end);

static bool samples(uint64_t id)
{
    struct question question;
    ask(&question, NO_PARENT, "", 0);
    question.trace_id[8] = (uint8_t)(id >> 56);
    return answer_of(&sampler, &question).decision == OTEL_SAMPLING_RECORD_AND_SAMPLE;
}

static const uint64_t upper_half = UINT64_C(1) << 63;

/* spec: S12 trace/sdk.md#jaegerremotesampler SHOULD stable */
TEST(S12_the_server_is_asked_over_http)
{
    start(SCRIPT(ANSWER(HALF)), "my shop");
    assert_true(http_sink_wait(sink, 2));
    const struct http_sink_request *request = http_sink_request(sink, 0);
    char value[64];
    assert_memory_equal(request->head, "GET /sampling?service=my%20shop HTTP/1.1\r\n",
                        strlen("GET /sampling?service=my%20shop HTTP/1.1\r\n"));
    assert_string_equal(http_sink_header(request, "Accept", value, sizeof value),
                        "application/json");
    assert_string_equal(http_sink_header(request, "Content-Type", value, sizeof value), "");
    assert_int_equal(request->body_length, 0);
}

/* spec: S12 trace/sdk.md#jaegerremotesampler SHOULD stable */
TEST(S12_the_strategy_follows_the_server)
{
    oteli_leaks_begin();
    start(SCRIPT(ANSWER(HALF), ANSWER(ALL), ANSWER(NONE), ANSWER(RATE), ANSWER(OPERATIONS),
                 {.then = HTTP_SINK_HANG}),
          "s");
    assert_true(http_sink_wait(sink, 6));
    assert_string_equal(description_of(&sampler),
                        "JaegerRemoteSampler{1 operations,others:TraceIdRatioBased{0.000000}}");
    assert_true(samples(upper_half));
    stop();
    oteli_leaks_check();
}

TEST(an_answer_is_waited_for)
{
    sink = http_sink_start(SCRIPT(ANSWER(HALF)));
    http_sink_hold(sink);
    ask_every(LATE_MS, "s");
    http_sink_go_on(sink);
    while (strstr(description_of(&sampler), "{0.500000}") == NULL)
        sched_yield();
}

TEST(a_rate_that_no_number_can_say_is_described_as_a_large_one)
{
    start(SCRIPT(ANSWER(BEYOND_ALL)), "s");
    assert_true(http_sink_wait(sink, 2));
    assert_string_equal(description_of(&sampler),
                        "JaegerRemoteSampler{RateLimiting{1000000000000000.000}}");
    assert_true(samples(upper_half));
}

/* spec: S12 trace/sdk.md#jaegerremotesampler SHOULD stable */
TEST(S12_the_initial_sampler_decides_until_there_is_an_answer)
{
    sink = http_sink_start(SCRIPT({.status = 503}, {.then = HTTP_SINK_HANG}));
    struct counted counted = {0, 0};
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u/x", (unsigned)http_sink_port(sink));
    assert_int_equal(
        otel_sampler_jaeger_remote(
            OTEL_JAEGER_REMOTE_OPTIONS(.endpoint = endpoint, .polling_interval_ms = SOON_MS,
                                       .timeout_ms = LATE_MS, .initial = counted_sampler(&counted)),
            &sampler),
        OTEL_OK);
    assert_true(http_sink_wait(sink, 2));
    (void)samples(0);
    assert_int_equal(counted.asked, 1);
    assert_string_equal(description_of(&sampler), "JaegerRemoteSampler{custom}");
    stop();
    assert_int_equal(counted.freed, 1);
    assert_int_equal(lines.count, 1);
    assert_non_null(strstr(lines.last, "HTTP status 503"));
}

static void keep_first_line(void *state, otel_log_level level, const char *message)
{
    char **first = state;
    char *line = strdup(message);
    char *none = NULL;
    (void)level;
    if (!__atomic_compare_exchange_n(first, &none, line, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        free(line);
}

/* Nothing listens on this address: it is bound here. */
TEST(the_port_of_grpc_is_named)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(14250)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 0x100 * ((uint32_t)getpid() & 0xffff));
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "http://%s:14250", inet_ntoa(address.sin_addr));
    char *line = NULL;
    otel_log_set_handler(keep_first_line, &line);
    assert_int_equal(
        otel_sampler_jaeger_remote(OTEL_JAEGER_REMOTE_OPTIONS(.endpoint = endpoint), &sampler),
        OTEL_OK);
    while (__atomic_load_n(&line, __ATOMIC_ACQUIRE) == NULL)
        sched_yield();
    stop();
    assert_non_null(strstr(line, "14250 is Jaeger's port for gRPC; HTTP is on 5778"));
    free(line);
    close(fd);
}

/* spec: S12 trace/sdk.md#jaegerremotesampler SHOULD stable */
TEST(S12_the_last_good_strategy_holds)
{
    start(SCRIPT(ANSWER(HALF), ANSWER("{"), {.status = 500}, {.then = HTTP_SINK_RESET},
                 {.then = HTTP_SINK_CUT_BODY, .body = HALF, .body_length = 3},
                 {.then = HTTP_SINK_HANG}),
          "s");
    assert_true(http_sink_wait(sink, 6));
    assert_string_equal(description_of(&sampler),
                        "JaegerRemoteSampler{TraceIdRatioBased{0.500000}}");
    assert_true(samples(0));
    assert_false(samples(upper_half));
    stop();
    assert_int_equal(lines.count, 1);
}

TEST(the_default_initial_sampler_keeps_a_thousandth)
{
    start(SCRIPT({.then = HTTP_SINK_HANG}), "s");
    assert_true(http_sink_wait(sink, 1));
    assert_string_equal(description_of(&sampler),
                        "JaegerRemoteSampler{TraceIdRatioBased{0.001000}}");
    /* And its end does not wait for an answer. */
    stop();
}

TEST(bad_options_are_refused_and_what_is_adopted_is_freed)
{
    struct counted counted = {0, 0};
    oteli_leaks_begin();
    assert_int_equal(
        otel_sampler_jaeger_remote(OTEL_JAEGER_REMOTE_OPTIONS(.endpoint = "localhost",
                                                              .initial = counted_sampler(&counted)),
                                   &sampler),
        OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(
        otel_sampler_jaeger_remote(OTEL_JAEGER_REMOTE_OPTIONS(.polling_interval_ms = -1,
                                                              .initial = counted_sampler(&counted)),
                                   &sampler),
        OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(counted.freed, 2);
    oteli_leaks_fail_at(1);
    assert_int_equal(
        otel_sampler_jaeger_remote(OTEL_JAEGER_REMOTE_OPTIONS(.initial = counted_sampler(&counted)),
                                   &sampler),
        OTEL_ERROR_NO_MEMORY);
    assert_int_equal(counted.freed, 3);
    oteli_leaks_check();
}

/* The parent's sampler goes on in the child: with the strategy that it had, and then with one
 * that the child asks for itself. */
TEST(a_forked_child_asks_for_itself)
{
    start(SCRIPT(ANSWER(HALF), {.then = HTTP_SINK_HANG}, ANSWER(NONE)), "s");
    assert_true(http_sink_wait(sink, 2));
    int done[2];
    int looked[2];
    char byte;
    assert_int_equal(pipe(done), 0);
    assert_int_equal(pipe(looked), 0);
    http_sink_hold(sink); /* the child has no answer of its own before it has looked */
    const pid_t child = fork();
    if (child == 0) {
        close(done[1]);
        const bool has_parents = samples(0) && !samples(upper_half);
        close(looked[0]);
        close(looked[1]);
        (void)!read(done[0], &byte, 1); /* until the parent has seen two questions of ours */
        const bool has_own = !samples(0);
        free_sampler(&sampler);
        _exit(has_parents && has_own ? 0 : 1);
    }
    close(done[0]);
    close(looked[1]);
    (void)!read(looked[0], &byte, 1);
    close(looked[0]);
    http_sink_go_on(sink);
    const bool is_asked = http_sink_wait(sink, 4);
    close(done[1]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(is_asked);
    assert_int_equal(status, 0);
}

static struct oteli_engine_options start_options(struct oteli_config *config)
{
    return (struct oteli_engine_options){.config = config};
}

/* spec: S12 configuration/sdk-environment-variables.md#general-sdk-configuration SHOULD stable */
TEST(S12_the_environment_can_name_it)
{
    static char *const names[] = {"jaeger_remote", "parentbased_jaeger_remote"};
    sink = http_sink_start(SCRIPT({.then = HTTP_SINK_HANG}, {.then = HTTP_SINK_HANG}));
    char argument[96];
    snprintf(argument, sizeof argument, "endpoint=http://127.0.0.1:%u,initialSamplingRate=0.25",
             (unsigned)http_sink_port(sink));
    for (size_t i = 0; i < 2; i++) {
        struct oteli_config config = {.traces_sampler = names[i],
                                      .traces_sampler_arg = argument,
                                      .resource_attributes = "a=b,service.name=my%20shop"};
        const struct oteli_engine_options start = start_options(&config);
        assert_int_equal(oteli_start_sampler(&start, &sampler), OTEL_OK);
        assert_true(http_sink_wait(sink, i + 1));
        assert_non_null(strstr(http_sink_request(sink, i)->head, "?service=my%20shop "));
        const char *description = description_of(&sampler);
        assert_non_null(strstr(description, "JaegerRemoteSampler{TraceIdRatioBased{0.250000}}"));
        assert_int_equal(strncmp(description, "ParentBased{root:", 17) == 0, i == 1);
        free_sampler(&sampler);
        memset(&sampler, 0, sizeof sampler);
    }
}

/* spec: S12 configuration/sdk-environment-variables.md#general-sdk-configuration SHOULD stable */
TEST(S12_the_sdk_samples_by_it_until_its_shutdown)
{
    sink = http_sink_start(SCRIPT(ANSWER(OPERATIONS), {.then = HTTP_SINK_HANG}));
    char argument[96];
    snprintf(argument, sizeof argument, "endpoint=http://127.0.0.1:%u/,pollingIntervalMs=%d",
             (unsigned)http_sink_port(sink), SOON_MS);
    setenv("OTEL_TRACES_SAMPLER", "parentbased_jaeger_remote", 1);
    setenv("OTEL_TRACES_SAMPLER_ARG", argument, 1);
    setenv("OTEL_TRACES_EXPORTER", "none", 1);
    assert_int_equal(otel_start(NULL), OTEL_OK);
    assert_true(http_sink_wait(sink, 2));
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    const otel_span kept = otel_span_start(tracer, "GET /", NULL);
    const otel_span dropped = otel_span_start(tracer, "GET /other", NULL);
    assert_true(otel_span_is_recording(kept));
    assert_false(otel_span_is_recording(dropped));
    otel_span_end(kept);
    otel_span_end(dropped);
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    oteli_lifecycle_reset();
    oteli_api_reset();
}

/* Without library otel-otlp there is nobody to make it. */
TEST(S12_the_sdk_alone_refuses_the_name)
{
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.traces_sampler = "jaeger_remote")),
                     OTEL_ERROR_UNSUPPORTED);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/span_cases.c - each case in the words of a program that makes spans so. Nothing
 * but the public interface is called, and what is called is all there is in the loops. */
#include "benchmarks/span_cases.h"
#include "benchmarks/bench.h"

#include <otel/http.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum { CHILDREN = 99, DEEPEST = 10000, HELD = 8, STRETCH = 10, PARENTS = 10 };

static otel_tracer *tracer;
static otel_span open_spans[DEEPEST];
static otel_span parents[PARENTS]; /* elsewhere, and sampled there */
static volatile uint64_t sink;     /* keeps what nobody else reads from being left out */

void bench_cases_prepare(enum bench_world world)
{
    tracer = otel_tracer_get("bench", "1.0");
    if (world == BENCH_NO_SDK)
        return;
    for (unsigned i = 0; i < PARENTS; i++) {
        const uint8_t trace_id[16] = {0xb7, (uint8_t)(1 + i)};
        const uint8_t span_id[8] = {0x5c, (uint8_t)(1 + i)};
        const otel_span_context context =
            otel_span_context_make(trace_id, span_id, OTEL_TRACE_FLAG_SAMPLED, true, NULL);
        parents[i] = otel_span_wrap(&context);
    }
}

static inline uint64_t read_counter(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return bench_now_ns();
#endif
}

static void two_tsc_reads(uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t start = read_counter();
        sum += read_counter() - start;
    }
    sink = sum;
}

static void two_clock_gettime(uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct timespec start;
        struct timespec end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        clock_gettime(CLOCK_MONOTONIC, &end);
        sum += (uint64_t)(end.tv_nsec - start.tv_nsec);
    }
    sink = sum;
}

static void enter_end(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const otel_span span = otel_span_enter(tracer, "GET /users", NULL);
        otel_span_end(span);
    }
}

static void enter_end_kind(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const otel_span span =
            otel_span_enter(tracer, "GET /users", OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_SERVER));
        otel_span_end(span);
    }
}

static void enter_end_5attr(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const otel_span span = otel_span_enter(tracer, "GET /users", NULL);
        bench_set_5_attributes(span);
        otel_span_end(span);
    }
}

static void enter_end_5attr_mixed(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const otel_span span = otel_span_enter(tracer, "GET /users", NULL);
        otel_span_set_string(span, "http.request.method", "GET");
        otel_span_set_string(span, "url.path", "/api/users/12345");
        otel_span_set_int(span, "http.response.status_code", 200);
        otel_span_set_int(span, "server.port", 8080);
        otel_span_set_bool(span, "cache.hit", true);
        otel_span_end(span);
    }
}

static void enter_end_5attr_options(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const otel_attribute attributes[] = {
            otel_attribute_of("http.request.method", otel_value_string("GET")),
            otel_attribute_of("url.path", otel_value_string("/api/users/12345")),
            otel_attribute_of("server.address", otel_value_string("example.com")),
            otel_attribute_of("http.response.status_code", otel_value_int(200)),
            otel_attribute_of("server.port", otel_value_int(8080)),
        };
        const otel_span span =
            otel_span_enter(tracer, "GET /users",
                            OTEL_SPAN_OPTIONS(.attributes = attributes, .attribute_count = 5));
        otel_span_end(span);
    }
}

/* Its parent is in another process. */
static void enter_end_remote(uint64_t count)
{
    const otel_context parent = otel_context_with_span(otel_current_context(), parents[0]);
    for (uint64_t i = 0; i < count; i++) {
        const otel_span span =
            otel_span_enter(tracer, "GET /users",
                            OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_SERVER, .parent = &parent));
        otel_span_end(span);
    }
}

/* --- a server's span: seven attributes, of a request without a trace --- */

static BENCH_ONE_COPY const char *get_header(void *carrier, const char *name, size_t index,
                                             size_t *length)
{
    const char *value = NULL;
    (void)carrier;
    if (index == 0 && strcmp(name, "host") == 0)
        value = "example.com:8080";
    else if (index == 0 && strcmp(name, "user-agent") == 0)
        value = "curl/7.88.1";
    if (value != NULL)
        *length = strlen(value);
    return value;
}

static void http_server(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const otel_span span = otel_http_server_enter(tracer, "GET", "/api/users/12345",
                                                      OTEL_HTTP_OPTIONS(.get_header = get_header));
        otel_http_server_end(span, 200, NULL);
    }
}

/* With all that a server knows: eleven attributes. */
static void http_server_peer(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const otel_span span = otel_http_server_enter(
            tracer, "GET", "/api/users/12345",
            OTEL_HTTP_OPTIONS(.get_header = get_header, .scheme = otel_slice_of("https"),
                              .protocol_version = otel_slice_of("HTTP/1.1"),
                              .peer_address = otel_slice_of("192.0.2.4"), .peer_port = 49152));
        otel_http_server_end(span, 200, NULL);
    }
}

/* http_server in the words of a program that does not know otel/http.h. */
static void http_server_by_hand(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        size_t host_length = 0;
        size_t agent_length = 0;
        const char *host = get_header(NULL, "host", 0, &host_length);
        const char *colon = memchr(host, ':', host_length);
        const char *agent = get_header(NULL, "user-agent", 0, &agent_length);
        const otel_attribute attributes[] = {
            otel_attribute_of("http.request.method", otel_value_string("GET")),
            otel_attribute_of("url.scheme", otel_value_string("http")),
            otel_attribute_of("url.path", otel_value_string("/api/users/12345")),
            otel_attribute_of("server.address", otel_value_string_n(host, (size_t)(colon - host))),
            otel_attribute_of("server.port", otel_value_int(strtol(colon + 1, NULL, 10))),
            otel_attribute_of("user_agent.original", otel_value_string_n(agent, agent_length)),
        };
        const otel_context parent = otel_extract(NULL, get_header, NULL);
        const otel_span span =
            otel_span_enter(tracer, "GET",
                            OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_SERVER, .parent = &parent,
                                              .attributes = attributes, .attribute_count = 6));
        otel_span_set_int(span, "http.response.status_code", 200);
        otel_span_end(span);
    }
}

/* --- a root span with one thing more --- */

#define ONE_CASE(name, what)                                                    \
    static void name(uint64_t count)                                            \
    {                                                                           \
        for (uint64_t i = 0; i < count; i++) {                                  \
            const otel_span span = otel_span_enter(tracer, "GET /users", NULL); \
            what;                                                               \
            otel_span_end(span);                                                \
        }                                                                       \
    }

#define LETTERS_50 "abcdefghijklmnopqrstuvwxyz0123456789-abcdefghijklm"

ONE_CASE(one_int, otel_span_set_int(span, "server.port", 8080))
ONE_CASE(one_bool, otel_span_set_bool(span, "cache.hit", true))
ONE_CASE(one_double, otel_span_set_double(span, "cache.fill", 0.75))
ONE_CASE(one_string, otel_span_set_string(span, "url.path", "/api/users/12345"))
ONE_CASE(one_string_150,
         otel_span_set_string(span, "db.query.text", LETTERS_50 LETTERS_50 LETTERS_50))
ONE_CASE(one_string_300,
         otel_span_set_string(span, "db.query.text",
                              LETTERS_50 LETTERS_50 LETTERS_50 LETTERS_50 LETTERS_50 LETTERS_50))
ONE_CASE(one_string_utf8, otel_span_set_string(span, "url.path", "/caf\xc3\xa9/users/12345"))
ONE_CASE(one_key_again, otel_span_set_int(span, "server.port", 80);
         otel_span_set_int(span, "server.port", 8080))
ONE_CASE(one_status_ok, otel_span_set_status(span, OTEL_SPAN_STATUS_OK, NULL))
ONE_CASE(one_status_error, otel_span_set_status(span, OTEL_SPAN_STATUS_ERROR, "no such user"))
ONE_CASE(one_event, otel_span_add_event(span, "cache.miss", NULL, 0))
ONE_CASE(one_exception, otel_span_record_exception(span, "KeyError", "no such user", NULL, NULL, 0))

static void one_name_60(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        otel_span_end(otel_span_enter(tracer, LETTERS_50 "0123456789", NULL));
}

static void one_name_100(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        otel_span_end(otel_span_enter(tracer, LETTERS_50 LETTERS_50, NULL));
}

static void start_end(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const otel_span span = otel_span_start(tracer, "GET /users", NULL);
        otel_span_end(span);
    }
}

static void start_end_5attr(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const otel_span span = otel_span_start(tracer, "GET /users", NULL);
        bench_set_5_attributes(span);
        otel_span_end(span);
    }
}

static void attach_detach(uint64_t count)
{
    const otel_context context = otel_context_with_span(otel_current_context(), parents[0]);
    for (uint64_t i = 0; i < count; i++) {
        const otel_context_token token = otel_context_attach(context);
        (void)otel_context_detach(token);
    }
}

/* --- shapes of traces --- */

/* Each span inside the one before it. Not by recursion, so that the depth of our own stack
 * is not measured; a program keeps its handles somewhere, too. */
static BENCH_ONE_COPY void nested(uint64_t count, uint64_t depth)
{
    for (uint64_t done = 0; done < count; done += depth) {
        for (uint64_t i = 0; i < depth; i++)
            open_spans[i] = otel_span_enter(tracer, "GET /users", NULL);
        for (uint64_t i = depth; i > 0; i--)
            otel_span_end(open_spans[i - 1]);
    }
}

/* A root, and all others in it, one after another. */
static BENCH_ONE_COPY void sequential(uint64_t count, uint64_t length)
{
    for (uint64_t done = 0; done < count; done += length) {
        const otel_span root = otel_span_enter(tracer, "GET /users", NULL);
        for (uint64_t i = 1; i < length; i++) {
            const otel_span span = otel_span_enter(tracer, "GET /users", NULL);
            otel_span_end(span);
        }
        otel_span_end(root);
    }
}

#define SHAPES_OF(spans)                           \
    static void nested_##spans(uint64_t count)     \
    {                                              \
        nested(count, spans);                      \
    }                                              \
    static void sequential_##spans(uint64_t count) \
    {                                              \
        sequential(count, spans);                  \
    }
SHAPES_OF(1)
SHAPES_OF(10)
SHAPES_OF(100)
SHAPES_OF(1000)
SHAPES_OF(10000)

/* Most spans of a program are inside another one. */
static void enter_end_child(uint64_t count)
{
    sequential(count, 1 + CHILDREN);
}

/* A root that holds the spans below it back until its end, which decides. */
static inline otel_span enter_held(void)
{
    const otel_span root = otel_span_enter(tracer, "request", OTEL_SPAN_OPTIONS(.hold = true));
    enter_end(HELD - 1);
    return root;
}

static void held_kept(uint64_t count)
{
    for (uint64_t i = 0; i < count / HELD; i++)
        otel_span_end(enter_held());
}

static void held_cancelled(uint64_t count)
{
    for (uint64_t i = 0; i < count / HELD; i++)
        otel_span_cancel(enter_held());
}

/* Work that is done once for ten traces, and shown in each of them. */
static void lines_mount(uint64_t count)
{
    for (uint64_t i = 0; i < count / STRETCH; i++) {
        otel_lines_begin();
        sequential(STRETCH, STRETCH);
        otel_lines *work = otel_lines_end();
        otel_lines_mount(work, parents, PARENTS, NULL);
        otel_lines_free(work);
    }
}

const struct bench_case bench_cases[] = {
    {"two_tsc_reads", BENCH_NO_SDK, 1, two_tsc_reads, 0, 0, NULL},
    {"two_clock_gettime", BENCH_NO_SDK, 1, two_clock_gettime, 0, 0, NULL},
    {"enter_end", BENCH_SAMPLED, 1, enter_end, 1, 0, NULL},
    {"enter_end_child", BENCH_SAMPLED, 1 + CHILDREN, enter_end_child, 1, 0, NULL},
    {"enter_end_draining", BENCH_DRAINING, 1, enter_end, 1, 0, NULL},
    {"enter_end_kind", BENCH_SAMPLED, 1, enter_end_kind, 1, 0, NULL},
    {"enter_end_5attr", BENCH_SAMPLED, 1, enter_end_5attr, 1, 0, NULL},
    {"enter_end_5attr_mixed", BENCH_SAMPLED, 1, enter_end_5attr_mixed, 1, 0, NULL},
    {"enter_end_5attr_options", BENCH_SAMPLED, 1, enter_end_5attr_options, 1, 0, NULL},
    {"enter_end_remote", BENCH_SAMPLED, 1, enter_end_remote, 1, 0, NULL},
    {"enter_end_none_exporter", BENCH_NO_EXPORTER, 1, enter_end, 1, 0, NULL},
    {"http_server", BENCH_SAMPLED, 1, http_server, 1, 0, NULL},
    {"http_server_peer", BENCH_SAMPLED, 1, http_server_peer, 1, 0, NULL},
    {"http_server_by_hand", BENCH_SAMPLED, 1, http_server_by_hand, 1, 0, NULL},
    {"one_int", BENCH_SAMPLED, 1, one_int, 1, 0, NULL},
    {"one_bool", BENCH_SAMPLED, 1, one_bool, 1, 0, NULL},
    {"one_double", BENCH_SAMPLED, 1, one_double, 1, 0, NULL},
    {"one_string", BENCH_SAMPLED, 1, one_string, 1, 0, NULL},
    {"one_string_150", BENCH_SAMPLED, 1, one_string_150, 1, 0, NULL},
    {"one_string_300", BENCH_SAMPLED, 1, one_string_300, 1, 0, NULL},
    {"one_string_utf8", BENCH_SAMPLED, 1, one_string_utf8, 1, 0, NULL},
    {"one_key_again", BENCH_SAMPLED, 1, one_key_again, 1, 0, NULL},
    {"one_status_ok", BENCH_SAMPLED, 1, one_status_ok, 1, 0, NULL},
    {"one_status_error", BENCH_SAMPLED, 1, one_status_error, 1, 0, NULL},
    {"one_event", BENCH_SAMPLED, 1, one_event, 1, 0, NULL},
    {"one_exception", BENCH_SAMPLED, 1, one_exception, 1, 0, NULL},
    {"one_name_60", BENCH_SAMPLED, 1, one_name_60, 1, 0, NULL},
    {"one_name_100", BENCH_SAMPLED, 1, one_name_100, 1, 0, NULL},
    {"start_end", BENCH_SAMPLED, 1, start_end, 1, 0, NULL},
    {"start_end_5attr", BENCH_SAMPLED, 1, start_end_5attr, 1, 0, NULL},
    {"unsampled", BENCH_UNSAMPLED, 1, enter_end, 0, 0, NULL},
    {"unsampled_5attr", BENCH_UNSAMPLED, 1, enter_end_5attr, 0, 0, NULL},
    {"unsampled_ratio", BENCH_RATIO, 1, enter_end, 0, 0, NULL},
    {"unsampled_ratio_5attr_options", BENCH_RATIO, 1, enter_end_5attr_options, 0, 0, NULL},
    {"no_sdk", BENCH_NO_SDK, 1, enter_end, 0, 0, NULL},
    {"no_sdk_kind", BENCH_NO_SDK, 1, enter_end_kind, 0, 0, NULL},
    {"attach_detach", BENCH_SAMPLED, 1, attach_detach, 0, 0, NULL},
    {"held_kept", BENCH_SAMPLED, HELD, held_kept, 1, 0, NULL},
    {"held_cancelled", BENCH_SAMPLED, HELD, held_cancelled, 0, 1, NULL},
    {"lines_mount", BENCH_SAMPLED, STRETCH, lines_mount, PARENTS, 0, NULL},
    {"nested_1", BENCH_SAMPLED, 1, nested_1, 1, 0, "nested"},
    {"nested_10", BENCH_SAMPLED, 10, nested_10, 1, 0, "nested"},
    {"nested_100", BENCH_SAMPLED, 100, nested_100, 1, 0, "nested"},
    {"nested_1000", BENCH_SAMPLED, 1000, nested_1000, 1, 0, "nested"},
    {"nested_10000", BENCH_SAMPLED, 10000, nested_10000, 1, 0, "nested"},
    {"sequential_1", BENCH_SAMPLED, 1, sequential_1, 1, 0, "sequential"},
    {"sequential_10", BENCH_SAMPLED, 10, sequential_10, 1, 0, "sequential"},
    {"sequential_100", BENCH_SAMPLED, 100, sequential_100, 1, 0, "sequential"},
    {"sequential_1000", BENCH_SAMPLED, 1000, sequential_1000, 1, 0, "sequential"},
    {"sequential_10000", BENCH_SAMPLED, 10000, sequential_10000, 1, 0, "sequential"},
};
const size_t bench_case_count = sizeof bench_cases / sizeof *bench_cases;

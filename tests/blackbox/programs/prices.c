/* SPDX-License-Identifier: Apache-2.0 */
/* Makes spans in each of some forms, for callgrind to count the instructions of the thread that
 * makes them: those inside measured(), which returns ROUNDS times for each form.
 *
 *     prices ROUNDS SPANS batching|noop|simple FORM...
 *
 * noop adds a processor that does nothing; simple exports each span to an exporter of the program's
 * own, which does nothing, on the thread that ends it. All else comes from the environment. What
 * spans need has been allocated before they are counted. */
#include <otel/otel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef otel_span make_span(void);

static otel_tracer *tracer;

static otel_span plain(void)
{
    return otel_span_enter(tracer, "GET /users", NULL);
}

static otel_span with_kind(void)
{
    return otel_span_enter(tracer, "GET /users", OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_SERVER));
}

static otel_span started(void)
{
    return otel_span_start(tracer, "GET /users", NULL);
}

#define WITH(name, ...)                 \
    static otel_span name(void)         \
    {                                   \
        const otel_span span = plain(); \
        __VA_ARGS__;                    \
        return span;                    \
    }

static const char *const texts[] = {"GET", "PUT", "POST"};
static const int64_t integers[] = {1, 22, 333};
static const double reals[] = {0.1, 2.2, 33.3};
static const bool booleans[] = {true, false, true};

WITH(with_string, otel_span_set_string(span, "http.request.method", "GET"))
WITH(with_int, otel_span_set_int(span, "server.port", 8080))
WITH(with_double, otel_span_set_double(span, "share", 0.25))
WITH(with_bool, otel_span_set_bool(span, "cache.hit", true))
WITH(with_bytes, otel_span_set_bytes(span, "digest", "\1\2\3\4\5\6\7", 8))
WITH(with_strings, otel_span_set_string_array(span, "methods", texts, 3))
WITH(with_ints, otel_span_set_int_array(span, "ports", integers, 3))
WITH(with_doubles, otel_span_set_double_array(span, "shares", reals, 3))
WITH(with_bools, otel_span_set_bool_array(span, "hits", booleans, 3))

static otel_span with_map(void)
{
    const otel_attribute entries[] = {otel_attribute_of("method", otel_value_string("GET")),
                                      otel_attribute_of("port", otel_value_int(8080)),
                                      otel_attribute_of("hit", otel_value_bool(true))};
    const otel_span span = plain();
    otel_span_set_value(span, "request", otel_value_map(entries, 3));
    return span;
}

/* Each time with another of many tracers, which is asked for by its name. */
static otel_span with_tracer(void)
{
    enum { TRACERS = 2000 };
    static struct {
        char name[16];
        otel_tracer *tracer;
    } known[TRACERS];
    static size_t next;
    if (known[0].tracer == NULL)
        for (size_t i = 0; i < TRACERS; i++) {
            snprintf(known[i].name, sizeof known[i].name, "library %zu", i);
            known[i].tracer = otel_tracer_get(known[i].name, NULL);
        }
    otel_tracer *const got = otel_tracer_get(known[next].name, NULL);
    if (got != known[next].tracer)
        abort();
    next = (next + 1) % TRACERS;
    return otel_span_enter(got, "GET /users", NULL);
}

static const struct {
    const char *name;
    make_span *make;
} forms[] = {
    {"plain", plain},        {"kind", with_kind},       {"started", started},
    {"string", with_string}, {"int", with_int},         {"double", with_double},
    {"bool", with_bool},     {"bytes", with_bytes},     {"strings", with_strings},
    {"ints", with_ints},     {"doubles", with_doubles}, {"bools", with_bools},
    {"map", with_map},       {"tracer", with_tracer},
};

static void make_spans(make_span *make, long count)
{
    for (long i = 0; i < count; i++)
        otel_span_end(make());
}

__attribute__((noinline)) void measured(make_span *make, long count);
__attribute__((noinline)) void measured(make_span *make, long count)
{
    make_spans(make, count);
    __asm__ __volatile__("" ::: "memory"); /* no tail call: it is here that counting ends */
}

static otel_export_result forget(void *state, otel_export *call)
{
    (void)state;
    (void)call;
    return OTEL_EXPORT_DONE;
}

static void see_start(void *state, otel_span span, const otel_context *parent)
{
    (void)state;
    (void)span;
    (void)parent;
}

static void see_end(void *state, const otel_span_view *span)
{
    (void)state;
    (void)span;
}

static otel_status start(const char *processing)
{
    const otel_processor noop =
        OTEL_PROCESSOR(.name = "noop", .on_start = see_start, .on_end = see_end);
    const otel_exporter own = OTEL_EXPORTER(.name = "own", .export_batch = forget);
    if (strcmp(processing, "noop") == 0)
        return otel_start(OTEL_SDK_OPTIONS(.processors = &noop, .processor_count = 1));
    if (strcmp(processing, "simple") == 0)
        return otel_start(OTEL_SDK_OPTIONS(.exporters = &own, .exporter_count = 1, .simple = true));
    return otel_start(NULL);
}

int main(int count, char **arguments)
{
    if (count < 5 || start(arguments[3]) != OTEL_OK)
        return EXIT_FAILURE;
    const long rounds = strtol(arguments[1], NULL, 10);
    const long spans = strtol(arguments[2], NULL, 10);
    tracer = otel_tracer_get("prices", NULL);
    for (int i = 4; i < count; i++)
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
            if (strcmp(forms[k].name, arguments[i]) == 0) {
                make_spans(forms[k].make, rounds * spans);
                for (long round = 0; round < rounds; round++)
                    measured(forms[k].make, spans);
            }
    _exit(EXIT_SUCCESS); /* what is queued is nobody's concern */
}

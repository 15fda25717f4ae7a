/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/environment_test.c - what OTEL_* in the environment makes otel_start
 * do, seen on the wire, in the log and in the statistics. */
#include "tests/support/http_sink.h"

#include <otel/otel.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 60000, LOG_SIZE = 16384 };

static struct http_sink *sink;
static char log_text[LOG_SIZE]; /* what was logged in this case, line by line */

static void keep_line(void *state, otel_log_level level, const char *message)
{
    (void)state;
    if (level > OTEL_LOG_WARN)
        return;
    const size_t length = strlen(log_text);
    snprintf(log_text + length, sizeof log_text - length, "%s\n", message);
}

static void clear_environment(void)
{
    for (char **at = environ; *at != NULL;) {
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*at, "="), *at);
        if (strncmp(name, "OTEL_", 5) == 0 || strcasestr(name, "_proxy") != NULL) {
            unsetenv(name);
            at = environ;
        } else {
            at++;
        }
    }
}

static int setup(void **state)
{
    (void)state;
    clear_environment();
    setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000", 1); /* only a flush exports */
    log_text[0] = '\0';
    otel_log_set_handler(keep_line, NULL);
    sink = http_sink_start(NULL, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)!otel_shutdown(WAIT_MS);
    http_sink_stop(sink);
    otel_log_set_handler(NULL, NULL);
    return 0;
}

/* Set a variable to a text in which %u is the sink's port. */
static void set_variable(const char *name, const char *format)
{
    char port[8];
    char value[512];
    const char *place = strstr(format, "%u");
    snprintf(port, sizeof port, "%u", (unsigned)http_sink_port(sink));
    snprintf(value, sizeof value, "%.*s%s%s", place ? (int)(place - format) : (int)strlen(format),
             format, place ? port : "", place ? place + 2 : "");
    setenv(name, value, 1);
}

static void start(void)
{
    assert_int_equal(otel_start(NULL), OTEL_OK);
}

static void trace(size_t spans)
{
    otel_tracer *tracer = otel_tracer_get("environment_test", NULL);
    for (size_t i = 0; i < spans; i++)
        otel_span_end(otel_span_enter(tracer, "work", NULL));
}

/* Trace one span with what is in the environment; returns the one request it makes. */
static const struct http_sink_request *request_of_one_span(void)
{
    start();
    trace(1);
    assert_int_equal(otel_flush(WAIT_MS), OTEL_OK);
    assert_int_equal(http_sink_requests(sink), 1);
    return http_sink_request(sink, 0);
}

static void assert_request_line(const struct http_sink_request *request, const char *line)
{
    char got[256];
    snprintf(got, sizeof got, "%.*s", (int)strcspn(request->head, "\r"), request->head);
    assert_string_equal(got, line);
}

static void assert_header(const struct http_sink_request *request, const char *name,
                          const char *value)
{
    char got[256];
    assert_string_equal(http_sink_header(request, name, got, sizeof got), value);
}

static bool has_text(const struct http_sink_request *request, const char *text)
{
    return memmem(request->body, request->body_length, text, strlen(text)) != NULL;
}

static otel_stats statistics(size_t pipeline)
{
    otel_stats stats = {.size = sizeof stats};
    assert_int_equal(otel_stats_read(pipeline, &stats), OTEL_OK);
    return stats;
}

static void the_general_endpoint_is_a_base(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"http://127.0.0.1:%u", "POST /v1/traces HTTP/1.1"},
        {"http://127.0.0.1:%u/", "POST /v1/traces HTTP/1.1"},
        {"http://127.0.0.1:%u/my", "POST /my/v1/traces HTTP/1.1"},
        {"http://127.0.0.1:%u/my/", "POST /my/v1/traces HTTP/1.1"},
        {"HTTP://127.0.0.1:%u/my?key=1", "POST /my/v1/traces?key=1 HTTP/1.1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_variable("OTEL_EXPORTER_OTLP_ENDPOINT", cases[i][0]);
        start();
        trace(1);
        assert_int_equal(otel_shutdown(WAIT_MS), OTEL_OK);

        assert_int_equal(http_sink_requests(sink), i + 1);
        assert_request_line(http_sink_request(sink, i), cases[i][1]);
    }
}

static void the_endpoint_for_traces_is_used_as_it_is(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"http://127.0.0.1:%u/custom", "POST /custom HTTP/1.1"},
        {"http://127.0.0.1:%u/custom/", "POST /custom/ HTTP/1.1"},
        {"http://127.0.0.1:%u", "POST / HTTP/1.1"},
        {"http://127.0.0.1:%u/?a=b", "POST /?a=b HTTP/1.1"},
    };
    set_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1/wrong");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", cases[i][0]);
        start();
        trace(1);
        assert_int_equal(otel_shutdown(WAIT_MS), OTEL_OK);

        assert_int_equal(http_sink_requests(sink), i + 1);
        assert_request_line(http_sink_request(sink, i), cases[i][1]);
    }
}

static void an_empty_variable_is_unset(void **state)
{
    (void)state;
    set_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:%u");
    setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "", 1);
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "", 1);
    setenv("OTEL_TRACES_EXPORTER", "", 1);

    const struct http_sink_request *request = request_of_one_span();

    assert_request_line(request, "POST /v1/traces HTTP/1.1");
    assert_string_equal(log_text, "");
}

static void code_beats_the_environment(void **state)
{
    (void)state;
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u/code", (unsigned)http_sink_port(sink));
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", 1);
    setenv("OTEL_SERVICE_NAME", "from the environment", 1);

    assert_int_equal(otel_start(OTEL_SDK_OPTIONS(.exporter_otlp_endpoint = endpoint,
                                                 .service_name = "from code")),
                     OTEL_OK);
    trace(1);
    assert_int_equal(otel_flush(WAIT_MS), OTEL_OK);

    const struct http_sink_request *request = http_sink_request(sink, 0);
    assert_request_line(request, "POST /code/v1/traces HTTP/1.1");
    assert_true(has_text(request, "from code"));
    assert_false(has_text(request, "from the environment"));
}

static void what_every_request_says_about_itself(void **state)
{
    (void)state;
    char host[32];
    set_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:%u");
    snprintf(host, sizeof host, "127.0.0.1:%u", (unsigned)http_sink_port(sink));

    const struct http_sink_request *request = request_of_one_span();

    assert_header(request, "Host", host);
    assert_header(request, "User-Agent", "OTel-OTLP-Exporter-C/" OTEL_VERSION);
    assert_header(request, "Content-Type", "application/x-protobuf");
    assert_header(request, "Content-Encoding", "");
    assert_header(request, "Transfer-Encoding", "");
    assert_header(request, "Expect", "");
}

static void headers_are_trimmed_and_their_values_decoded(void **state)
{
    (void)state;
    set_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:%u");
    setenv("OTEL_EXPORTER_OTLP_HEADERS", " api-key = a%20b%2Cc+d ,x-two=%C3%A9,x%2Dthree=3", 1);

    const struct http_sink_request *request = request_of_one_span();

    assert_header(request, "api-key", "a b,c+d");
    assert_header(request, "x-two", "\xC3\xA9");
    assert_header(request, "x%2Dthree", "3");
}

static void headers_for_traces_replace_the_general_ones(void **state)
{
    (void)state;
    set_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:%u");
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-general=1,x-both=general", 1);
    setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-both=traces", 1);

    const struct http_sink_request *request = request_of_one_span();

    assert_header(request, "x-general", "");
    assert_header(request, "x-both", "traces");
}

static void a_bad_header_costs_only_itself_and_one_warning(void **state)
{
    (void)state;
    set_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:%u");
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-good=1,no equals sign,x-bad=line%0Abreak", 1);

    const struct http_sink_request *request = request_of_one_span();

    assert_header(request, "x-good", "1");
    assert_header(request, "x-bad", "");
    assert_non_null(strstr(log_text, "OTEL_EXPORTER_OTLP_HEADERS"));
    assert_null(strstr(log_text, "break")); /* a header may be a secret */
}

/* Run a function while stdout goes to a file; returns what came, to be freed. */
static char *stdout_of(void (*run)(void))
{
    fflush(stdout);
    FILE *file = tmpfile();
    const int saved = dup(STDOUT_FILENO);
    assert_true(file != NULL && saved >= 0);
    dup2(fileno(file), STDOUT_FILENO);
    run();
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    const long length = ftell(file) >= 0 ? (fseek(file, 0, SEEK_END), ftell(file)) : 0;
    char *text = calloc((size_t)length + 1, 1);
    rewind(file);
    assert_true(text != NULL && fread(text, 1, (size_t)length, file) == (size_t)length);
    fclose(file);
    return text;
}

static void start_trace_and_shut_down(void)
{
    start();
    trace(1);
    assert_int_equal(otel_shutdown(WAIT_MS), OTEL_OK);
}

static void several_exporters_each_get_every_span(void **state)
{
    (void)state;
    set_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:%u");
    setenv("OTEL_TRACES_EXPORTER", "otlp, console", 1);

    char *drawn = stdout_of(start_trace_and_shut_down);

    assert_int_equal(http_sink_requests(sink), 1);
    assert_non_null(strstr(drawn, "work"));
    assert_int_equal(statistics(0).delivered, 1);
    assert_int_equal(statistics(1).delivered, 1);
    free(drawn);
}

static void the_console_alone_sends_nothing(void **state)
{
    (void)state;
    set_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:%u");
    setenv("OTEL_TRACES_EXPORTER", "console", 1);

    char *drawn = stdout_of(start_trace_and_shut_down);

    assert_int_equal(http_sink_connections(sink), 0);
    assert_non_null(strstr(drawn, "work"));
    free(drawn);
}

static void no_exporter_means_no_pipeline(void **state)
{
    (void)state;
    set_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:%u");
    setenv("OTEL_TRACES_EXPORTER", "none", 1);

    char *drawn = stdout_of(start_trace_and_shut_down);

    otel_stats stats = {.size = sizeof stats};
    assert_int_equal(otel_stats_read(0, &stats), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(http_sink_connections(sink), 0);
    assert_string_equal(drawn, "");
    free(drawn);
}

static void keep_traceparent(void *carrier, const char *name, const char *value, size_t length)
{
    if (strcmp(name, "traceparent") == 0)
        snprintf(carrier, 64, "%.*s", (int)length, value);
}

static const char *give_traceparent(void *carrier, const char *name, size_t index, size_t *length)
{
    if (strcmp(name, "traceparent") != 0 || index != 0)
        return NULL;
    *length = strlen(carrier);
    return carrier;
}

static void a_disabled_sdk_still_propagates(void **state)
{
    (void)state;
    char in[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    char out[64] = "";
    set_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:%u");
    setenv("OTEL_SDK_DISABLED", "TRUE", 1);

    start();
    otel_context context = otel_extract(NULL, give_traceparent, in);
    const otel_context_token token = otel_context_attach(context);
    trace(3);
    otel_inject(NULL, keep_traceparent, out);
    otel_context_detach(token);

    assert_string_equal(out, in);
    assert_int_equal(otel_shutdown(WAIT_MS), OTEL_OK);
    assert_int_equal(http_sink_connections(sink), 0);
}

static void batches_have_the_size_that_was_asked_for(void **state)
{
    (void)state;
    set_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:%u");
    setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", " 2\t", 1);
    setenv("OTEL_SERVICE_NAME", "a service of its own", 1);

    start();
    trace(5);
    assert_int_equal(otel_flush(WAIT_MS), OTEL_OK);

    assert_int_equal(http_sink_requests(sink), 3);
    assert_int_equal(statistics(0).batches, 3);
    assert_true(has_text(http_sink_request(sink, 2), "a service of its own"));
}

static void a_sampler_that_takes_nothing(void **state)
{
    (void)state;
    set_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:%u");
    setenv("OTEL_TRACES_SAMPLER", "always_off", 1);

    start();
    trace(5);
    assert_int_equal(otel_flush(WAIT_MS), OTEL_OK);

    assert_int_equal(statistics(0).unsampled, 5);
    assert_int_equal(http_sink_connections(sink), 0);
}

static size_t lines_with(const char *text)
{
    size_t count = 0;
    for (const char *at = log_text; (at = strstr(at, text)) != NULL; at += strlen(text))
        count++;
    return count;
}

static void a_bad_value_is_one_warning_and_the_default(void **state)
{
    (void)state;
    static const struct {
        const char *variable, *value, *used;
    } cases[] = {
        {"OTEL_BSP_SCHEDULE_DELAY", "5s", "5000"},
        {"OTEL_BSP_SCHEDULE_DELAY", "-1", "5000"},
        {"OTEL_BSP_EXPORT_TIMEOUT", "forever", "30000"},
        {"OTEL_BSP_MAX_QUEUE_SIZE", "0", "2048"},
        {"OTEL_BSP_MAX_QUEUE_SIZE", "99999999999999999999", "2048"},
        {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "0x10", "512"},
        {"OTEL_EXPORTER_OTLP_TIMEOUT", "10.5", "10000"},
        {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1e3", "unset"},
        {"OTEL_ATTRIBUTE_COUNT_LIMIT", "many", "128"},
        {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many", "unset"},
        {"OTEL_C_QUEUE_MAX_BYTES", "1", "67108864"},
        {"OTEL_TRACES_SAMPLER", "sometimes", "parentbased_always_on"},
        {"OTEL_SDK_DISABLED", "1", "false"},
        {"OTEL_EXPORTER_OTLP_PROTOCOL", "http", "http/protobuf"},
        {"OTEL_EXPORTER_OTLP_COMPRESSION", "lzma", "none"},
        {"OTEL_TRACES_EXPORTER", "zipkin", "otlp"},
        {"OTEL_PROPAGATORS", "xray", "tracecontext"},
        {"OTEL_LOG_LEVEL", "loud", "info"},
        {"OTEL_C_CLOCK", "sundial", "auto"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "nowhere", "http://localhost:4318"},
        {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://host", "http://localhost:4318"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clear_environment();
        log_text[0] = '\0';
        setenv(cases[i].variable, cases[i].value, 1);
        start();
        assert_int_equal(otel_shutdown(WAIT_MS), OTEL_OK);

        if (lines_with(cases[i].variable) != 1 || lines_with("\n") != 1 ||
            strstr(log_text, cases[i].value) == NULL || strstr(log_text, cases[i].used) == NULL)
            fail_msg("%s=%s logs: %s", cases[i].variable, cases[i].value, log_text);
    }
}

static void a_bad_sampler_argument_is_the_whole(void **state)
{
    (void)state;
    set_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:%u");
    setenv("OTEL_TRACES_SAMPLER", "traceidratio", 1);
    setenv("OTEL_TRACES_SAMPLER_ARG", "1.5", 1);

    (void)request_of_one_span();

    assert_int_equal(lines_with("OTEL_TRACES_SAMPLER_ARG"), 1);
    assert_non_null(strstr(log_text, "1.5"));
}

static void bad_resource_attributes_are_left_out_whole(void **state)
{
    (void)state;
    set_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:%u");
    setenv("OTEL_RESOURCE_ATTRIBUTES", "good.one=yes,bad%zz=no", 1);

    const struct http_sink_request *request = request_of_one_span();

    assert_false(has_text(request, "good.one"));
    assert_int_equal(lines_with("OTEL_RESOURCE_ATTRIBUTES"), 1);
}

static void the_log_can_be_switched_off(void **state)
{
    (void)state;
    setenv("OTEL_BSP_MAX_QUEUE_SIZE", "none", 1);
    setenv("OTEL_LOG_LEVEL", "none", 1);

    start();

    assert_string_equal(log_text, "");
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_general_endpoint_is_a_base),
        CASE(the_endpoint_for_traces_is_used_as_it_is),
        CASE(an_empty_variable_is_unset),
        CASE(code_beats_the_environment),
        CASE(what_every_request_says_about_itself),
        CASE(headers_are_trimmed_and_their_values_decoded),
        CASE(headers_for_traces_replace_the_general_ones),
        CASE(a_bad_header_costs_only_itself_and_one_warning),
        CASE(several_exporters_each_get_every_span),
        CASE(the_console_alone_sends_nothing),
        CASE(no_exporter_means_no_pipeline),
        CASE(a_disabled_sdk_still_propagates),
        CASE(batches_have_the_size_that_was_asked_for),
        CASE(a_sampler_that_takes_nothing),
        CASE(a_bad_value_is_one_warning_and_the_default),
        CASE(a_bad_sampler_argument_is_the_whole),
        CASE(bad_resource_attributes_are_left_out_whole),
        CASE(the_log_can_be_switched_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

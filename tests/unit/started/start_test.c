/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/started/start_test.c - specification of exporters/otel_start.c: which exporters
 * otel_start makes, from environment and options. */
#include "common/config/configuration.h"
#include "sdk/engine/current_engine.h"
#include "sdk/lifecycle/lifecycle.h"

#include "tests/support/carrier.h"
#include "tests/support/fake_exporter.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <otel/http.h>
#include <otel/otel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOREVER_MS = INT32_MAX };

static struct fake_exporter fake;
static size_t warnings;

static void note(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)message;
    warnings += level == OTEL_LOG_WARN;
}

static int begin(void **state)
{
    (void)state;
    for (size_t i = 0; i < oteli_config_row_count; i++)
        unsetenv(oteli_config_rows[i].variable);
    memset(&fake, 0, sizeof fake);
    warnings = 0;
    otel_log_set_handler(note, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)!otel_shutdown(FOREVER_MS);
    oteli_lifecycle_reset();
    oteli_api_reset();
    otel_log_set_handler(NULL, NULL);
    return begin(state);
}

/* The names of the pipelines, with blanks between them. */
static const char *pipelines(void)
{
    static char text[256];
    text[0] = '\0';
    oteli_current_lock();
    const struct oteli_engine *engine = oteli_current.engine;
    for (size_t i = 0; engine != NULL && i < engine->pipeline_count; i++) {
        const size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%s", length != 0 ? " " : "",
                 engine->pipelines[i].exporter.name);
    }
    oteli_current_unlock();
    return text;
}

static otel_status start_with_fake(void)
{
    const otel_exporter exporter = fake_exporter(&fake);
    return otel_start(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1));
}

AROUND_EACH(begin, end);

/* spec: E-OTEL_TRACES_EXPORTER */
TEST(without_anything_it_is_otlp)
{
    assert_int_equal(otel_start(NULL), OTEL_OK);

    assert_string_equal(pipelines(), "otlp_http_span_exporter");
    assert_int_equal(warnings, 0);
}

/* spec: X20 */
/* spec: E-OTEL_TRACES_EXPORTER */
TEST(the_environment_chooses_the_exporters)
{
    static const struct {
        const char *value;
        const char *expected;
    } table[] = {
        {"otlp", "otlp_http_span_exporter"},
        {"console", "console_exporter"},
        {"console,otlp", "console_exporter otlp_http_span_exporter"},
        {"otlp,console", "otlp_http_span_exporter console_exporter"},
        {"none", ""},
        {" Console ", "console_exporter"},
        {"otlp/stdout", "otlp_stdout_exporter"},
        {"otlp/stdout,console,otlp",
         "otlp_stdout_exporter console_exporter otlp_http_span_exporter"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        setenv("OTEL_TRACES_EXPORTER", table[i].value, 1);
        assert_int_equal(otel_start(NULL), OTEL_OK);
        assert_string_equal(pipelines(), table[i].expected);
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    }
}

TEST(exporters_of_the_options_come_after_them)
{
    setenv("OTEL_TRACES_EXPORTER", "console", 1);

    assert_int_equal(start_with_fake(), OTEL_OK);

    assert_string_equal(pipelines(), "console_exporter fake_exporter");
}

TEST(the_environment_is_read_at_every_start)
{
    setenv("OTEL_TRACES_EXPORTER", "none", 1);
    setenv("OTEL_TRACES_SAMPLER", "always_off", 1);
    assert_int_equal(start_with_fake(), OTEL_OK);
    otel_span_end(otel_span_enter(otel_tracer_get("test", NULL), "a", NULL));
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    setenv("OTEL_TRACES_SAMPLER", "always_on", 1);
    assert_int_equal(start_with_fake(), OTEL_OK);
    otel_span_end(otel_span_enter(otel_tracer_get("test", NULL), "b", NULL));
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_string_equal(fake.text, "b|");
}

TEST(a_disabled_sdk_has_no_exporters)
{
    setenv("OTEL_SDK_DISABLED", "true", 1);

    assert_int_equal(start_with_fake(), OTEL_OK);
    assert_int_equal(fake.frees, 1);
    otel_span_end(otel_span_enter(otel_tracer_get("test", NULL), "a", NULL));
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_int_equal(fake.batches, 0);
}

/* spec: E-OTEL_SDK_DISABLED configuration/sdk-environment-variables.md#general-sdk-configuration
 * MUST stable */
TEST(contexts_travel_through_a_disabled_sdk_in_the_format_that_was_chosen)
{
    static const char b3[] = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1";
    static struct carrier in, out;
    setenv("OTEL_SDK_DISABLED", "true", 1);
    setenv("OTEL_PROPAGATORS", "b3", 1);
    carrier_add(&in, "b3", b3);
    assert_int_equal(start_with_fake(), OTEL_OK);

    const otel_propagator *chosen = otel_propagator_get();
    const otel_context current = otel_current_context();
    const otel_context parent = otel_propagator_extract(chosen, &current, carrier_get, &in);
    otel_span span =
        otel_span_start(otel_tracer_get("test", NULL), "a", OTEL_SPAN_OPTIONS(.parent = &parent));
    const otel_context context = otel_context_with_span(parent, span);
    otel_propagator_inject(chosen, &context, carrier_set, &out);
    otel_span_end(span);

    assert_false(otel_span_is_recording(span));
    assert_string_equal(carrier_sent(&out, "b3"), b3);
    assert_null(carrier_sent(&out, "traceparent"));
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    assert_int_equal(fake.batches, 0);
}

static void serve(const char *method, const char *known_methods)
{
    const otel_span span =
        otel_http_server_enter(otel_tracer_get("test", NULL), method, "/",
                               OTEL_HTTP_OPTIONS(.known_methods = known_methods));
    otel_http_server_end(span, 200, NULL);
}

TEST(the_environment_says_which_http_methods_are_known)
{
    serve("PURGE", NULL); /* which needs no SDK */
    setenv("OTEL_TRACES_EXPORTER", "none", 1);
    setenv("OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS", "PURGE, GET", 1);
    assert_int_equal(start_with_fake(), OTEL_OK);
    serve("PURGE", NULL);
    serve("GET", NULL);
    serve("POST", NULL);
    serve("POST", "POST"); /* code beats it */
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    assert_string_equal(fake.text, "PURGE GET HTTP POST|");

    for (int i = 0; i < 2; i++) { /* the second time with a list that is known already */
        unsetenv("OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS");
        fake = (struct fake_exporter){.name = NULL};
        assert_int_equal(start_with_fake(), OTEL_OK);
        serve("PURGE", NULL);
        serve("POST", NULL);
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
        assert_string_equal(fake.text, "HTTP POST|");

        setenv("OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS", "PURGE, GET", 1);
        fake = (struct fake_exporter){.name = NULL};
        assert_int_equal(start_with_fake(), OTEL_OK);
        serve("PURGE", NULL);
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
        assert_string_equal(fake.text, "PURGE|");
    }
}

TEST(a_start_while_running_frees_the_exporters_it_got)
{
    setenv("OTEL_TRACES_EXPORTER", "console", 1);
    assert_int_equal(otel_start(NULL), OTEL_OK);

    assert_int_equal(start_with_fake(), OTEL_ERROR_ALREADY_STARTED);

    assert_int_equal(fake.frees, 1);
    assert_string_equal(pipelines(), "console_exporter");
}

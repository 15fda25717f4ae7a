/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/fork_test.c - specification of what a forked child finds:
 * sdk/lifecycle/engine_life.h, and what sdk/lifecycle/lifecycle.c does in it before and with its
 * first span. */
#include "sdk/engine/engine.h"
#include "sdk/lifecycle/lifecycle.h"
#include "tests/support/fake_exporter.h"
#include "tests/support/traced.h"
#include "tests/support/unit.h"

#include <string.h>
#include <unistd.h>

static struct fake_exporter parents, childs; /* in each process its own copy */
static bool cannot_be_renewed;
static otel_tracer *tracer;

static otel_status renew(const void *state, otel_exporter *renewed)
{
    if (state != &parents || cannot_be_renewed)
        return OTEL_ERROR_SYSTEM;
    childs = (struct fake_exporter){.name = "the child's"};
    *renewed = fake_exporter(&childs);
    return OTEL_OK;
}

static const char *keeps_errors; /* alone */

static void start(bool is_renewable)
{
    parents = (struct fake_exporter){.name = "the parent's"};
    childs = (struct fake_exporter){0};
    cannot_be_renewed = false;
    otel_exporter exporters[] = {fake_exporter(&parents)};
    exporters[0].renew = is_renewable ? renew : NULL;
    assert_int_equal(
        otel_start_with(OTEL_SDK_OPTIONS(.exporters = exporters, .exporter_count = 1,
                                         .service_name = "fork", .clock = "monotonic",
                                         .tail_keep_errors = keeps_errors, .log_level = "none")),
        OTEL_OK);
    assert_int_equal(otel_flush(60000), OTEL_OK); /* its thread has settled down */
    tracer = otel_tracer_get("fork", NULL);
}

static int set_up(void **state)
{
    (void)state;
    start(true);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)!otel_shutdown(60000);
    oteli_lifecycle_reset();
    keeps_errors = NULL;
    return 0;
}

static void touch(const char *name)
{
    otel_span_end(otel_span_enter(tracer, name, NULL));
}

static otel_stats stats_now(void)
{
    otel_stats stats = {.size = sizeof stats};
    if (otel_stats_read(0, &stats) != OTEL_OK)
        stats.started = UINT64_MAX;
    return stats;
}

static int trace_by_itself(void)
{
    touch("first");
    touch("second");
    if (otel_shutdown(60000) != OTEL_OK)
        return 1;
    const otel_stats stats = stats_now();
    return strcmp(childs.text, "first second|") != 0 || parents.batches != 0 ||
           stats.delivered != 2 || stats.started != 2;
}

AROUND_EACH(set_up, tear_down);

/* spec: P14 */
TEST(a_child_exports_its_own_spans_and_nothing_of_its_parents)
{
    touch("before");
    check_child(trace_by_itself);
    touch("after");
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    assert_int_equal(parents.spans, 2);
    assert_int_equal(stats_now().delivered, 2);
}

static int ask_before_the_first_span(void)
{
    const otel_stats stats = stats_now();
    otel_stats other = {.size = sizeof other};
    if (otel_flush(0) != OTEL_OK || stats.started != 0 || stats.delivered != 0)
        return 1;
    if (otel_stats_read(1, &other) != OTEL_ERROR_INVALID_ARGUMENT)
        return 2;
    if (otel_shutdown(0) != OTEL_OK)
        return 3;
    if (otel_shutdown(0) != OTEL_ERROR_NOT_STARTED)
        return 4;
    touch("too late");
    return otel_tracer_enabled(tracer) || childs.batches != 0;
}

TEST(a_child_that_shuts_down_first_never_has_a_thread)
{
    touch("before");
    check_child(ask_before_the_first_span);
}

static int trace_in_vain(void)
{
    touch("a");
    touch("b");
    if (otel_flush(60000) != OTEL_ERROR_EXPORT_FAILED)
        return 1;
    const otel_stats stats = stats_now();
    return stats.dropped[OTEL_DROP_FORKED_CHILD] != 2 || stats.delivered != 0 ||
           parents.batches != 0;
}

TEST(what_cannot_be_renewed_drops_what_the_child_exports)
{
    cannot_be_renewed = true;
    check_child(trace_in_vain);
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    start(false);
    check_child(trace_in_vain);
}

static int fail_at_times(void)
{
    touch("fine");
    const otel_span failed = otel_span_enter(tracer, "failed", NULL);
    otel_span_fail(failed, "why");
    otel_span_end(failed);
    return otel_flush(60000) != OTEL_OK || strcmp(childs.text, "failed|") != 0;
}

TEST(a_child_keeps_the_traces_that_its_parent_keeps)
{
    (void)tear_down(NULL);
    keeps_errors = "true";
    start(true);
    check_child(fail_at_times);
}

static otel_span local;

static int use_tracestate(void)
{
    char text[32];
    const otel_span_context current = otel_span_get_context(otel_current_span());
    for (int i = 0; i < 10000; i++)
        (void)otel_span_context_make((const uint8_t[16]){3}, (const uint8_t[8]){4}, 1, true, "k=v");
    if (otel_span_context_tracestate(&current, text, sizeof text) != 9 ||
        strcmp(text, "held=open") != 0)
        return 1;
    otel_span_end(local);
    return 0;
}

TEST(the_tracestate_of_the_context_goes_on)
{
    const otel_span_context remote =
        otel_span_context_make((const uint8_t[16]){1}, (const uint8_t[8]){2}, 1, true, "held=open");
    const otel_context parent = {.span = otel_span_wrap(&remote)};
    local = otel_span_enter(tracer, "local", OTEL_SPAN_OPTIONS(.parent = &parent));
    check_child(use_tracestate);
    otel_span_end(local);
}

static struct oteli_resource resource;

static bool has_pid(const struct oteli_resource *of, int64_t pid)
{
    bool found = false;
    otel_slice rest = {of->otlp, of->otlp_length};
    otel_attribute_view attribute;
    while (otel_attribute_next(&rest, OTEL_FIELD_RESOURCE_ATTRIBUTE, &attribute))
        if (attribute.key.length == 11 && memcmp(attribute.key.data, "process.pid", 11) == 0)
            found = attribute.value.integer == pid;
    return found;
}

static int renew_resource(void)
{
    struct oteli_resource renewed;
    return oteli_resource_renew(&renewed, &resource) != OTEL_OK || !has_pid(&renewed, getpid());
}

/* spec: R6 semconv/resource/service.md MUST stable */
TEST_WITH(NULL, NULL, the_resource_of_a_child_has_its_pid)
{
    struct oteli_config config;
    assert_int_equal(oteli_config_load(&config, NULL, false), OTEL_OK);
    assert_int_equal(oteli_resource_init(&resource, &config, NULL, 0), OTEL_OK);
    assert_true(has_pid(&resource, getpid()));
    check_child(renew_resource);
    oteli_resource_fini(&resource);
    oteli_config_fini(&config);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/propagate_environment_test.c - specification of environment variables as a
 * carrier. */
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <otel/baggage.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static otel_composite_propagator w3c;

static int begin(void **state)
{
    const otel_propagator *const parts[] = {otel_propagator_trace_context(),
                                            otel_propagator_baggage()};
    otel_propagator_set(otel_propagator_compose(&w3c, parts, 2));
    return recorder_setup_without_sdk(state);
}

static int end(void **state)
{
    otel_propagator_set(NULL);
    return recorder_teardown(state);
}

static const char *read_variable(const char *const *environment, const char *header)
{
    size_t length = 0;
    const char *value = otel_environment_get((void *)(uintptr_t)environment, header, 0, &length);
    if (value != NULL)
        assert_int_equal(strlen(value), length);
    return value;
}

/* All variables, with a bar behind each. */
static const char *joined(char **environment)
{
    static char text[4096];
    size_t at = 0;
    text[0] = '\0';
    for (; *environment != NULL; environment++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s|", *environment);
    return text;
}

static otel_context parent_with(const char *tracestate)
{
    const uint8_t trace_id[16] = {0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd,
                                  0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c};
    const uint8_t span_id[8] = {0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31};
    const otel_span_context span =
        otel_span_context_make(trace_id, span_id, OTEL_TRACE_FLAG_SAMPLED, true, tracestate);
    return otel_context_with_span((otel_context){0}, otel_span_wrap(&span));
}

AROUND_EACH(begin, end);

/* spec: C15 context/env-carriers.md#key-name-normalization MUST development */
TEST(C15_get_normalizes_the_key)
{
    static const char *const environment[] = {"traceparent=lower",
                                              "x-b3-traceid=as it was",
                                              "TRACEPARENT=upper",
                                              "TRACEPARENT=second",
                                              "X_B3_TRACEID=b3",
                                              "_=empty",
                                              "_9A=digit",
                                              "9A=other",
                                              "EMPTY=",
                                              "NOVALUE",
                                              "A_B=",
                                              NULL};
    assert_string_equal(read_variable(environment, "traceparent"), "upper");
    assert_string_equal(read_variable(environment, "TraceParent"), "upper");
    assert_string_equal(read_variable(environment, "x-b3-traceid"), "b3");
    assert_string_equal(read_variable(environment, ""), "empty");
    assert_string_equal(read_variable(environment, "9a"), "digit");
    assert_string_equal(read_variable(environment, "empty"), "");
    assert_string_equal(read_variable(environment, "a\xc3"
                                                   "b"),
                        "");
    assert_null(read_variable(environment, "novalue"));
    assert_null(read_variable(environment, "trace"));
    assert_null(read_variable(environment, "traceparents"));
    size_t length;
    assert_null(otel_environment_get((void *)(uintptr_t)environment, "traceparent", 1, &length));
}

static void list_name(void *text, const char *name, size_t length)
{
    const size_t at = strlen(text);
    snprintf((char *)text + at, 200 - at, "%.*s ", (int)length, name);
}

/* spec: C15 context/env-carriers.md#key-name-normalization MUST development */
TEST(C15_keys_are_those_that_are_normalized)
{
    static const char *const environment[] = {
        "TRACEPARENT=1", "traceparent=2", "A-B=3", "9A=4", "=5",
        "NOVALUE",       "_9A=6",         "A.B=7", "X_1=", NULL};
    char text[200] = "";
    otel_environment_list((void *)(uintptr_t)environment, list_name, text);
    assert_string_equal(text, "TRACEPARENT _9A X_1 ");
}

/* spec: C15 context/env-carriers.md#propagator-mechanisms MUST development */
TEST(C15_a_process_knows_what_it_was_started_in)
{
    setenv("TRAJECTORYS", PARENT "0", 1);
    setenv("TRACEPARENT", PARENT, 1);
    setenv("TRACESTATE", "k=v", 1);
    setenv("BAGGAGE", "user=alice", 1);
    const otel_context context = otel_extract_environment(NULL);
    unsetenv("TRACEPARENT");
    unsetenv("TRACESTATE");
    unsetenv("BAGGAGE");

    char hex[33];
    char text[20];
    const otel_span_context span = otel_span_get_context(context.span);
    otel_trace_id_hex(&span, hex);
    assert_string_equal(hex, "0af7651916cd43dd8448eb211c80319c");
    assert_true(span.is_remote);
    otel_span_context_tracestate(&span, text, sizeof text);
    assert_string_equal(text, "k=v");
    otel_baggage_get(otel_context_baggage(&context), "user", text, sizeof text);
    assert_string_equal(text, "alice");
    const otel_context none = otel_extract_environment(NULL);
    assert_true(none.span.opaque[2] == 0);
}

/* spec: C15 context/env-carriers.md#key-name-normalization MUST development */
TEST(C15_a_child_gets_the_variables_of_the_context)
{
    static const char *const environment[] = {
        "PATH=/bin",   "TRACEPARENT=old", "traceparent=kept",  "TRACESTATE=old",
        "BAGGAGE=old", "NOVALUE",         "TRACEPARENTS=kept", NULL};
    const otel_context context = parent_with(NULL);
    char **child = otel_environment_for_child(&context, environment);
    assert_string_equal(joined(child),
                        "PATH=/bin|traceparent=kept|NOVALUE|TRACEPARENTS=kept|TRACEPARENT=" PARENT
                        "|");
    free(child);

    const otel_context with_all = otel_context_with_baggage(
        parent_with("k=v"), otel_baggage_set((otel_baggage){0}, "a", "1", NULL));
    static const char *const empty[] = {NULL};
    child = otel_environment_for_child(&with_all, empty);
    assert_string_equal(joined(child), "TRACEPARENT=" PARENT "|TRACESTATE=k=v|BAGGAGE=a=1|");
    free(child);

    const otel_context nothing = {0};
    child = otel_environment_for_child(&nothing, environment);
    assert_string_equal(joined(child), "PATH=/bin|traceparent=kept|NOVALUE|TRACEPARENTS=kept|");
    free(child);
}

/* spec: C15 context/env-carriers.md#operational-guidance SHOULD development */
TEST(C15_the_process_keeps_its_own_environment)
{
    setenv("TRACEPARENT", "mine", 1);
    const otel_context context = parent_with(NULL);
    char **child = otel_environment_for_child(&context, NULL);
    assert_string_equal(read_variable((const char *const *)child, "traceparent"), PARENT);
    assert_non_null(read_variable((const char *const *)child, "path"));
    assert_string_equal(getenv("TRACEPARENT"), "mine");
    unsetenv("TRACEPARENT");
    free(child);
}

/* A propagator of somebody else's, with names and values of its own. */
static void inject_odd(const void *state, const otel_context *context, otel_set_header *set,
                       void *carrier)
{
    (void)state;
    (void)context;
    set(carrier, "x-Odd.Name", "first", 5);
    set(carrier, "x-odd-name", " =%\xff", 4);
    set(carrier, "1st", "", 0);
    set(carrier, "", "nameless", 8);
}

/* spec: C15 context/env-carriers.md#propagator-mechanisms MUST development */
TEST(C15_values_are_opaque_and_keys_normalized_when_set)
{
    static const otel_propagator odd = OTEL_PROPAGATOR(.name = "odd", .inject = inject_odd);
    static const char *const environment[] = {"X_ODD_NAME=old", "_1ST=old", "_=/bin/env", NULL};
    otel_propagator_set(&odd);
    char **child = otel_environment_for_child(NULL, environment);
    assert_string_equal(joined(child), "X_ODD_NAME= =%\xff|_1ST=|_=nameless|");
    free(child);
}

TEST(without_memory_there_is_no_environment)
{
    static const char *const environment[] = {"PATH=/bin", NULL};
    const otel_context context = parent_with(NULL);
    for (size_t nth = 1;; nth++) {
        oteli_leaks_fail_at(nth);
        char **child = otel_environment_for_child(&context, environment);
        const bool failed = oteli_leaks_failed();
        assert_int_equal(child == NULL, failed);
        free(child);
        if (!failed)
            break;
    }
    oteli_leaks_fail_at(0);
}

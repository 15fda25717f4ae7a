/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of every shape, for shapes_test.py, which says what must come of each:
 *
 *     shapes CASE...      values, texts, spans, deep or limits */
#include <math.h>
#include <otel/otel.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 40, HUGE_BYTES = 1 << 20 };

static const uint8_t trace_id[16] = {0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const uint8_t span_id[8] = {0x20, 1, 2, 3, 4, 5, 6, 7};
static otel_tracer *tracer;

static otel_span start(const char *name)
{
    return otel_span_start(tracer, name, OTEL_SPAN_OPTIONS(.root = true));
}

static void values(void)
{
    static const char *const strings[] = {"", "two", NULL};
    static const bool booleans[] = {true, false};
    static const int64_t integers[] = {INT64_MIN, 0, INT64_MAX};
    static const double reals[] = {0.5, -0.0, INFINITY};
    const otel_attribute inner[] = {otel_attribute_of("in", otel_value_int(1)),
                                    otel_attribute_of("none", otel_value_empty()),
                                    otel_attribute_of("in", otel_value_string("last"))};
    const otel_value mixed[] = {otel_value_int(1), otel_value_map(inner, 3),
                                otel_value_bool_array(booleans, 2)};
    const otel_span span = start("values");
    otel_span_set_value(span, "empty", otel_value_empty());
    otel_span_set_string(span, "string", "text");
    otel_span_set_bool(span, "true", true);
    otel_span_set_bool(span, "false", false);
    otel_span_set_int(span, "least", INT64_MIN);
    otel_span_set_int(span, "most", INT64_MAX);
    otel_span_set_double(span, "zero", -0.0);
    otel_span_set_double(span, "infinite", -INFINITY);
    otel_span_set_double(span, "nan", NAN);
    otel_span_set_bytes(span, "bytes", "\0\377", 2);
    otel_span_set_bytes(span, "no bytes", "", 0);
    otel_span_set_string_array(span, "strings", strings, 3);
    otel_span_set_bool_array(span, "booleans", booleans, 2);
    otel_span_set_int_array(span, "integers", integers, 3);
    otel_span_set_double_array(span, "reals", reals, 3);
    otel_span_set_int_array(span, "no integers", integers, 0);
    otel_span_set_value(span, "mixed", otel_value_array(mixed, 3));
    otel_span_set_value(span, "map", otel_value_map(inner, 3));
    otel_span_set_value(span, "no entries", otel_value_map(inner, 0));
    otel_span_set_int(span, "twice", 1);
    otel_span_set_int(span, "twice", 2);
    otel_span_end(span);
}

static void texts(void)
{
    char *huge = malloc(HUGE_BYTES);
    memset(huge, 'x', HUGE_BYTES);
    const otel_span span = start("a\xff"
                                 "b");
    otel_span_set_string(span, "", "no key");
    otel_span_set_string(span, "empty", "");
    otel_span_set_string(span, "null", NULL);
    otel_span_set_string(span, "invalid",
                         "a\xff"
                         "b");
    otel_span_set_string(span, "surrogate", "\xed\xa0\x80");
    otel_span_set_string(span, "key \xff", "v");
    otel_span_set_string(span, "utf-8", "\xe2\x82\xac \xf0\x9f\x98\x80");
    otel_span_set_value(span, "nul", otel_value_string_n("a\0b", 3));
    otel_span_set_value(span, "huge", otel_value_string_n(huge, HUGE_BYTES));
    otel_span_add_event_at(span, "", 1, NULL, 0);
    otel_span_add_event_at(span, "\xff", 2, NULL, 0);
    otel_span_set_status(span, OTEL_SPAN_STATUS_ERROR, "bad \xff");
    otel_span_end(span);
    free(huge);
}

static void links_and_events(const otel_span_context *remote)
{
    const otel_attribute attribute = otel_attribute_of("of", otel_value_string("it"));
    const otel_link link = {*remote, &attribute, 1};
    const otel_span span = start("describes");
    otel_span_add_event_at(span, "event", 1000, &attribute, 1);
    otel_span_add_event_at(span, "last", UINT64_C(4000000000000000000), NULL, 0);
    otel_span_add_link(span, &link);
    otel_span_set_status(span, OTEL_SPAN_STATUS_ERROR, "because");
    otel_span_update_name(span, "described");
    otel_span_end(span);
}

static void spans(void)
{
    const otel_span_context remote =
        otel_span_context_make(trace_id, span_id, OTEL_TRACE_FLAG_SAMPLED, true, "a=1,b=2");
    const otel_context parent = {.span = otel_span_wrap(&remote)};
    const otel_attribute of_scope = otel_attribute_of("module", otel_value_string("cart"));
    otel_tracer *const scoped =
        otel_tracer_get_with("shapes.scoped", NULL,
                             OTEL_TRACER_OPTIONS(.schema_url = "https://example.com/scope",
                                                 .attributes = &of_scope, .attribute_count = 1));
    for (int kind = OTEL_SPAN_KIND_INTERNAL; kind <= OTEL_SPAN_KIND_CONSUMER; kind++) {
        const otel_span span = otel_span_start(
            scoped, "kind",
            OTEL_SPAN_OPTIONS(.kind = (otel_span_kind)kind, .parent = &parent, .start_ns = 5));
        otel_span_end_at(span, 7);
    }
    links_and_events(&remote);
    const otel_span fine = start("fine");
    otel_span_set_status(fine, OTEL_SPAN_STATUS_OK, NULL);
    otel_span_end(fine);
}

/* `depth` arrays or maps in one another, with a number at the bottom. */
static otel_value nest(int depth, bool as_maps)
{
    static otel_value levels[2][DEEPEST + 1];
    static otel_attribute entries[DEEPEST + 1];
    otel_value *const level = levels[as_maps];
    level[0] = otel_value_int(7);
    for (int i = 1; i <= depth; i++) {
        entries[i] = otel_attribute_of("k", level[i - 1]);
        level[i] = as_maps ? otel_value_map(&entries[i], 1) : otel_value_array(&level[i - 1], 1);
    }
    return level[depth];
}

/* Twenty plain spans, and in the same requests those with deep values. */
static void deep(void)
{
    const otel_span_context other = otel_span_context_make(trace_id, span_id, 0, false, NULL);
    for (int depth = DEEPEST; depth > 28; depth -= depth > 33 ? 7 : 1) {
        const otel_attribute pair[] = {otel_attribute_of("maps", nest(depth, true)),
                                       otel_attribute_of("arrays", nest(depth, false))};
        const otel_link link = {other, pair, 2};
        otel_tracer *const scoped = otel_tracer_get_with(
            "deep", NULL, OTEL_TRACER_OPTIONS(.attributes = pair, .attribute_count = 2));
        char name[16];
        snprintf(name, sizeof name, "deep %d", depth);
        const otel_span span = otel_span_start(
            scoped, name,
            OTEL_SPAN_OPTIONS(.root = true, .attributes = pair, .attribute_count = 2));
        otel_span_add_event(span, "event", pair, 2);
        otel_span_add_link(span, &link);
        otel_span_end(span);
        for (int i = 0; i < 4; i++)
            otel_span_end(start("plain"));
    }
}

/* More than each limit that the environment sets. */
static void limits(void)
{
    const otel_attribute pairs[] = {otel_attribute_of("a", otel_value_string("12345")),
                                    otel_attribute_of("b", otel_value_bytes("12345", 5)),
                                    otel_attribute_of("c", otel_value_int(3))};
    const otel_span_context other = otel_span_context_make(trace_id, span_id, 0, false, NULL);
    const otel_link link = {other, pairs, 3};
    const otel_span span = start("limits");
    for (int i = 0; i < 3; i++) {
        otel_span_set_value(span, pairs[i].key, pairs[i].value);
        otel_span_add_event_at(span, "event", 9, pairs, 3);
        otel_span_add_link(span, &link);
    }
    otel_span_end(span);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*make)(void);
    } cases[] = {
        {"values", values}, {"texts", texts}, {"spans", spans}, {"deep", deep}, {"limits", limits}};
    const otel_attribute deep_one = otel_attribute_of("deep", nest(DEEPEST, true));
    if (otel_start(OTEL_SDK_OPTIONS(.resource = &deep_one, .resource_count = 1,
                                    .resource_detectors = "none",
                                    .resource_schema_url = "https://example.com/resource")) !=
        OTEL_OK)
        return 1;
    tracer = otel_tracer_get("shapes", "1.0");
    for (int i = 1; i < count; i++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
            if (strcmp(arguments[i], cases[k].name) == 0)
                cases[k].make();
    return otel_shutdown(60000) != OTEL_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* context_test.c - what is current inside a span that was entered in a context of its own. */
#include "blackbox.h"
#include <otel/fibre.h>

#include <sys/wait.h>
#include <unistd.h>

/* Headers of one request: names and values by turns. */
struct headers {
    char text[8][256];
    size_t count;
};

static const char *get(void *carrier, const char *name, size_t index, size_t *length)
{
    const struct headers *headers = carrier;
    for (size_t i = 0; i < headers->count; i += 2)
        if (strcmp(headers->text[i], name) == 0 && index-- == 0) {
            *length = strlen(headers->text[i + 1]);
            return headers->text[i + 1];
        }
    return NULL;
}

static void set(void *carrier, const char *name, const char *value, size_t length)
{
    struct headers *headers = carrier;
    strcpy(headers->text[headers->count++], name);
    memcpy(headers->text[headers->count], value, length);
    headers->text[headers->count++][length] = '\0';
}

static const otel_propagator *usual(void)
{
    static otel_composite_propagator composite;
    return otel_propagator_compose(
        &composite,
        (const otel_propagator *[]){otel_propagator_trace_context(), otel_propagator_baggage()}, 2);
}

/* A request as another process sends it; `traceparent` may be NULL. */
static otel_context arrive(const char *traceparent, const char *baggage)
{
    struct headers headers = {.count = 0};
    if (traceparent != NULL)
        set(&headers, "traceparent", traceparent, strlen(traceparent));
    set(&headers, "baggage", baggage, strlen(baggage));
    return otel_propagator_extract(usual(), NULL, get, &headers);
}

#define PARENT(flags) "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-" flags

/* The baggage that a request sends which is made now. */
static const char *sent(void)
{
    static struct headers headers;
    headers.count = 0;
    otel_propagator_inject(usual(), NULL, set, &headers);
    size_t length;
    const char *text = get(&headers, "baggage", 0, &length);
    return text != NULL ? text : "";
}

static otel_tracer *tracer(void)
{
    return otel_tracer_get("context_test", NULL);
}

static otel_span enter(const otel_context *parent)
{
    return otel_span_enter(tracer(), "s", OTEL_SPAN_OPTIONS(.parent = parent));
}

static void test_an_entered_span_makes_the_baggage_of_its_parent_current(void **state)
{
    (void)state;
    static const char *const parents[] = {PARENT("01"), PARENT("00"), NULL};
    for (size_t i = 0; i < 3; i++) {
        const otel_context request = arrive(parents[i], "user=alice");
        const otel_span server = enter(&request);
        assert_string_equal(sent(), "user=alice");
        const otel_span client = otel_span_enter(tracer(), "c", NULL);
        assert_string_equal(sent(), "user=alice");
        otel_span_end(client);
        otel_span_end(server);
        assert_string_equal(sent(), "");
        assert_int_equal(otel_current_span().opaque[2], 0);
    }
}

static void test_a_parent_without_baggage_has_none(void **state)
{
    (void)state;
    const otel_context outer = arrive(PARENT("01"), "user=alice");
    const otel_context none = otel_context_with_baggage(outer, otel_baggage_none());
    const otel_context_token token = otel_context_attach(outer);
    const otel_span span = enter(&none);
    assert_string_equal(sent(), "");
    otel_span_end(span);
    assert_string_equal(sent(), "user=alice");
    assert_true(otel_context_detach(token));
    assert_string_equal(sent(), "");
}

static void test_a_root_has_what_was_current(void **state)
{
    (void)state;
    const otel_context outer = arrive(PARENT("01"), "user=alice");
    const otel_context other = arrive(PARENT("01"), "user=bob");
    const otel_context_token token = otel_context_attach(outer);
    const otel_span root =
        otel_span_enter(tracer(), "r", OTEL_SPAN_OPTIONS(.root = true, .parent = &other));
    assert_string_equal(sent(), "user=alice");
    otel_span_end(root);
    assert_true(otel_context_detach(token));
}

static void test_values_are_current_too(void **state)
{
    (void)state;
    const otel_context_key key = otel_context_create_key("test");
    otel_context_value place;
    int thing = 0;
    const otel_context with =
        otel_context_with_value(arrive(PARENT("01"), "a=1"), key, &thing, &place);
    const otel_span span = enter(&with);
    const otel_context inside = otel_current_context();
    assert_ptr_equal(otel_context_get_value(&inside, key), &thing);
    otel_span_end(span);
    const otel_context outside = otel_current_context();
    assert_null(otel_context_get_value(&outside, key));
}

static void test_spans_may_end_in_any_order(void **state)
{
    (void)state;
    const otel_context one = arrive(PARENT("01"), "n=1");
    const otel_context two = arrive(PARENT("01"), "n=2");
    const otel_context three = arrive(PARENT("01"), "n=3");
    const otel_span a = enter(&one);
    const otel_span b = enter(&two);
    const otel_context_token token = otel_context_attach(three);
    otel_span_end(a);
    assert_string_equal(sent(), "n=3");
    assert_true(otel_context_detach(token));
    assert_string_equal(sent(), "n=2");
    otel_span_end(b);
    otel_span_end(b);
    otel_span_end(a);
    assert_string_equal(sent(), "");
    assert_int_equal(otel_current_span().opaque[2], 0);
}

#define OTHER_PARENT "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static uint64_t current(void)
{
    return otel_current_span().opaque[2];
}

/* The span around all, one that ends before what was entered in it, and a span of it that stays
 * open. */
struct nest {
    otel_context mine, others;
    otel_span around, ends, stays;
};

static struct nest begin_nest(void)
{
    struct nest nest = {.mine = arrive(PARENT("01"), ""), .others = arrive(OTHER_PARENT, "")};
    nest.around = enter(&nest.mine);
    nest.ends = enter(NULL);
    nest.stays = enter(NULL);
    return nest;
}

static void end_nest(const struct nest *nest)
{
    assert_int_equal(current(), nest->around.opaque[2]);
    otel_span_end(nest->stays);
    assert_int_equal(current(), nest->around.opaque[2]);
    otel_span_end(nest->around);
    assert_int_equal(current(), 0);
}

static void test_what_was_entered_in_an_ended_span_is_not_current_after_another_trace(void **state)
{
    (void)state;
    const struct nest nest = begin_nest();
    const otel_span other = enter(&nest.others);
    otel_span_end(nest.ends);
    assert_int_equal(current(), other.opaque[2]);
    otel_span_end(other);
    end_nest(&nest);
}

static void test_nor_after_a_context_of_another_trace(void **state)
{
    (void)state;
    const struct nest nest = begin_nest();
    const otel_context_token token = otel_context_attach(nest.others);
    otel_span_end(nest.ends);
    assert_int_equal(current(), nest.others.span.opaque[2]);
    assert_true(otel_context_detach(token));
    end_nest(&nest);
}

static void test_nor_after_spans_that_end_in_another_order(void **state)
{
    (void)state;
    for (int is_before = 0; is_before < 2; is_before++) {
        const struct nest nest = begin_nest();
        const otel_span other = enter(&nest.others);
        const otel_span last = enter(NULL);
        if (is_before)
            otel_span_end(nest.ends);
        otel_span_end(other);
        assert_int_equal(current(), (is_before ? nest.around : nest.stays).opaque[2]);
        otel_span_end(nest.ends);
        assert_int_equal(current(), nest.around.opaque[2]);
        otel_span_end(last);
        end_nest(&nest);
    }
}

static void test_a_thousand_deep(void **state)
{
    (void)state;
    enum { DEPTH = 3000 };
    static otel_span spans[DEPTH];
    static const char *const texts[] = {"n=1", "n=2"};
    const otel_context contexts[] = {arrive(PARENT("01"), texts[0]),
                                     arrive(PARENT("01"), texts[1])};
    for (int i = 0; i < DEPTH; i++)
        spans[i] = enter(&contexts[i % 2]);
    for (int i = DEPTH; i-- > 0;) {
        assert_string_equal(sent(), texts[i % 2]);
        otel_span_end(spans[i]);
    }
    assert_string_equal(sent(), "");
}

static void assert_child(bool (*is_right)(otel_stack *fibre, otel_span span), otel_stack *fibre,
                         otel_span span)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(is_right(fibre, span) ? 0 : 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static bool goes_on(otel_stack *fibre, otel_span span)
{
    (void)fibre;
    bool is_right = strcmp(sent(), "user=alice") == 0;
    otel_span_end(span);
    return is_right && strcmp(sent(), "") == 0;
}

static void test_a_forked_child_goes_on_in_it(void **state)
{
    (void)state;
    const otel_context request = arrive(PARENT("01"), "user=alice");
    const otel_span span = enter(&request);
    assert_child(goes_on, NULL, span);
    otel_span_end(span);
}

static otel_context arrive_with(const char *tracestate)
{
    const uint8_t id[16] = {1};
    const otel_span_context parent =
        otel_span_context_make(id, id, OTEL_TRACE_FLAG_SAMPLED, true, tracestate);
    return otel_context_with_span(otel_current_context(), otel_span_wrap(&parent));
}

/* There is room for as many tracestates as spans are open here; the fibre's has gone. */
static bool others_keep_their_tracestates(otel_stack *fibre, otel_span span)
{
    enum { MOST = 4096 };
    static otel_span spans[MOST];
    for (int i = 0; i < MOST; i++) {
        const otel_context parent = arrive_with("a=1");
        spans[i] = enter(&parent);
    }
    otel_stack_switch(fibre);
    otel_span_end(span);
    otel_stack_switch(NULL);
    for (int i = 0; i < MOST; i++)
        (void)arrive_with("b=2");
    for (int i = 0; i < MOST; i++) {
        const otel_span_context context = otel_span_get_context(spans[i]);
        char text[8];
        if (otel_span_context_tracestate(&context, text, sizeof text) != 3 ||
            strcmp(text, "a=1") != 0)
            return false;
    }
    return true;
}

static void test_a_fibre_from_before_a_fork_leaves_the_tracestates_of_others(void **state)
{
    (void)state;
    otel_stack *const fibre = otel_stack_new();
    otel_stack_switch(fibre);
    const otel_context parent = arrive_with("a=1");
    const otel_span span = enter(&parent);
    otel_stack_switch(NULL);
    assert_child(others_keep_their_tracestates, fibre, span);
    otel_stack_switch(fibre);
    otel_span_end(span);
    otel_stack_free(fibre);
}

static void test_a_detached_span_makes_nothing_current(void **state)
{
    (void)state;
    const otel_context request = arrive(PARENT("01"), "user=alice");
    const otel_span span = otel_span_start(tracer(), "s", OTEL_SPAN_OPTIONS(.parent = &request));
    assert_string_equal(sent(), "");
    otel_span_end(span);
}

static int start(void **state)
{
    (void)state;
    return start_with_memory(OTEL_SDK_OPTIONS(.bsp_max_queue_size = 8192)) != OTEL_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_entered_span_makes_the_baggage_of_its_parent_current),
        cmocka_unit_test(test_a_parent_without_baggage_has_none),
        cmocka_unit_test(test_a_root_has_what_was_current),
        cmocka_unit_test(test_values_are_current_too),
        cmocka_unit_test(test_spans_may_end_in_any_order),
        cmocka_unit_test(test_what_was_entered_in_an_ended_span_is_not_current_after_another_trace),
        cmocka_unit_test(test_nor_after_a_context_of_another_trace),
        cmocka_unit_test(test_nor_after_spans_that_end_in_another_order),
        cmocka_unit_test(test_a_thousand_deep),
        cmocka_unit_test(test_a_forked_child_goes_on_in_it),
        cmocka_unit_test(test_a_fibre_from_before_a_fork_leaves_the_tracestates_of_others),
        cmocka_unit_test(test_a_detached_span_makes_nothing_current),
    };
    return cmocka_run_group_tests_name("without an SDK", tests, NULL, NULL) +
           cmocka_run_group_tests_name("with an SDK", tests, start, stop_memory);
}

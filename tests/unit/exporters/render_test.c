/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exporters/render_test.c - what a drawn trace looks like, and that any trace can be
 * drawn; how long something took, in three digits and a unit; and that nothing from outside can do
 * anything to a terminal. */
#include "exporters/console/duration.h"
#include "exporters/console/render.h"
#include "exporters/console/safe_text.h"

#include "common/text/text.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT(literal)                \
    {                                \
        literal, sizeof(literal) - 1 \
    }

/* 2026-08-01 16:00:00.123 UTC; spans are given in microseconds from there. */
#define EPOCH_NS UINT64_C(1785600000123000000)

static struct oteli_render_span span_of(uint8_t id, uint8_t parent, const char *name,
                                        uint64_t start_us, uint64_t length_us)
{
    struct oteli_render_span span = {.has_parent = parent != 0,
                                     .service = oteli_slice_of("shop"),
                                     .name = oteli_slice_of(name),
                                     .start_ns = EPOCH_NS + start_us * 1000,
                                     .end_ns = EPOCH_NS + (start_us + length_us) * 1000};
    memset(span.trace_id, 0xab, sizeof span.trace_id);
    span.span_id[7] = id;
    span.parent_id[7] = parent;
    return span;
}

static char *draw(struct oteli_render_span *spans, size_t count, unsigned width, bool colour)
{
    const struct oteli_render_span **pointers = calloc(count, sizeof *pointers);
    for (size_t i = 0; i < count; i++)
        pointers[i] = &spans[i];
    struct oteli_text text = {0};
    const struct oteli_render_options options = {.width = width, .colour = colour};
    assert_true(oteli_render_trace(&text, pointers, count, &options));
    free(pointers);
    oteli_text_add(&text, "", 1);
    return text.data;
}

#define assert_drawing(spans, width, expected)                                      \
    do {                                                                            \
        oteli_leaks_begin();                                                        \
        char *drawing = draw(spans, sizeof(spans) / sizeof *(spans), width, false); \
        assert_string_equal(drawing, expected);                                     \
        free(drawing);                                                              \
        oteli_leaks_check();                                                        \
    } while (0)

#define HEAD "trace abababababababababababababababab"

TEST(a_trace_of_two_services)
{
    struct oteli_render_span spans[] = {
        span_of(5, 4, "POST /charge", 20000, 130000), span_of(4, 1, "POST", 14000, 140000),
        span_of(1, 0, "POST /checkout", 0, 182400),   span_of(2, 1, "load cart", 1200, 11930),
        span_of(3, 2, "SELECT", 2000, 10500),         span_of(6, 1, "send receipt", 160000, 18),
    };
    spans[0].service = oteli_slice_of("payments");
    spans[0].kind = OTEL_SPAN_KIND_SERVER;
    spans[0].status = OTEL_SPAN_STATUS_ERROR;
    spans[0].status_message = oteli_slice_of("card declined: insufficient funds");
    const otel_slice cents[] = {TEXT("payment.cents=1299"), TEXT("payment.currency=EUR")};
    spans[0].attributes = cents;
    spans[0].attribute_count = 2;
    const struct oteli_render_event events[] = {
        {EPOCH_NS + 40100000, TEXT("retry"), TEXT("attempt=2")},
        {EPOCH_NS + 149000000, TEXT("exception"), TEXT("exception.type=CardDeclined")}};
    spans[0].events = events;
    spans[0].event_count = 2;
    spans[1].kind = OTEL_SPAN_KIND_CLIENT;
    spans[2].kind = OTEL_SPAN_KIND_SERVER;
    spans[4].kind = OTEL_SPAN_KIND_CLIENT;
    spans[5].kind = OTEL_SPAN_KIND_PRODUCER;
    struct oteli_render_link links[] = {
        {.span_id = {[7] = 5}},
        {.trace_id = {7}, .span_id = {8}, .tracestate = TEXT("a=1"), .attributes = TEXT("k=v")}};
    memset(links[0].trace_id, 0xab, sizeof links[0].trace_id);
    spans[5].links = links;
    spans[5].link_count = 2;
    spans[5].links_left_out = 1;
    spans[2].tracestate = spans[3].tracestate = oteli_slice_of("ot=th:8");
    spans[0].tracestate = oteli_slice_of("a=1");

    assert_drawing(spans, 100,
                   HEAD
                   "  6 spans  1 error  182 ms  2026-08-01 16:00:00.123Z\n"
                   "      shop, payments\n"
                   "POST /checkout  @shop server                                   182 ms "
                   "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━\n"
                   "│ tracestate ot=th:8\n"
                   "├─ load cart                                                  11.9 ms ━━╸\n"
                   "│  └─ SELECT  client                                          10.5 ms ━━╸\n"
                   "├─ POST  client                                                140 ms   "
                   "━━━━━━━━━━━━━━━━━━━━━━━╸\n"
                   "│  └─ ✗ POST /charge  @payments server                         130 ms    "
                   "━━━┿━━━━━━━━━━━━━━━━━┿\n"
                   "│       error: card declined: insufficient funds\n"
                   "│       payment.cents=1299, payment.currency=EUR\n"
                   "│       ◆ +20.1 ms  retry  attempt=2\n"
                   "│       ◆ +129 ms  exception  exception.type=CardDeclined\n"
                   "│       tracestate a=1\n"
                   "└─ send receipt  producer                                     18.0 µs"
                   "                           ╸\n"
                   "     → span 0000000000000005\n"
                   "     → span 0800000000000000 of trace "
                   "07000000000000000000000000000000  k=v  tracestate a=1\n"
                   "     1 link more\n"
                   "\n");
}

TEST(one_span_alone)
{
    struct oteli_render_span spans[] = {span_of(1, 0, "", 0, 0)};
    spans[0].service = oteli_slice_of("");

    assert_drawing(spans, 60,
                   HEAD "  1 span  0 ns\n"
                        "      2026-08-01 16:00:00.123Z\n"
                        "(no name)                            0 ns ━━━━━━━━━━━━━━━━━━\n"
                        "\n");
}

TEST(attributes_fill_three_lines_and_are_counted_then)
{
    struct oteli_render_span spans[] = {span_of(1, 0, "root", 0, 1000)};
    otel_slice attributes[12];
    for (size_t i = 0; i < 12; i++)
        attributes[i] = oteli_slice_of("key.of.some.length=1");
    attributes[2] = oteli_slice_of(
        "a.very.long.one=0123456789012345678901234567890123456789012345678901234567890123456789");
    spans[0].attributes = attributes;
    spans[0].attribute_count = 12;
    spans[0].attributes_left_out = 7;

    assert_drawing(spans, 60,
                   HEAD "  1 span  1.00 ms\n"
                        "      2026-08-01 16:00:00.123Z  shop\n"
                        "root  @shop                       1.00 ms ━━━━━━━━━━━━━━━━━━\n"
                        "  key.of.some.length=1, key.of.some.length=1,\n"
                        "  a.very.long.one=0123456789012345678901234567890123456789…,\n"
                        "  key.of.some.length=1, key.of.some.length=1, … 14 more\n"
                        "\n");
}

TEST(cycles_become_roots)
{
    struct oteli_render_span spans[] = {span_of(1, 3, "one", 0, 1000), span_of(2, 1, "two", 1, 999),
                                        span_of(3, 2, "three", 2, 998),
                                        span_of(4, 4, "self", 3, 997)};

    assert_drawing(spans, 60,
                   HEAD "  4 spans  1.00 ms\n"
                        "      2026-08-01 16:00:00.123Z  shop\n"
                        "one  @shop                        1.00 ms ━━━━━━━━━━━━━━━━━━\n"
                        "│ parent 0000000000000003 is its own descendant\n"
                        "└─ two                             999 µs ━━━━━━━━━━━━━━━━━━\n"
                        "   └─ three                        998 µs ━━━━━━━━━━━━━━━━━━\n"
                        "self  @shop                        997 µs ━━━━━━━━━━━━━━━━━━\n"
                        "  parent 0000000000000004 is its own descendant\n"
                        "\n");
}

TEST(times_that_are_odd)
{
    struct oteli_render_span spans[] = {span_of(1, 0, "root", 0, 1000),
                                        span_of(2, 1, "backwards", 500, 0),
                                        span_of(3, 1, "no times", 0, 0)};
    spans[1].end_ns -= 100000;
    spans[2].start_ns = spans[2].end_ns = 0;

    assert_drawing(spans, 60,
                   HEAD "  3 spans  1.00 ms\n"
                        "      2026-08-01 16:00:00.123Z  shop\n"
                        "root  @shop                       1.00 ms ━━━━━━━━━━━━━━━━━━\n"
                        "├─ no times                             ?\n"
                        "└─ backwards                      -100 µs          ╸\n"
                        "\n");
}

TEST(text_from_strangers_is_escaped_and_cut_by_columns)
{
    struct oteli_render_span spans[] = {
        span_of(1, 0, "\x1b[2J\xff\n", 0, 1000),
        span_of(2, 1, "日本語の名前はここではとても長いので切られる", 0, 1000)};
    spans[0].service = oteli_slice_of("\x9b"
                                      "evil");

    assert_drawing(spans, 60,
                   HEAD "  2 spans  1.00 ms\n"
                        "      2026-08-01 16:00:00.123Z  \\x9bevil, shop\n"
                        "\\x1b[2J\\xff\\n  @\\x9bevil          1.00 ms ━━━━━━━━━━━━━━━━━━\n"
                        "└─ 日本語の名前はここで…  @shop   1.00 ms ━━━━━━━━━━━━━━━━━━\n"
                        "\n");
}

TEST(colours_only_when_asked)
{
    struct oteli_render_span spans[] = {span_of(1, 0, "root", 0, 1000)};
    spans[0].status = OTEL_SPAN_STATUS_ERROR;

    char *plain = draw(spans, 1, 100, false);
    char *coloured = draw(spans, 1, 100, true);

    assert_null(strchr(plain, '\033'));
    assert_non_null(strstr(coloured, "\033[31m✗ root\033[0m"));
    free(plain);
    free(coloured);
}

TEST(no_line_is_wider_than_asked_for)
{
    enum { DEPTH = 200 };
    struct oteli_render_span spans[DEPTH];
    for (unsigned i = 0; i < DEPTH; i++)
        spans[i] =
            span_of((uint8_t)(i + 1), (uint8_t)i, "some name that is not short at all", i, 1000);

    for (unsigned width = 60; width <= 240; width += 45) {
        char *drawing = draw(spans, DEPTH, width, false);
        for (char *line = strtok(drawing, "\n"); line != NULL; line = strtok(NULL, "\n"))
            assert_in_range(oteli_text_safe_columns(oteli_slice_of(line), SIZE_MAX - 1), 1, width);
        free(drawing);
    }
}

/* A hundred thousand generations: no recursion, and no time that grows with the square. */
TEST(any_depth_can_be_drawn)
{
    enum { COUNT = 100000 };
    struct oteli_render_span *spans = calloc(COUNT, sizeof *spans);
    assert_non_null(spans);
    for (uint32_t i = 0; i < COUNT; i++) {
        spans[i] = span_of(0, 0, "deep", i, 1);
        const uint32_t id = i + 1;
        memcpy(spans[i].span_id, &id, sizeof id);
        memcpy(spans[i].parent_id, &i, sizeof i);
        spans[i].has_parent = i != 0;
    }

    char *drawing = draw(spans, COUNT, 100, false);

    size_t lines = 0;
    for (const char *at = strchr(drawing, '\n'); at != NULL; at = strchr(at + 1, '\n'))
        lines++;
    assert_int_equal(lines, COUNT + 2);
    free(drawing);
    free(spans);
}

/* ---- texts ---------------------------------------------------------------------------- */

TEST(durations_have_three_digits_and_rounding_carries_into_the_next_unit)
{
    static const struct {
        uint64_t ns;
        const char *expected;
    } table[] = {
        {0, "0 ns"},
        {999, "999 ns"},
        {1000, "1.00 µs"},
        {12345, "12.3 µs"},
        {182400000, "182 ms"},
        {1500000000, "1.50 s"},
        {59900000000, "59.9 s"},
        {125000000000, "2m05s"},
        {12000000000000, "3h20m"},
        {9994, "9.99 µs"},
        {9995, "10.0 µs"},
        {99949, "99.9 µs"},
        {99950, "100 µs"},
        {999499, "999 µs"},
        {999500, "1.00 ms"},
        {999500000, "1.00 s"},
        {59949999999, "59.9 s"},
        {59950000000, "1m00s"},
        {3599499999999, "59m59s"},
        {3599500000000, "1h00m"},
        {UINT64_MAX, "5124095h35m"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[OTELI_DURATION_TEXT];
        oteli_format_duration(text, sizeof text, table[i].ns);
        assert_string_equal(text, table[i].expected);
    }
}

static void assert_safe(const char *unsafe, size_t columns, const char *expected, size_t used)
{
    struct oteli_text text = {0};
    assert_int_equal(oteli_text_add_safe(&text, oteli_slice_of(unsafe), columns), used);
    oteli_text_add(&text, "", 1);
    assert_string_equal(text.data, expected);
    oteli_text_fini(&text);
}

TEST(what_is_harmless_stays)
{
    assert_safe("GET /a?b=\\c \"d\"", 80, "GET /a?b=\\c \"d\"", 15);
    assert_safe("größe µ", 80, "größe µ", 7);
    assert_safe("日本語", 80, "日本語", 6);
    assert_safe("e\xcc\x81", 80, "e\xcc\x81", 1);
}

TEST(controls_are_escaped)
{
    assert_safe("a\tb\nc\rd", 80, "a\\tb\\nc\\rd", 10);
    assert_safe("\x1b[2J\x07\x7f", 80, "\\x1b[2J\\x07\\x7f", 15);
    assert_safe("\xc2\x9b", 80, "\\u{9b}", 6);
    assert_safe("\xe2\x80\xae", 80, "\\u{202e}", 8);
    assert_safe("\xef\xbb\xbf", 80, "\\u{feff}", 8);
}

TEST(bytes_that_are_not_utf8_are_escaped_one_by_one)
{
    assert_safe("\xff", 80, "\\xff", 4);
    assert_safe("\xc3(", 80, "\\xc3(", 5);
    assert_safe("\xe2\x82", 80, "\\xe2\\x82", 8);
    assert_safe("\xc0\xaf\xed\xa0\x80", 80, "\\xc0\\xaf\\xed\\xa0\\x80", 20);
}

TEST(every_single_byte_is_harmless)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        const char one = (char)byte;
        struct oteli_text text = {0};
        (void)oteli_text_add_safe(&text, (otel_slice){&one, 1}, 80);
        for (size_t i = 0; i < text.length; i++)
            assert_in_range(text.data[i], 0x20, 0x7e);
        oteli_text_fini(&text);
    }
}

TEST(a_cut_never_splits_a_character_or_an_escape)
{
    assert_safe("abcdef", 6, "abcdef", 6);
    assert_safe("abcdef", 5, "abcd…", 5);
    assert_safe("日本語", 5, "日本…", 5);
    assert_safe("日本語", 4, "日…", 3);
    assert_safe("a\x1b", 4, "a…", 2);
    assert_safe("abc", 1, "…", 1);
    assert_safe("abc", 0, "", 0);
}

TEST(values_are_quoted_where_their_end_is_not_clear)
{
    struct oteli_text text = {0};
    oteli_text_add_quoted(&text, oteli_slice_of("plain/text=1"));
    oteli_text_add_quoted(&text, oteli_slice_of("two words"));
    oteli_text_add_quoted(&text, oteli_slice_of(""));
    oteli_text_add_quoted(&text, (otel_slice){"nul\0byte", 8});
    assert_int_equal(text.length, strlen("plain/text=1\"two words\"\"\"nul.byte"));
    assert_memory_equal(text.data, "plain/text=1\"two words\"\"\"nul\0byte", text.length);
    oteli_text_fini(&text);
}

TEST(doubles_are_short)
{
    const double values[] = {0.1, -1e300, 1.0 / 3.0, (double)INFINITY, (double)NAN};
    struct oteli_text text = {0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        oteli_text_add_double(&text, values[i]);
        oteli_text_add_string(&text, " ");
    }
    oteli_text_add(&text, "", 1);
    assert_string_equal(text.data, "0.1 -1e+300 0.3333333333333333 inf NaN ");
    oteli_text_fini(&text);
}

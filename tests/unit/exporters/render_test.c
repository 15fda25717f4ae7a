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
#include "tests/support/wire_text.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* 2026-08-01 16:00:00.123 UTC; spans are given in microseconds from there. */
#define EPOCH_NS UINT64_C(1785600000123000000)

static const uint8_t trace_id[16] = {0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab,
                                     0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab};

static const uint8_t *id_of(uint32_t number)
{
    static uint8_t ids[100001][8];
    uint8_t *id = ids[number];
    for (unsigned i = 0; i < 4; i++)
        id[7 - i] = (uint8_t)(number >> (8 * i));
    return id;
}

/* What spans point to stays until the end of the program. */
static otel_slice kept_text(const char *format, ...)
{
    static char texts[4096];
    static size_t used;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const otel_slice bytes = wire_text("%s", text);
    assert_true(bytes.length <= sizeof texts - used);
    const otel_slice kept = {memcpy(texts + used, bytes.data, bytes.length), bytes.length};
    used += bytes.length;
    return kept;
}

static struct oteli_waiting_span span_of(uint32_t id, uint32_t parent, const char *name,
                                         uint64_t start_us, uint64_t length_us)
{
    static char shop[] = "shop";
    struct oteli_kept_span *kept = calloc(1, sizeof *kept);
    assert_non_null(kept);
    kept->view = (otel_span_view){.trace_id = trace_id,
                                  .span_id = id_of(id),
                                  .parent_span_id = parent != 0 ? id_of(parent) : NULL,
                                  .name = oteli_slice_of(name),
                                  .start_ns = EPOCH_NS + start_us * 1000,
                                  .end_ns = EPOCH_NS + (start_us + length_us) * 1000};
    return (struct oteli_waiting_span){.kept = kept, .service = shop};
}

/* The view of a span. */
#define OF(index) (&spans[index].kept->view)

static char *draw(const struct oteli_waiting_span *spans, size_t count, unsigned width, bool colour)
{
    struct oteli_text text = {0};
    const struct oteli_render_options options = {.width = width, .colour = colour};
    assert_true(oteli_render_trace(
        &text, &(struct oteli_waiting_trace){.spans = spans, .count = count}, &options));
    oteli_text_add(&text, "", 1);
    return text.data;
}

static void forget(const struct oteli_waiting_span *spans, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(spans[i].kept);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define assert_drawing(spans, width, expected)                   \
    do {                                                         \
        oteli_leaks_begin();                                     \
        char *drawing = draw(spans, COUNT(spans), width, false); \
        assert_string_equal(drawing, expected);                  \
        free(drawing);                                           \
        oteli_leaks_check();                                     \
        forget(spans, COUNT(spans));                             \
    } while (0)

#define HEAD "trace abababababababababababababababab"

TEST(a_trace_of_two_services)
{
    static char payments[] = "payments";
    struct oteli_waiting_span spans[] = {
        span_of(5, 4, "POST /charge", 20000, 130000), span_of(4, 1, "POST", 14000, 140000),
        span_of(1, 0, "POST /checkout", 0, 182400),   span_of(2, 1, "load cart", 1200, 11930),
        span_of(3, 2, "SELECT", 2000, 10500),         span_of(6, 1, "send receipt", 160000, 18),
    };
    spans[0].service = payments;
    OF(0)->kind = OTEL_SPAN_KIND_SERVER;
    OF(0)->status = OTEL_SPAN_STATUS_ERROR;
    OF(0)->status_message = oteli_slice_of("card declined: insufficient funds");
    OF(0)->attributes = kept_text("9{1'payment.cents' 2{3=1299}} 9{1'payment.currency' 2{1'EUR'}}");
    OF(0)->events = kept_text("11{1@%" PRIu64 " 2'retry' 3{1'attempt' 2{3=2}}} "
                              "11{1@%" PRIu64 " 2'exception' 3{1'exception.type' "
                              "2{1'CardDeclined'}}}",
                              EPOCH_NS + 40100000, EPOCH_NS + 149000000);
    OF(1)->kind = OTEL_SPAN_KIND_CLIENT;
    OF(2)->kind = OTEL_SPAN_KIND_SERVER;
    OF(4)->kind = OTEL_SPAN_KIND_CLIENT;
    OF(5)->kind = OTEL_SPAN_KIND_PRODUCER;
    OF(5)->links = kept_text("13{1xabababababababababababababababab 2x0000000000000005} "
                             "13{1x07000000000000000000000000000000 2x0800000000000000 3'a=1' "
                             "4{1'k' 2{1'v'}}}");
    OF(5)->dropped_links_count = 1;
    OF(2)->tracestate = OF(3)->tracestate = oteli_slice_of("ot=th:8");
    OF(0)->tracestate = oteli_slice_of("a=1");

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
    struct oteli_waiting_span spans[] = {span_of(1, 0, "", 0, 0)};
    spans[0].service = NULL;

    assert_drawing(spans, 60,
                   HEAD "  1 span  0 ns\n"
                        "      2026-08-01 16:00:00.123Z\n"
                        "(no name)                            0 ns ━━━━━━━━━━━━━━━━━━\n"
                        "\n");
}

TEST(attributes_fill_three_lines_and_are_counted_then)
{
    struct oteli_waiting_span spans[] = {span_of(1, 0, "root", 0, 1000)};
    char some[1024] = "";
    for (size_t i = 0; i < 12; i++)
        strcat(some,
               i == 2
                   ? "9{1'a.very.long.one' 2{1'01234567890123456789012345678901234567890123456789"
                     "012345678901234567890123456789'}} "
                   : "9{1'key.of.some.length' 2{3=1}} ");
    OF(0)->attributes = kept_text("%s", some);
    OF(0)->dropped_attributes_count = 7;

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
    struct oteli_waiting_span spans[] = {
        span_of(1, 3, "one", 0, 1000), span_of(2, 1, "two", 1, 999), span_of(3, 2, "three", 2, 998),
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
    struct oteli_waiting_span spans[] = {span_of(1, 0, "root", 0, 1000),
                                         span_of(2, 1, "backwards", 500, 0),
                                         span_of(3, 1, "no times", 0, 0)};
    OF(1)->end_ns -= 100000;
    OF(2)->start_ns = OF(2)->end_ns = 0;

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
    struct oteli_waiting_span spans[] = {
        span_of(1, 0, "\x1b[2J\xff\n", 0, 1000),
        span_of(2, 1, "日本語の名前はここではとても長いので切られる", 0, 1000)};
    static char evil[] = "\x9b"
                         "evil";
    spans[0].service = evil;

    assert_drawing(spans, 60,
                   HEAD "  2 spans  1.00 ms\n"
                        "      2026-08-01 16:00:00.123Z  \\x9bevil, shop\n"
                        "\\x1b[2J\\xff\\n  @\\x9bevil          1.00 ms ━━━━━━━━━━━━━━━━━━\n"
                        "└─ 日本語の名前はここで…  @shop   1.00 ms ━━━━━━━━━━━━━━━━━━\n"
                        "\n");
}

TEST(colours_only_when_asked)
{
    struct oteli_waiting_span spans[] = {span_of(1, 0, "root", 0, 1000)};
    OF(0)->status = OTEL_SPAN_STATUS_ERROR;

    char *plain = draw(spans, 1, 100, false);
    char *coloured = draw(spans, 1, 100, true);

    assert_null(strchr(plain, '\033'));
    assert_non_null(strstr(coloured, "\033[31m✗ root\033[0m"));
    free(plain);
    free(coloured);
    forget(spans, COUNT(spans));
}

TEST(no_line_is_wider_than_asked_for)
{
    enum { DEPTH = 200 };
    struct oteli_waiting_span spans[DEPTH];
    for (unsigned i = 0; i < DEPTH; i++)
        spans[i] = span_of(i + 1, i, "some name that is not short at all", i, 1000);

    for (unsigned width = 60; width <= 240; width += 45) {
        char *drawing = draw(spans, DEPTH, width, false);
        for (char *line = strtok(drawing, "\n"); line != NULL; line = strtok(NULL, "\n"))
            assert_in_range(oteli_text_safe_columns(oteli_slice_of(line), SIZE_MAX - 1), 1, width);
        free(drawing);
    }
    forget(spans, DEPTH);
}

/* A hundred thousand generations: no recursion, and no time that grows with the square. */
TEST(any_depth_can_be_drawn)
{
    enum { DEPTH = 100000 };
    struct oteli_waiting_span *spans = calloc(DEPTH, sizeof *spans);
    assert_non_null(spans);
    for (uint32_t i = 0; i < DEPTH; i++)
        spans[i] = span_of(i + 1, i, "deep", i, 1);

    char *drawing = draw(spans, DEPTH, 100, false);

    size_t lines = 0;
    for (const char *at = strchr(drawing, '\n'); at != NULL; at = strchr(at + 1, '\n'))
        lines++;
    assert_int_equal(lines, DEPTH + 2);
    free(drawing);
    forget(spans, DEPTH);
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

static struct oteli_kept_resource *resource_of(const char *service, const char *format)
{
    const otel_slice otlp = kept_text("%s", format);
    struct oteli_kept_resource *resource = calloc(1, sizeof *resource + otlp.length);
    assert_non_null(resource);
    resource->service = (char *)(uintptr_t)service;
    resource->length = otlp.length;
    memcpy(resource->otlp, otlp.data, otlp.length);
    return resource;
}

TEST(a_line_for_each_resource_of_the_trace)
{
    struct oteli_waiting_span spans[] = {span_of(1, 0, "root", 0, 10), span_of(2, 1, "child", 1, 2),
                                         span_of(3, 1, "same", 4, 2), span_of(4, 1, "bare", 7, 1)};
    struct oteli_kept_resource *resources[] = {
        resource_of("shop", "1{1'service.name' 2{1'shop'}} 1{1'host.name' 2{1'a b'}}"),
        resource_of(
            NULL, "1{1'host.name' 2{1'c'}} 1{1'x' 2{1'01234567890123456789012345678901234567890'}} "
                  "1{1'y' 2{3=1}}"),
        resource_of("shop", "1{1'service.name' 2{1'shop'}} 1{1'host.name' 2{1'a b'}}"),
        resource_of("shop", "1{1'service.name' 2{1'shop'}}")};
    for (size_t i = 0; i < COUNT(spans); i++)
        spans[i].resource = resources[i];
    for (int all = 0; all < 2; all++) {
        struct oteli_text text = {0};
        const struct oteli_render_options options = {.width = 60, .resource = true, .all = all};
        assert_true(oteli_render_trace(
            &text, &(struct oteli_waiting_trace){.spans = spans, .count = COUNT(spans)}, &options));
        oteli_text_add(&text, "", 1);
        assert_non_null(
            strstr(text.data, all ? "  shop\n@shop  host.name=\"a b\"\n"
                                    "@  host.name=c, x=01234567890123456789012345678901234567890,\n"
                                    "      y=1\nroot"
                                  : "  shop\n@shop  host.name=\"a b\"\n"
                                    "@  host.name=c, … 2 more\nroot"));
        oteli_text_fini(&text);
    }
    forget(spans, COUNT(spans));
    for (size_t i = 0; i < COUNT(resources); i++)
        free(resources[i]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exporters/console_test.c - when the console exporter draws a trace, and what of it. */
#include <otel/console.h>

#include "tests/support/batch_double.h"
#include "tests/support/leaks.h"
#include "tests/support/said.h"
#include "tests/support/unit.h"
#include "tests/support/wire_text.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define HEAD_0 "trace 00000000000000000000000000000000"
#define HEAD_7 "trace 00000000000000000000000000000007"
#define TIME "2026-08-01 16:00:00.123Z"
#define ONE_MS " 7@1785600000123000000 8@1785600000124000000 "

static const otel_scope_view scope;
static char *drawn; /* what is written to the stream */
static size_t length;
static FILE *stream;
static otel_exporter exporter;
static struct batch_double batch; /* that is being filled */

static void add_bytes(otel_slice span)
{
    batch_double_add(&batch, &scope, span.data, span.length);
}

/* A span of 1 ms. */
static void add(unsigned trace, unsigned id, unsigned parent, const char *name)
{
    char of_parent[32] = "";
    if (parent != 0)
        snprintf(of_parent, sizeof of_parent, "4x%016x", parent);
    add_bytes(
        wire_text("1x%032x 2x%016x %s 5'%s' 6=1" ONE_MS "16^257", trace, id, of_parent, name));
}

static struct export_double export_batch(void)
{
    struct export_double call = export_double_of(&batch, UINT64_MAX);
    assert_int_equal(exporter.export_batch(exporter.state, &call.export), OTEL_EXPORT_DONE);
    batch_double_fini(&batch);
    return call;
}

static otel_status flush(void)
{
    return exporter.flush(exporter.state, 1000);
}

static void open_on(FILE *file)
{
    stream = file;
    assert_non_null(stream);
    assert_int_equal(otel_console_exporter_new(stream, &exporter), OTEL_OK);
}

static void close_it(void)
{
    exporter.free(exporter.state);
    fclose(stream);
}

static int begin(void **state)
{
    (void)state;
    said_begin(OTEL_LOG_WARN);
    oteli_leaks_begin();
    length = 0;
    open_on(open_memstream(&drawn, &length));
    return 0;
}

static int end(void **state)
{
    (void)state;
    close_it();
    oteli_leaks_check();
    (free)(drawn);
    return 0;
}

/* Instead of the memory. */
static void open_instead(FILE *file)
{
    close_it();
    open_on(file);
}

AROUND_EACH(begin, end);

/* spec: X20 */
TEST(X20_a_trace_is_drawn_when_its_root_has_come)
{
    add(7, 2, 1, "child");
    struct export_double first = export_batch();
    assert_int_equal(length, 0);
    add(7, 1, 0, "root");
    add(7, 3, 1, "late child");
    struct export_double second = export_batch();

    assert_string_equal(drawn, HEAD_7
                        "  3 spans  1.00 ms  " TIME "\n"
                        "root                                                          1.00 ms "
                        "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━\n"
                        "├─ child                                                      1.00 ms "
                        "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━\n"
                        "└─ late child                                                 1.00 ms "
                        "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━\n"
                        "\n");
    assert_int_equal(export_double_lost(&first) + export_double_lost(&second), 0);
}

TEST(a_span_with_a_remote_parent_is_a_local_root)
{
    add_bytes(wire_text("1x%032x 2x%016x 4x%016x 5'GET /' 6=2" ONE_MS "16^769", 7, 2, 1));

    (void)export_batch();

    assert_non_null(strstr(drawn, "GET /  server"));
    assert_non_null(strstr(drawn, "  parent 0000000000000001 not here\n"));
}

TEST(a_flush_draws_what_is_left)
{
    add(7, 2, 1, "child");
    add(0, 2, 1, "another");
    (void)export_batch();
    assert_int_equal(length, 0);

    assert_int_equal(flush(), OTEL_OK);

    assert_non_null(strstr(drawn, HEAD_7));
    assert_non_null(strstr(drawn, HEAD_0));
    const size_t before = length;
    assert_int_equal(flush(), OTEL_OK);
    assert_int_equal(length, before);
}

#define LIST "5{1[{3=1} {} {1'a b'}]}"

TEST(everything_that_a_span_can_say)
{
    char resource[64];
    const otel_slice bytes = wire_text("1{1'service.name' 2{1'shop'}}");
    batch.resource = (otel_slice){memcpy(resource, bytes.data, bytes.length), bytes.length};
    add_bytes(wire_text(
        "1x%032x 2x%016x 5'root' 6=1" ONE_MS
        "9[{1's' 2{1'plain'}} {1'b' 2{2=1}} {1'i' 2{3=-5}} {1'd' 2{4~0.1}} {1'n' 2{4~nan}} "
        "{1'x' 2{7x00ff}} {1'l' 2{" LIST "}} {1'm' 2{6{1[{1'k' 2{" LIST "}} {}]}}} {1'e' 2{1''}}] "
        "10=2 11{1@1785600000123500000 2'retry' 3[{1's' 2{1'plain'}} {1'b' 2{2=1}}]} 12=3 14=4 "
        "15{2'it broke' 3=2} 16^257 3'ot=th:8' "
        "13{1x%032x 2x%016x 3'a=1' 4[{1's' 2{1'plain'}} {1'b' 2{2=1}}]} 13{1x%032x 2x%016x}",
        7, 1, 9, 8, 7, 6));

    (void)export_batch();

    assert_string_equal(drawn, HEAD_7
                        "  1 span  1 error  1.00 ms  " TIME "  shop\n"
                        "✗ root  @shop                                                 1.00 ms "
                        "━━━━━━━━━━━━━━━┿━━━━━━━━━━━━━━\n"
                        "  error: it broke\n"
                        "  s=plain, b=true, i=-5, d=0.1, n=\"NaN\", x=\"AP8=\", "
                        "l=[1,null,\"a b\"], m={\"k\":[1,null,\"a b\"],\"\":null},\n"
                        "  e=\"\", … 2 more\n"
                        "  ◆ +500 µs  retry  s=plain, b=true\n"
                        "  → span 0000000000000008 of trace 00000000000000000000000000000009  "
                        "s=plain, b=true  tracestate a=1\n"
                        "  → span 0000000000000006\n"
                        "  tracestate ot=th:8\n"
                        "  4 links more, 3 events more\n"
                        "\n");
}

TEST(what_is_held_is_bounded)
{
    enum { HELD_MAX = 10000 };
    add(0, 2, 1, "oldest");
    for (uint32_t i = 0; i < HELD_MAX - 1; i++)
        add(7, i + 2, 1, "child");
    (void)export_batch();
    assert_int_equal(length, 0);

    add(9, 2, 1, "newest");
    (void)export_batch();

    assert_non_null(strstr(drawn, "oldest"));
    assert_non_null(strstr(drawn, "child"));
    assert_non_null(strstr(drawn, "newest"));
}

TEST(spans_without_memory_are_counted)
{
    bool all_tried = false;
    for (size_t nth = 1; !all_tried; nth++) {
        (void)end(NULL);
        (void)begin(NULL);
        add(7, 2, 1, "child");
        add_bytes(
            wire_text("1x%032x 2x%016x 5'root' 6=1" ONE_MS "15{2'it broke' 3=2} 16^257", 7, 1));
        oteli_leaks_fail_at(nth);

        const struct export_double call = export_batch();

        all_tried = !oteli_leaks_failed();
        assert_int_equal(flush(), OTEL_OK);
        fflush(stream);
        assert_int_equal(call.dropped[OTEL_DROP_NO_MEMORY] +
                             call.dropped[OTEL_DROP_PERMANENT_ERROR],
                         export_double_lost(&call));
        const bool is_whole = length != 0 && strstr(drawn, "child") && strstr(drawn, "root");
        assert_int_equal(is_whole, export_double_lost(&call) == 0);
        assert_true(!all_tried || is_whole);
    }
}

/* Those of the batch are lost then; those of earlier ones have been counted as delivered. */
TEST(what_cannot_be_drawn_is_counted_as_lost_or_fails_the_flush)
{
    open_instead(fopen("/dev/full", "we"));
    add(7, 3, 1, "early child");
    const struct export_double early = export_batch();
    add(7, 2, 1, "child");
    add(7, 1, 0, "root");
    const struct export_double call = export_batch();
    add(8, 2, 1, "child");
    const struct export_double last = export_batch();

    assert_int_equal(flush(), OTEL_ERROR_EXPORT_FAILED);

    assert_int_equal(export_double_lost(&early) + export_double_lost(&last), 0);
    assert_int_equal(call.dropped[OTEL_DROP_PERMANENT_ERROR], 2);
    assert_int_equal(export_double_lost(&call), 2);
}

/* A thread that has the stream locked until it is told. */
struct holder {
    FILE *stream;
    pthread_barrier_t barrier;
};

static void *hold(void *state)
{
    struct holder *holder = state;
    flockfile(holder->stream);
    pthread_barrier_wait(&holder->barrier);
    pthread_barrier_wait(&holder->barrier);
    funlockfile(holder->stream);
    return NULL;
}

/* 0, or the number of the step that failed. */
static int draw_in_child(void)
{
    otel_exporter renewed;
    if (exporter.renew(exporter.state, &renewed) != OTEL_OK)
        return 1;
    exporter = renewed;
    add(7, 1, 0, "of the child");
    const struct export_double call = export_batch();
    const otel_status status = flush();
    renewed.free(renewed.state);
    return export_double_lost(&call) != 0 ? 2 : status != OTEL_OK ? 3 : 0;
}

TEST(a_child_draws_its_own_traces_past_the_stream)
{
    char text[2048] = "";
    int ends[2];
    pthread_t thread;
    assert_int_equal(pipe(ends), 0);
    open_instead(fdopen(ends[1], "w"));
    add(7, 2, 1, "of the parent");
    (void)export_batch();
    fputs("not yet written", stream);
    struct holder holder = {.stream = stream};
    pthread_barrier_init(&holder.barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, hold, &holder), 0);
    pthread_barrier_wait(&holder.barrier);

    const pid_t child = fork();
    if (child == 0)
        _exit(draw_in_child());
    check_forked(child);
    pthread_barrier_wait(&holder.barrier);
    pthread_join(thread, NULL);

    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    assert_memory_equal(text, HEAD_7, sizeof HEAD_7 - 1);
    assert_non_null(strstr(text, "of the child"));
    assert_null(strstr(text, "of the parent"));
    assert_null(strstr(text, "not yet written"));
    pthread_barrier_destroy(&holder.barrier);
    open_instead(fopen("/dev/null", "we"));
    close(ends[0]);
}

TEST(where_there_is_nothing_for_a_child_that_is_said)
{
    otel_exporter renewed;
    assert_int_equal(exporter.renew(exporter.state, &renewed),
                     OTEL_ERROR_UNSUPPORTED); /* memory has no descriptor */

    open_instead(fopen("/dev/null", "we"));
    oteli_leaks_fail_at(1);
    assert_int_equal(exporter.renew(exporter.state, &renewed), OTEL_ERROR_NO_MEMORY);

    assert_int_equal(otel_console_exporter_new(NULL, NULL), OTEL_ERROR_INVALID_ARGUMENT);
}

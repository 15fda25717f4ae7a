/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exporters/console_test.c - when the console exporter draws a trace, and what of it. */
#include <otel/console.h>

#include "opentelemetry/proto/trace/v1/trace.pb-c.h"
#include "tests/support/batch_double.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef Opentelemetry__Proto__Trace__V1__Span otlp_span;
typedef Opentelemetry__Proto__Common__V1__AnyValue any_value;
typedef Opentelemetry__Proto__Common__V1__KeyValue key_value;

#define MS UINT64_C(1000000)
#define EPOCH_NS UINT64_C(1785600000123000000)
#define REMOTE_PARENT 0x300u
#define HEAD_0 "trace 00000000000000000000000000000000"
#define HEAD_7 "trace 00000000000000000000000000000007"
#define TIME "2026-08-01 16:00:00.123Z"

static const otel_scope_view scope;

struct ids {
    uint8_t trace[16], span[8], parent[8];
};

/* A span of trace `trace`, 1 ms long, pointing into `ids`. */
static otlp_span span_of(struct ids *ids, uint8_t trace, uint32_t id, uint8_t parent,
                         const char *name)
{
    *ids = (struct ids){.trace[15] = trace, .parent[7] = parent};
    for (unsigned i = 0; i < 4; i++)
        ids->span[7 - i] = (uint8_t)(id >> (8 * i));
    otlp_span span = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__INIT;
    span.trace_id = (ProtobufCBinaryData){16, ids->trace};
    span.span_id = (ProtobufCBinaryData){8, ids->span};
    if (parent != 0)
        span.parent_span_id = (ProtobufCBinaryData){8, ids->parent};
    span.kind = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_INTERNAL;
    span.name = (char *)(uintptr_t)name;
    span.start_time_unix_nano = EPOCH_NS;
    span.end_time_unix_nano = EPOCH_NS + MS;
    span.flags = 0x101;
    return span;
}

static void add(struct batch_double *batch, const otlp_span *span)
{
    static uint8_t bytes[4096];
    assert_true(opentelemetry__proto__trace__v1__span__get_packed_size(span) <= sizeof bytes);
    batch_double_add(batch, &scope, bytes,
                     opentelemetry__proto__trace__v1__span__pack(span, bytes));
}

static void add_named(struct batch_double *batch, uint8_t trace, uint32_t id, uint8_t parent,
                      const char *name)
{
    struct ids ids;
    const otlp_span span = span_of(&ids, trace, id, parent, name);
    add(batch, &span);
}

/* An exporter, the memory that it writes to, and the batch that is being filled. */
struct fixture {
    char *drawn;
    size_t length;
    FILE *stream;
    otel_exporter exporter;
    struct batch_double batch;
};

static struct fixture begin(void)
{
    struct fixture fixture = {0};
    oteli_leaks_begin();
    return fixture;
}

static void open_exporter(struct fixture *fixture)
{
    fixture->stream = open_memstream(&fixture->drawn, &fixture->length);
    assert_int_equal(otel_console_exporter_new(fixture->stream, &fixture->exporter), OTEL_OK);
}

static struct export_double export_batch(struct fixture *fixture)
{
    struct export_double call = export_double_of(&fixture->batch, UINT64_MAX);
    assert_int_equal(fixture->exporter.export_batch(fixture->exporter.state, &call.export),
                     OTEL_EXPORT_DONE);
    batch_double_fini(&fixture->batch);
    return call;
}

static otel_status flush(struct fixture *fixture)
{
    return fixture->exporter.flush(fixture->exporter.state, 1000);
}

static void end(struct fixture *fixture)
{
    fixture->exporter.free(fixture->exporter.state);
    fclose(fixture->stream);
    oteli_leaks_check();
    (free)(fixture->drawn);
}

static void silent(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    (void)message;
}

static int prepare(void **state)
{
    (void)state;
    otel_log_set_handler(silent, NULL);
    return 0;
}

AROUND_ALL(prepare, NULL);

/* spec: X20 */
TEST(X20_a_trace_is_drawn_when_its_root_has_come)
{
    struct fixture fixture = begin();
    open_exporter(&fixture);

    add_named(&fixture.batch, 7, 2, 1, "child");
    struct export_double first = export_batch(&fixture);
    assert_int_equal(fixture.length, 0);
    add_named(&fixture.batch, 7, 1, 0, "root");
    add_named(&fixture.batch, 7, 3, 1, "late child");
    struct export_double second = export_batch(&fixture);

    assert_string_equal(fixture.drawn, HEAD_7
                        "  3 spans  1.00 ms  " TIME "\n"
                        "root                                                          1.00 ms "
                        "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━\n"
                        "├─ child                                                      1.00 ms "
                        "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━\n"
                        "└─ late child                                                 1.00 ms "
                        "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━\n"
                        "\n");
    assert_int_equal(export_double_lost(&first) + export_double_lost(&second), 0);
    end(&fixture);
}

TEST(a_span_with_a_remote_parent_is_a_local_root)
{
    struct fixture fixture = begin();
    open_exporter(&fixture);
    struct ids ids;
    otlp_span span = span_of(&ids, 7, 2, 1, "GET /");
    span.flags |= REMOTE_PARENT;
    span.kind = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_SERVER;
    add(&fixture.batch, &span);

    (void)export_batch(&fixture);

    assert_non_null(strstr(fixture.drawn, "GET /  server"));
    assert_non_null(strstr(fixture.drawn, "  parent 0000000000000001 not here\n"));
    end(&fixture);
}

TEST(a_flush_draws_what_is_left)
{
    struct fixture fixture = begin();
    open_exporter(&fixture);
    add_named(&fixture.batch, 7, 2, 1, "child");
    add_named(&fixture.batch, 0, 2, 1, "another");
    (void)export_batch(&fixture);
    assert_int_equal(fixture.length, 0);

    assert_int_equal(flush(&fixture), OTEL_OK);

    assert_non_null(strstr(fixture.drawn, HEAD_7));
    assert_non_null(strstr(fixture.drawn, HEAD_0));
    const size_t length = fixture.length;
    assert_int_equal(flush(&fixture), OTEL_OK);
    assert_int_equal(fixture.length, length);
    end(&fixture);
}

#define ANY(member, tag, content)                                                                  \
    (&(any_value){                                                                                 \
        .base = PROTOBUF_C_MESSAGE_INIT(&opentelemetry__proto__common__v1__any_value__descriptor), \
        .value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##tag,                    \
        .member = content})

#define PAIR(text, content)                                                                        \
    (&(key_value){                                                                                 \
        .base = PROTOBUF_C_MESSAGE_INIT(&opentelemetry__proto__common__v1__key_value__descriptor), \
        .key = (char[]){text},                                                                     \
        .value = content})

TEST(everything_that_a_span_can_say)
{
    struct fixture fixture = begin();
    open_exporter(&fixture);
    Opentelemetry__Proto__Common__V1__ArrayValue list =
        OPENTELEMETRY__PROTO__COMMON__V1__ARRAY_VALUE__INIT;
    list.n_values = 3;
    list.values = (any_value *[]){ANY(int_value, INT_VALUE, 1), ANY(int_value, _NOT_SET, 0),
                                  ANY(string_value, STRING_VALUE, (char[]){"a b"})};
    Opentelemetry__Proto__Common__V1__KeyValueList map =
        OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE_LIST__INIT;
    map.n_values = 2;
    map.values = (key_value *[]){PAIR("k", ANY(array_value, ARRAY_VALUE, &list)), PAIR("", NULL)};
    struct ids ids;
    otlp_span span = span_of(&ids, 7, 1, 0, "root");
    key_value *attributes[] = {
        PAIR("s", ANY(string_value, STRING_VALUE, (char[]){"plain"})),
        PAIR("b", ANY(bool_value, BOOL_VALUE, 1)),
        PAIR("i", ANY(int_value, INT_VALUE, -5)),
        PAIR("d", ANY(double_value, DOUBLE_VALUE, 0.1)),
        PAIR("n", ANY(double_value, DOUBLE_VALUE, (double)NAN)),
        PAIR("x", ANY(bytes_value, BYTES_VALUE, ((ProtobufCBinaryData){2, (uint8_t *)"\x00\xff"}))),
        PAIR("l", ANY(array_value, ARRAY_VALUE, &list)),
        PAIR("m", ANY(kvlist_value, KVLIST_VALUE, &map)),
        PAIR("e", ANY(string_value, STRING_VALUE, (char[]){""})),
    };
    span.attributes = attributes;
    span.n_attributes = sizeof attributes / sizeof *attributes;
    span.dropped_attributes_count = 2;
    Opentelemetry__Proto__Trace__V1__Span__Event event =
        OPENTELEMETRY__PROTO__TRACE__V1__SPAN__EVENT__INIT;
    event.time_unix_nano = EPOCH_NS + MS / 2;
    event.name = (char[]){"retry"};
    event.attributes = attributes;
    event.n_attributes = 2;
    span.events = (Opentelemetry__Proto__Trace__V1__Span__Event *[]){&event};
    span.n_events = 1;
    span.dropped_events_count = 3;
    span.dropped_links_count = 4;
    Opentelemetry__Proto__Trace__V1__Status status = OPENTELEMETRY__PROTO__TRACE__V1__STATUS__INIT;
    status.code = OPENTELEMETRY__PROTO__TRACE__V1__STATUS__STATUS_CODE__STATUS_CODE_ERROR;
    status.message = (char[]){"it broke"};
    span.status = &status;
    add(&fixture.batch, &span);
    static const char resource[] = "\x0a\x16\x0a\x0cservice.name\x12\x06\x0a\x04shop";
    fixture.batch.resource = (otel_slice){resource, sizeof resource - 1};

    (void)export_batch(&fixture);

    assert_string_equal(fixture.drawn, HEAD_7
                        "  1 span  1 error  1.00 ms  " TIME "  shop\n"
                        "✗ root  @shop                                                 1.00 ms "
                        "━━━━━━━━━━━━━━━┿━━━━━━━━━━━━━━\n"
                        "  error: it broke\n"
                        "  s=plain, b=true, i=-5, d=0.1, n=NaN, x=0x00ff, "
                        "l=[1, null, \"a b\"], m={k=[1, null, \"a b\"], =null},\n"
                        "  e=\"\", … 2 more\n"
                        "  ◆ +500 µs  retry  s=plain, b=true\n"
                        "  4 links, 3 events more\n"
                        "\n");
    end(&fixture);
}

TEST(what_is_held_is_bounded)
{
    enum { HELD_MAX = 10000 };
    struct fixture fixture = begin();
    open_exporter(&fixture);
    add_named(&fixture.batch, 0, 2, 1, "oldest");
    for (uint32_t i = 0; i < HELD_MAX - 1; i++)
        add_named(&fixture.batch, 7, i + 2, 1, "child");
    (void)export_batch(&fixture);
    assert_int_equal(fixture.length, 0);

    add_named(&fixture.batch, 9, 2, 1, "newest");
    (void)export_batch(&fixture);

    assert_non_null(strstr(fixture.drawn, "oldest"));
    assert_null(strstr(fixture.drawn, "child"));
    assert_int_equal(flush(&fixture), OTEL_OK);
    end(&fixture);
}

TEST(spans_without_memory_are_counted)
{
    for (size_t nth = 1;; nth++) {
        struct fixture fixture = begin();
        open_exporter(&fixture);
        add_named(&fixture.batch, 7, 2, 1, "child");
        oteli_leaks_fail_at(nth);

        const struct export_double call = export_batch(&fixture);

        const bool all_tried = !oteli_leaks_failed();
        oteli_leaks_fail_at(0);
        assert_int_equal(call.dropped[OTEL_DROP_NO_MEMORY], export_double_lost(&call));
        assert_int_equal(flush(&fixture), OTEL_OK);
        assert_true((fixture.length == 0) == (export_double_lost(&call) == 1));
        end(&fixture);
        if (all_tried)
            break;
    }
}

TEST(a_stream_that_takes_nothing_fails_the_flush)
{
    oteli_leaks_begin();
    struct fixture fixture = {.stream = fopen("/dev/full", "we")};
    assert_non_null(fixture.stream);
    assert_int_equal(otel_console_exporter_new(fixture.stream, &fixture.exporter), OTEL_OK);
    add_named(&fixture.batch, 7, 2, 1, "child");
    (void)export_batch(&fixture);

    assert_int_equal(flush(&fixture), OTEL_ERROR_EXPORT_FAILED);

    end(&fixture);
}

/* Those of the batch are lost then; those of earlier ones have been counted as delivered. */
TEST(what_cannot_be_drawn_is_counted_as_lost)
{
    oteli_leaks_begin();
    struct fixture fixture = {.stream = fopen("/dev/full", "we")};
    assert_non_null(fixture.stream);
    assert_int_equal(otel_console_exporter_new(fixture.stream, &fixture.exporter), OTEL_OK);
    add_named(&fixture.batch, 7, 3, 1, "early child");
    const struct export_double early = export_batch(&fixture);
    add_named(&fixture.batch, 7, 2, 1, "child");
    add_named(&fixture.batch, 7, 1, 0, "root");

    const struct export_double call = export_batch(&fixture);

    assert_int_equal(export_double_lost(&early), 0);
    assert_int_equal(call.dropped[OTEL_DROP_PERMANENT_ERROR], 2);
    assert_int_equal(export_double_lost(&call), 2);
    end(&fixture);
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
static int draw_in_child(struct fixture *fixture)
{
    otel_exporter renewed;
    if (fixture->exporter.renew(fixture->exporter.state, &renewed) != OTEL_OK)
        return 1;
    fixture->exporter = renewed;
    add_named(&fixture->batch, 7, 1, 0, "of the child");
    const struct export_double call = export_batch(fixture);
    const size_t lost = export_double_lost(&call);
    const otel_status status = flush(fixture);
    renewed.free(renewed.state);
    return lost != 0 ? 2 : status != OTEL_OK ? 3 : 0;
}

TEST(a_child_draws_its_own_traces_past_the_stream)
{
    char drawn[2048];
    int ends[2];
    int status;
    pthread_t thread;
    struct fixture fixture = begin();
    assert_int_equal(pipe(ends), 0);
    fixture.stream = fdopen(ends[1], "w");
    assert_int_equal(otel_console_exporter_new(fixture.stream, &fixture.exporter), OTEL_OK);
    add_named(&fixture.batch, 7, 2, 1, "of the parent");
    (void)export_batch(&fixture);
    fputs("not yet written", fixture.stream);
    struct holder holder = {.stream = fixture.stream};
    pthread_barrier_init(&holder.barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, hold, &holder), 0);
    pthread_barrier_wait(&holder.barrier);

    const pid_t child = fork();
    if (child == 0)
        _exit(draw_in_child(&fixture));
    assert_int_equal(waitpid(child, &status, 0), child);
    pthread_barrier_wait(&holder.barrier);
    pthread_join(thread, NULL);

    assert_int_equal(status, 0);
    const ssize_t length = read(ends[0], drawn, sizeof drawn - 1);
    assert_true(length > 0);
    drawn[length] = '\0';
    assert_memory_equal(drawn, HEAD_7, sizeof HEAD_7 - 1);
    assert_non_null(strstr(drawn, "of the child"));
    assert_null(strstr(drawn, "of the parent"));
    assert_null(strstr(drawn, "not yet written"));
    pthread_barrier_destroy(&holder.barrier);
    end(&fixture);
    close(ends[0]);
}

TEST(without_a_descriptor_there_is_nothing_for_a_child)
{
    otel_exporter renewed;
    struct fixture fixture = begin();
    open_exporter(&fixture);

    assert_int_equal(fixture.exporter.renew(fixture.exporter.state, &renewed),
                     OTEL_ERROR_UNSUPPORTED);

    end(&fixture);
}

TEST(a_child_without_memory_says_so)
{
    otel_exporter renewed;
    oteli_leaks_begin();
    struct fixture fixture = {.stream = fopen("/dev/null", "we")};
    assert_int_equal(otel_console_exporter_new(fixture.stream, &fixture.exporter), OTEL_OK);
    oteli_leaks_fail_at(1);

    assert_int_equal(fixture.exporter.renew(fixture.exporter.state, &renewed),
                     OTEL_ERROR_NO_MEMORY);

    end(&fixture);
}

TEST(it_needs_somewhere_to_put_the_exporter)
{
    assert_int_equal(otel_console_exporter_new(NULL, NULL), OTEL_ERROR_INVALID_ARGUMENT);
}

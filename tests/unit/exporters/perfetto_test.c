/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exporters/perfetto_test.c - specification of the exporter of trace events: which
 * events a trace becomes, and that the file is JSON whenever somebody looks. */
#include <otel/file.h>

#include "tests/support/batch_double.h"
#include "tests/support/json_check.h"
#include "tests/support/leaks.h"
#include "tests/support/said.h"
#include "tests/support/unit.h"
#include "tests/support/wire_text.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const otel_scope_view scope = {.name = {"shop", 4}};
static char path[64];
static char content[8 << 20];
static uint64_t zero_ns; /* of the file */
static otel_exporter exporter;
static struct batch_double batch;

/* The whole file, which must be JSON. */
static const char *file(void)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = read(fd, content, sizeof content - 1);
    close(fd);
    assert_true(length > 0);
    content[length] = '\0';
    assert_int_equal(content[length - 1], '\n');
    assert_true(json_is_valid(content, (size_t)length - 1));
    return content;
}

/* The lines of the file between the first and the last. */
static const char *events(void)
{
    char *from = strchr((char *)(uintptr_t)file(), '\n') + 1;
    const size_t length = strlen(from);
    from[length > 3 ? length - 4 : 0] = '\0'; /* without the tail */
    return from;
}

static int begin(void **state)
{
    (void)state;
    static char resource[64];
    const otel_slice bytes = wire_text("1[{1'service.name' 2{1'shop'}} {1'process.pid' 2{3=7}}]");
    snprintf(path, sizeof path, "/tmp/otel-perfetto-test-XXXXXX");
    close(mkstemp(path));
    said_begin(OTEL_LOG_WARN);
    oteli_leaks_begin();
    assert_int_equal(otel_perfetto_exporter_new(path, &exporter), OTEL_OK);
    batch = (struct batch_double){
        .resource = {memcpy(resource, bytes.data, bytes.length), bytes.length}};
    zero_ns = strtoull(strstr(file(), "nano\":\"") + 7, NULL, 10);
    return 0;
}

static int end(void **state)
{
    (void)state;
    if (exporter.free != NULL)
        exporter.free(exporter.state);
    oteli_leaks_check();
    said_end();
    return unlink(path);
}

/* A span; its times are those since the zero of the file, `more` are fields behind those. */
static void add(unsigned trace, unsigned id, unsigned parent, const char *name, int64_t start_ns,
                int64_t end_ns, const char *more)
{
    char of_parent[32] = "";
    if (parent != 0)
        snprintf(of_parent, sizeof of_parent, "4x%016x", parent);
    const otel_slice span =
        wire_text("1x%032x 2x%016x %s 5'%s' 6=1 7@%" PRIu64 " 8@%" PRIu64 " %s", trace, id,
                  of_parent, name, zero_ns + (uint64_t)start_ns, zero_ns + (uint64_t)end_ns, more);
    batch_double_add(&batch, &scope, span.data, span.length);
}
#define ADD(...) add(__VA_ARGS__, "")

static struct export_double export_batch(void)
{
    const otel_slice resource = batch.resource;
    struct export_double call = export_double_of(&batch, UINT64_MAX);
    assert_int_equal(exporter.export_batch(exporter.state, &call.export), OTEL_EXPORT_DONE);
    batch_double_fini(&batch);
    batch.resource = resource;
    return call;
}

static void export_well(void)
{
    const struct export_double call = export_batch();
    assert_int_equal(export_double_lost(&call), 0);
}

#define PROCESS                                                                       \
    "{\"ph\":\"M\",\"pid\":7,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":" \
    "\"shop\"}},\n"                                                                   \
    "{\"ph\":\"M\",\"pid\":7,\"tid\":0,\"name\":\"resource\",\"args\":"               \
    "{\"service.name\":\"shop\",\"process.pid\":7}}"
#define LANE(n)                                                                             \
    ",\n{\"ph\":\"M\",\"pid\":7,\"tid\":" n ",\"name\":\"thread_name\",\"args\":{\"name\":" \
    "\"lane " n "\"}},\n"                                                                   \
    "{\"ph\":\"M\",\"pid\":7,\"tid\":" n ",\"name\":\"thread_sort_index\",\"args\":"        \
    "{\"sort_index\":" n "}}"
#define SPAN(lane, ts, dur, name, trace, id, parent)                                        \
    ",\n{\"ph\":\"X\",\"pid\":7,\"tid\":" lane ",\"ts\":" ts ",\"dur\":" dur                \
    ",\"cat\":\"shop\",\"name\":\"" name                                                    \
    "\",\"args\":{\"trace_id\":\"0000000000000000000000000000000" trace "\",\"span_id\":\"" \
    "000000000000000" id "\"" parent ",\"kind\":\"internal\",\"attributes\":{}}}"
#define PARENT(id) ",\"parent_span_id\":\"000000000000000" id "\""
#define ARROW(name, number, from, from_ts, to, to_ts)                                      \
    ",\n{\"ph\":\"s\",\"pid\":7,\"tid\":" from ",\"ts\":" from_ts ",\"cat\":\"" name       \
    "\",\"name\":\"" name "\",\"id\":" number "},\n"                                       \
    "{\"ph\":\"f\",\"pid\":7,\"tid\":" to ",\"bp\":\"e\",\"ts\":" to_ts ",\"cat\":\"" name \
    "\",\"name\":\"" name "\",\"id\":" number "}"

/* ---- which events --------------------------------------------------------------------- */

AROUND_EACH(begin, end);

TEST(a_trace_waits_for_its_root_and_nests)
{
    ADD(1, 2, 1, "child", 1500, 2501);
    export_well();
    assert_string_equal(events(), "");
    ADD(1, 1, 0, "root", 1000, 1000000);
    export_well();

    assert_string_equal(events(),
                        PROCESS LANE("1") SPAN("1", "1.000", "999.000", "root", "1", "1", "")
                            SPAN("1", "1.500", "1.001", "child", "1", "2", PARENT("1")));
}

TEST(what_runs_beside_its_brother_has_a_lane_and_an_arrow)
{
    ADD(1, 2, 1, "one", 2000, 5000);
    ADD(1, 3, 1, "other", 3000, 6000);
    ADD(1, 1, 0, "root", 1000, 9000);
    export_well();

    assert_string_equal(
        events(), PROCESS LANE("1") LANE("2") SPAN("1", "1.000", "8.000", "root", "1", "1", "")
                      SPAN("1", "2.000", "3.000", "one", "1", "2", PARENT("1"))
                          SPAN("2", "3.000", "3.000", "other", "1", "3", PARENT("1"))
                              ARROW("parent", "1", "1", "1.000", "2", "3.000"));
}

TEST(everything_that_a_span_can_say)
{
    char more[128];
    snprintf(more, sizeof more, "9{1'k' 2{1'v'}} 11{1@%" PRIu64 " 2'e' 3{1'j' 2{}}} 15{2'no' 3=2}",
             zero_ns + 1234);
    add(1, 1, 0, "root", 1000, 9000, more);
    export_well();

    assert_string_equal(
        events(),
        PROCESS LANE("1") ",\n{\"ph\":\"X\",\"pid\":7,\"tid\":1,\"ts\":1.000,\"dur\":8.000,"
                          "\"cat\":\"shop\",\"name\":\"root\",\"cname\":\"terrible\",\"args\":{"
                          "\"trace_id\":\"00000000000000000000000000000001\",\"span_id\":"
                          "\"0000000000000001\",\"kind\":\"internal\",\"status\":\"error\","
                          "\"status_message\":\"no\",\"attributes\":{\"k\":\"v\"}}},\n"
                          "{\"ph\":\"i\",\"pid\":7,\"tid\":1,\"s\":\"t\",\"ts\":1.234,\"cat\":"
                          "\"shop\",\"name\":\"e\",\"args\":{\"span_id\":\"0000000000000001\","
                          "\"attributes\":{\"j\":null}}}");
}

TEST(a_link_is_an_arrow_from_what_was_written_before)
{
    ADD(1, 1, 0, "send", 1000, 2000);
    export_well();
    add(2, 2, 0, "receive", 3000, 4000,
        "13[{1x00000000000000000000000000000001 2x0000000000000001} {2x0000000000000009}]");
    export_well();

    const char *text = events();
    assert_non_null(strstr(text, "\"links\":[{\"trace_id\":\"00000000000000000000000000000001\","
                                 "\"span_id\":\"0000000000000001\",\"attributes\":{}},"
                                 "{\"span_id\":\"0000000000000009\",\"attributes\":{}}]"));
    assert_non_null(strstr(text, ARROW("link", "1", "1", "1.000", "1", "3.000")));
    assert_null(strstr(text, "\"id\":2"));
}

TEST(a_span_with_a_remote_parent_is_a_local_root)
{
    add(1, 2, 9, "served", 1000, 2000, "16^769");
    export_well();

    assert_non_null(strstr(events(), "\"served\""));
}

TEST(times_before_midnight_and_ends_before_starts)
{
    ADD(1, 1, 0, "root", -1500, -2000);
    export_well();

    assert_non_null(strstr(events(), "\"ts\":-1.500,\"dur\":0.000"));
}

TEST(spans_in_a_circle_are_written_once)
{
    ADD(1, 2, 3, "a", 1000, 2000);
    ADD(1, 3, 2, "b", 1000, 2000);
    ADD(1, 4, 4, "c", 1000, 2000);
    export_well();
    assert_int_equal(exporter.flush(exporter.state, 0), OTEL_OK);

    size_t slices = 0;
    for (const char *text = events(); (text = strstr(text, "\"ph\":\"X\"")) != NULL; text++)
        slices++;
    assert_int_equal(slices, 3);
}

/* ---- when, and what if not ------------------------------------------------------------ */

TEST(a_flush_and_the_end_write_what_waits)
{
    ADD(1, 2, 1, "flushed", 1000, 2000);
    export_well();
    assert_int_equal(exporter.flush(exporter.state, 0), OTEL_OK);
    assert_non_null(strstr(events(), "\"flushed\""));
    ADD(1, 3, 1, "at the end", 1000, 2000);
    export_well();
    assert_null(strstr(events(), "\"at the end\""));

    exporter.free(exporter.state);

    assert_non_null(strstr(events(), "\"at the end\""));
    exporter.free = NULL;
}

TEST(what_waits_is_bounded)
{
    for (unsigned i = 0; i < 10001; i++)
        ADD(i & 0xff, i >> 8, 1, "waits", 1000, 2000);
    export_well();

    assert_non_null(strstr(file(), "\"waits\""));
}

/* As when the disk is full: part of it still fits. */
TEST(what_does_not_fit_is_taken_back_and_counted)
{
    struct rlimit before, low;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = before;
    low.rlim_cur = 300;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0); /* with SIGXFSZ as it always is */
    ADD(1, 1, 0, "lost", 1000, 2000);
    const struct export_double lost = export_batch();
    char between[sizeof path];
    snprintf(between, sizeof between, "%.63s", events());
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    ADD(2, 1, 0, "kept", 3000, 4000);
    export_well();

    assert_int_equal(lost.dropped[OTEL_DROP_PERMANENT_ERROR], 1);
    assert_string_equal(between, "");
    assert_string_equal(events(),
                        PROCESS LANE("1") SPAN("1", "3.000", "1.000", "kept", "2", "1", ""));
}

/* R47: a program closes what it does not know, and opens its own. */
TEST(what_has_taken_the_place_of_the_file_is_left_alone)
{
    char theirs[] = "/tmp/otel-perfetto-theirs-XXXXXX";
    struct stat known, named, now;
    int number = 3;
    assert_int_equal(stat(path, &named), 0);
    while (fstat(number, &now) != 0 || now.st_ino != named.st_ino || now.st_dev != named.st_dev)
        number++;
    const int fd = mkstemp(theirs);
    assert_int_equal(unlink(theirs), 0);
    assert_int_equal(write(fd, "theirs", 6), 6);
    assert_int_equal(dup3(fd, number, O_CLOEXEC), number);
    assert_int_equal(fstat(fd, &known), 0);
    close(fd);

    ADD(1, 1, 0, "lost", 1000, 2000);
    const struct export_double lost = export_batch();
    exporter.free(exporter.state);
    const int found = fstat(number, &now);
    assert_int_equal(otel_perfetto_exporter_new(path, &exporter), OTEL_OK);

    assert_int_equal(lost.dropped[OTEL_DROP_PERMANENT_ERROR], 1);
    assert_int_equal(found, 0);
    assert_true(now.st_ino == known.st_ino && now.st_size == 6);
    close(number);
}

TEST(what_cannot_be_is_refused)
{
    otel_exporter other;
    assert_null(exporter.renew); /* a child has none */
    assert_int_equal(otel_perfetto_exporter_new(NULL, &other), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_perfetto_exporter_new(path, NULL), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_perfetto_exporter_new("/nowhere/at/all", &other), OTEL_ERROR_SYSTEM);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(otel_perfetto_exporter_new("/dev/full", &other), OTEL_ERROR_SYSTEM);
    assert_int_equal(errno, EINVAL);
}

TEST(without_memory_spans_are_counted_and_the_file_is_json)
{
    exporter.free(exporter.state);
    exporter.free = NULL;
    for (size_t nth = 1;; nth++) {
        otel_exporter other;
        ADD(1, 2, 1, "child", 1000, 2000);
        ADD(1, 1, 0, "root", 1000, 2000);
        struct export_double call = export_double_of(&batch, UINT64_MAX);
        oteli_leaks_fail_at(nth);
        const otel_status made = otel_perfetto_exporter_new(path, &other);
        if (made == OTEL_OK) {
            (void)other.export_batch(other.state, &call.export);
            other.free(other.state);
            (void)file();
        }
        const bool all_tried = !oteli_leaks_failed();
        const otel_slice resource = batch.resource;
        batch_double_fini(&batch);
        batch.resource = resource;
        if (all_tried)
            break;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exporters/file_test.c - specification of the exporters otlp/file and otlp/stdout: what is in
 * the file, whatever happens to it, and who is never waited for. */
#include <otel/file.h>

#include "common/wire.h"
#include "exporters/file/sink.h"
#include "tests/support/batch_double.h"
#include "tests/support/json_check.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 300000 }; /* more than a pipe holds */

static const otel_scope_view scope;
static char folder[64];
static char path[96];
static char content[2 * LARGE];

static void silent(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    (void)message;
}

static int begin(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/otel-file-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/spans.jsonl", folder);
    otel_log_set_handler(silent, NULL);
    oteli_leaks_begin();
    return 0;
}

static const char *numbered(int number)
{
    static char name[128];
    snprintf(name, sizeof name, "%s.%d", path, number);
    return name;
}

static int end(void **state)
{
    (void)state;
    oteli_leaks_check();
    otel_log_set_handler(NULL, NULL);
    for (int i = 1; i < 10; i++)
        (void)unlink(numbered(i));
    (void)unlink(path);
    return rmdir(folder);
}

static otel_exporter open_exporter(const otel_file_options *options)
{
    otel_exporter exporter;
    assert_int_equal(otel_file_exporter_new(options, &exporter), OTEL_OK);
    return exporter;
}

/* A batch of one span, whose name is so many times this letter. */
static struct batch_double batch_of(char letter, size_t count)
{
    struct batch_double batch = {0};
    static uint8_t bytes[LARGE + 16];
    uint8_t *at = oteli_put_bytes_head(bytes, 5, count);
    memset(at, letter, count);
    batch_double_add(&batch, &scope, bytes, (size_t)(at - bytes) + count);
    return batch;
}

/* Export a batch to its end. Returns what the call was told. */
static struct export_double export_name(const otel_exporter *exporter, char letter, size_t count)
{
    struct batch_double batch = batch_of(letter, count);
    struct export_double call = export_double_of(&batch, UINT64_MAX);
    assert_int_equal(exporter->export_batch(exporter->state, &call.export), OTEL_EXPORT_DONE);
    batch_double_fini(&batch);
    return call;
}

static void export_well(const otel_exporter *exporter, char letter)
{
    const struct export_double call = export_name(exporter, letter, 1);
    assert_int_equal(export_double_lost(&call), 0);
}

/* The letters of the lines in a text, each of which must be valid. */
static const char *letters_in(const char *text, size_t length)
{
    static char letters[64];
    size_t count = 0;
    while (length != 0) {
        const char *newline = memchr(text, '\n', length);
        assert_non_null(newline);
        const size_t line = (size_t)(newline - text);
        assert_true(json_is_valid(text, line));
        const char *name = memmem(text, line, "\"name\":\"", 8);
        assert_non_null(name);
        letters[count++] = name[8];
        text += line + 1;
        length -= line + 1;
    }
    letters[count] = '\0';
    return letters;
}

static const char *letters_of(const char *file)
{
    const int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return "no file";
    const ssize_t length = read(fd, content, sizeof content);
    close(fd);
    assert_true(length >= 0);
    return letters_in(content, (size_t)length);
}

/* ---- files ---------------------------------------------------------------------------- */

AROUND_EACH(begin, end);

/* spec: X20 */
TEST(X20_each_batch_is_a_line_behind_what_is_there)
{
    for (const char *letter = "abc"; *letter != '\0'; letter++) {
        const otel_exporter exporter = open_exporter(OTEL_FILE_OPTIONS(.path = path));
        export_well(&exporter, *letter);
        exporter.free(exporter.state);
    }

    assert_string_equal(letters_of(path), "abc");
    assert_int_equal(strlen("{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},"
                            "\"spans\":[{\"name\":\"a\",\"kind\":1}]}]}]}"),
                     strcspn(content, "\n"));
}

TEST(a_file_that_would_become_too_large_is_renamed)
{
    const otel_exporter exporter =
        open_exporter(OTEL_FILE_OPTIONS(.path = path, .max_bytes = 250, .max_files = 2));

    for (const char *letter = "abcdefgh"; *letter != '\0'; letter++) /* two lines fit */
        export_well(&exporter, *letter);
    const struct export_double large = export_name(&exporter, 'L', 1000);
    export_well(&exporter, 'z');

    assert_int_equal(export_double_lost(&large), 0);
    assert_string_equal(letters_of(path), "z");
    assert_string_equal(letters_of(numbered(1)), "L");
    assert_string_equal(letters_of(numbered(2)), "gh");
    assert_string_equal(letters_of(numbered(3)), "no file");
    exporter.free(exporter.state);
}

TEST(three_renamed_files_are_kept_by_default)
{
    const otel_exporter exporter = open_exporter(OTEL_FILE_OPTIONS(.path = path, .max_bytes = 1));

    for (const char *letter = "abcdef"; *letter != '\0'; letter++)
        export_well(&exporter, *letter);

    assert_string_equal(letters_of(path), "f");
    assert_string_equal(letters_of(numbered(3)), "c");
    assert_string_equal(letters_of(numbered(4)), "no file");
    exporter.free(exporter.state);
}

TEST(two_that_share_a_file_rotate_it_once)
{
    const otel_file_options *options = OTEL_FILE_OPTIONS(.path = path, .max_bytes = 250);
    const otel_exporter one = open_exporter(options);
    const otel_exporter other = open_exporter(options);

    export_well(&one, 'a');
    export_well(&other, 'b');
    export_well(&one, 'c');
    export_well(&other, 'd');
    export_well(&other, 'e');

    assert_string_equal(letters_of(numbered(1)), "cd");
    assert_string_equal(letters_of(numbered(2)), "ab");
    assert_string_equal(letters_of(path), "e");
    one.free(one.state);
    other.free(other.state);
}

TEST(who_renames_the_file_finds_the_rest_in_a_new_one)
{
    const otel_exporter exporter = open_exporter(OTEL_FILE_OPTIONS(.path = path));
    export_well(&exporter, 'a');
    assert_int_equal(rename(path, numbered(7)), 0);

    export_well(&exporter, 'b');

    assert_string_equal(letters_of(numbered(7)), "a");
    assert_string_equal(letters_of(path), "b");
    exporter.free(exporter.state);
}

TEST(the_program_may_change_its_directory)
{
    char before[256];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    const otel_exporter exporter =
        open_exporter(OTEL_FILE_OPTIONS(.path = "spans.jsonl", .max_bytes = 1));
    assert_int_equal(chdir(before), 0);

    export_well(&exporter, 'a');
    export_well(&exporter, 'b');

    assert_string_equal(letters_of(numbered(1)), "a");
    assert_string_equal(letters_of(path), "b");
    exporter.free(exporter.state);
}

/* As when the disk is full: part of a line still fits. */
TEST(a_line_that_does_not_fit_is_cut_off_and_counted)
{
    struct rlimit before, low;
    const otel_exporter exporter = open_exporter(OTEL_FILE_OPTIONS(.path = path));
    export_well(&exporter, 'a');
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = before;
    low.rlim_cur = 150;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0); /* with SIGXFSZ as it always is */
    const struct export_double lost = export_name(&exporter, 'b', 100);
    const char *letters = letters_of(path);
    char torn[8];
    snprintf(torn, sizeof torn, "%s", letters);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    export_well(&exporter, 'c');

    assert_int_equal(lost.dropped[OTEL_DROP_PERMANENT_ERROR], 1);
    assert_string_equal(torn, "a");
    assert_string_equal(letters_of(path), "ac");
    exporter.free(exporter.state);
}

TEST(a_full_device_drops_and_counts)
{
    const otel_exporter exporter = open_exporter(OTEL_FILE_OPTIONS(.path = "/dev/full"));

    const struct export_double call = export_name(&exporter, 'a', 1);

    assert_int_equal(call.dropped[OTEL_DROP_PERMANENT_ERROR], 1);
    exporter.free(exporter.state);
}

/* 0, or the number of the step that failed. */
static int write_in_child(const otel_exporter *parents)
{
    otel_exporter renewed;
    if (parents->renew(parents->state, &renewed) != OTEL_OK)
        return 1;
    struct batch_double batch = batch_of('c', 1);
    struct export_double call = export_double_of(&batch, UINT64_MAX);
    if (renewed.export_batch(renewed.state, &call.export) != OTEL_EXPORT_DONE)
        return 2;
    renewed.free(renewed.state);
    return export_double_lost(&call) != 0 ? 3 : 0;
}

TEST(a_child_appends_lines_of_its_own)
{
    int status;
    const otel_exporter exporter = open_exporter(OTEL_FILE_OPTIONS(.path = path));
    export_well(&exporter, 'a');

    const pid_t child = fork();
    if (child == 0)
        _exit(write_in_child(&exporter));
    assert_int_equal(waitpid(child, &status, 0), child);
    export_well(&exporter, 'b');

    assert_int_equal(status, 0);
    assert_string_equal(letters_of(path), "acb");
    exporter.free(exporter.state);
}

TEST(what_cannot_be_is_refused)
{
    otel_exporter exporter;
    char missing[128];
    snprintf(missing, sizeof missing, "%s/missing/spans", folder);

    assert_int_equal(otel_file_exporter_new(NULL, NULL), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(
        otel_file_exporter_new(OTEL_FILE_OPTIONS(.path = path, .max_bytes = -1), &exporter),
        OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(
        otel_file_exporter_new(OTEL_FILE_OPTIONS(.path = path, .max_files = -1), &exporter),
        OTEL_ERROR_INVALID_ARGUMENT);
    errno = 0;
    assert_int_equal(otel_file_exporter_new(OTEL_FILE_OPTIONS(.path = missing), &exporter),
                     OTEL_ERROR_SYSTEM);
    assert_int_equal(errno, ENOENT);
}

TEST(without_memory_spans_are_counted_and_nothing_leaks)
{
    for (size_t nth = 1;; nth++) {
        otel_exporter exporter;
        struct batch_double batch = batch_of('a', 5000);
        struct export_double call = export_double_of(&batch, UINT64_MAX);
        oteli_leaks_fail_at(nth);
        const otel_status made = otel_file_exporter_new(OTEL_FILE_OPTIONS(.path = path), &exporter);
        if (made == OTEL_OK) {
            (void)exporter.export_batch(exporter.state, &call.export);
            exporter.free(exporter.state);
        }
        const bool all_tried = !oteli_leaks_failed();
        oteli_leaks_fail_at(0);
        batch_double_fini(&batch);
        if (all_tried)
            break;
        assert_true(made == OTEL_ERROR_NO_MEMORY || call.dropped[OTEL_DROP_NO_MEMORY] == 1);
    }
    assert_string_equal(letters_of(path), "a");
}

/* ---- what may have no room ------------------------------------------------------------ */

struct stream {
    int reader;
    otel_exporter exporter;
    struct batch_double batch;
    struct export_double call;
};

static struct stream open_fifo(void)
{
    struct stream stream = {0};
    assert_int_equal(mkfifo(path, 0600), 0);
    stream.reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    stream.exporter = open_exporter(OTEL_FILE_OPTIONS(.path = path));
    return stream;
}

static void close_stream(struct stream *stream)
{
    stream->exporter.free(stream->exporter.state);
    close(stream->reader);
    batch_double_fini(&stream->batch);
}

static otel_export_result begin_export(struct stream *stream, char letter, size_t count)
{
    batch_double_fini(&stream->batch);
    stream->batch = batch_of(letter, count);
    stream->call = export_double_of(&stream->batch, UINT64_MAX);
    return stream->exporter.export_batch(stream->exporter.state, &stream->call.export);
}

static otel_export_result poll_now(struct stream *stream, bool abandon)
{
    return stream->exporter.poll(stream->exporter.state, &stream->call.export, 0, abandon);
}

/* Take what is in the pipe behind what has been taken. */
static size_t take(const struct stream *stream, size_t length)
{
    ssize_t got;
    while ((got = read(stream->reader, content + length, sizeof content - length)) > 0)
        length += (size_t)got;
    return length;
}

TEST(a_full_pipe_is_pending_until_somebody_reads)
{
    struct stream stream = open_fifo();
    size_t length = 0;

    assert_int_equal(begin_export(&stream, 'a', LARGE), OTEL_EXPORT_PENDING);
    assert_int_equal(poll_now(&stream, false), OTEL_EXPORT_PENDING);
    do
        length = take(&stream, length);
    while (poll_now(&stream, false) == OTEL_EXPORT_PENDING);
    length = take(&stream, length);

    assert_int_equal(export_double_lost(&stream.call), 0);
    assert_true(length > LARGE);
    assert_string_equal(letters_in(content, length), "a");
    close_stream(&stream);
}

TEST(a_line_that_was_begun_is_finished_before_the_next)
{
    struct stream stream = open_fifo();
    assert_int_equal(begin_export(&stream, 'a', LARGE), OTEL_EXPORT_PENDING);
    assert_int_equal(poll_now(&stream, true), OTEL_EXPORT_DONE);
    const size_t unconfirmed = stream.call.dropped[OTEL_DROP_UNCONFIRMED];
    assert_int_equal(begin_export(&stream, 'b', 1), OTEL_EXPORT_PENDING); /* behind it */
    assert_int_equal(poll_now(&stream, true), OTEL_EXPORT_DONE);
    const size_t too_late = stream.call.dropped[OTEL_DROP_EXPORT_TIMEOUT];

    assert_int_equal(begin_export(&stream, 'c', 1), OTEL_EXPORT_PENDING);
    size_t length = 0;
    do
        length = take(&stream, length);
    while (poll_now(&stream, false) == OTEL_EXPORT_PENDING);
    length = take(&stream, length);

    assert_int_equal(unconfirmed, 1);
    assert_int_equal(too_late, 1);
    assert_int_equal(export_double_lost(&stream.call), 0);
    assert_string_equal(letters_in(content, length), "ac");
    close_stream(&stream);
}

TEST(a_flush_finishes_what_was_begun_or_says_that_it_could_not)
{
    struct stream stream = open_fifo();
    size_t length = 0;
    assert_int_equal(begin_export(&stream, 'a', LARGE), OTEL_EXPORT_PENDING);
    assert_int_equal(poll_now(&stream, true), OTEL_EXPORT_DONE);

    const otel_status too_soon = stream.exporter.flush(stream.exporter.state, 0);
    do
        length = take(&stream, length);
    while (stream.exporter.flush(stream.exporter.state, 0) != OTEL_OK);
    length = take(&stream, length);

    assert_int_equal(too_soon, OTEL_ERROR_TIMEOUT);
    assert_string_equal(letters_in(content, length), "a");
    close_stream(&stream);
}

TEST(a_wake_ends_the_wait_for_room)
{
    struct stream stream = open_fifo();
    assert_int_equal(begin_export(&stream, 'a', LARGE), OTEL_EXPORT_PENDING);

    stream.exporter.wake(stream.exporter.state);
    const otel_export_result result =
        stream.exporter.poll(stream.exporter.state, &stream.call.export, INT32_MAX, false);

    assert_int_equal(result, OTEL_EXPORT_PENDING);
    close_stream(&stream);
}

TEST(a_reader_that_has_gone_costs_the_spans_and_nothing_else)
{
    sigset_t pending;
    struct stream stream = open_fifo();
    assert_int_equal(begin_export(&stream, 'a', 1), OTEL_EXPORT_DONE);
    close(stream.reader);

    assert_int_equal(begin_export(&stream, 'b', 1), OTEL_EXPORT_DONE); /* SIGPIPE would kill */
    const size_t dropped = stream.call.dropped[OTEL_DROP_PERMANENT_ERROR];
    stream.reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(begin_export(&stream, 'c', 1), OTEL_EXPORT_DONE);

    assert_int_equal(dropped, 1);
    assert_int_equal(export_double_lost(&stream.call), 0);
    assert_string_equal(letters_in(content, take(&stream, 0)), "ac");
    assert_int_equal(sigpending(&pending), 0);
    assert_false(sigismember(&pending, SIGPIPE));
    close_stream(&stream);
}

TEST(a_fifo_that_nobody_reads_is_no_file)
{
    otel_exporter exporter;
    assert_int_equal(mkfifo(path, 0600), 0);

    assert_int_equal(otel_file_exporter_new(OTEL_FILE_OPTIONS(.path = path), &exporter),
                     OTEL_ERROR_SYSTEM);
    assert_int_equal(errno, ENXIO);
}

/* ---- stdout --------------------------------------------------------------------------- */

/* In a child whose stdout is this: export a, and a large one. 0, or the step that failed. */
static int write_to_stdout(int fd, size_t large)
{
    otel_exporter exporter;
    if (dup2(fd, STDOUT_FILENO) < 0 || otel_file_exporter_new(NULL, &exporter) != OTEL_OK)
        return 1;
    struct batch_double small = batch_of('a', 1);
    struct export_double first = export_double_of(&small, UINT64_MAX);
    if (exporter.export_batch(exporter.state, &first.export) != OTEL_EXPORT_DONE ||
        export_double_lost(&first) != 0)
        return 2;
    if (large != 0) {
        struct batch_double batch = batch_of('L', large);
        struct export_double call = export_double_of(&batch, UINT64_MAX);
        otel_export_result result = exporter.export_batch(exporter.state, &call.export);
        while (result == OTEL_EXPORT_PENDING)
            result = exporter.poll(exporter.state, &call.export, 10000, false);
        if (export_double_lost(&call) != 0)
            return 3;
    }
    exporter.free(exporter.state);
    return (fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK) != 0 ? 4 : 0;
}

static void assert_stdout(int reader, int writer, size_t large, const char *letters)
{
    int status;
    size_t length = 0;
    ssize_t got;
    const pid_t child = fork();
    if (child == 0) {
        close(reader);
        _exit(write_to_stdout(writer, large));
    }
    close(writer);
    while ((got = read(reader, content + length, sizeof content - length)) > 0)
        length += (size_t)got;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(letters_in(content, length), letters);
    close(reader);
}

/* spec: X20 */
TEST(X20_stdout_is_the_default_whatever_it_is)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_stdout(ends[0], ends[1], LARGE, "aL");
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_stdout(ends[0], ends[1], LARGE, "aL");
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const int same = open(path, O_RDONLY | O_CLOEXEC);
    int status;
    const pid_t child = fork();
    if (child == 0)
        _exit(write_to_stdout(file, 0));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(write(file, "behind\n", 7), 7); /* at the offset that they share */
    const ssize_t length = read(same, content, sizeof content);
    assert_true(length > 7);
    assert_memory_equal(content + length - 7, "behind\n", 7);
    assert_string_equal(letters_in(content, (size_t)length - 7), "a");
    close(file);
    close(same);
}

/* As after a change of the user, when the pipe cannot be opened anew. */
TEST(a_pipe_that_blocks_is_given_only_what_it_has_room_for)
{
    static const char text[LARGE];
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const struct oteli_sink sink = {.held = oteli_held_of(ends[1]), .kind = OTELI_SINK_WAITING};
    size_t sent = 0;
    ssize_t piece;

    while ((piece = oteli_sink_push(&sink, text, sizeof text)) > 0)
        sent += (size_t)piece;
    assert_int_equal(piece, 0);
    assert_true(sent > 0 && sent < sizeof text);
    assert_int_equal(read(ends[0], content, sent), sent);
    assert_true(oteli_sink_push(&sink, text, sizeof text) > 0);
    close(ends[0]);
    assert_int_equal(oteli_sink_push(&sink, text, sizeof text), -1);

    assert_int_equal(errno, EPIPE);
    close(ends[1]);
}

TEST(without_stdout_there_is_no_exporter)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        otel_exporter exporter;
        close(STDOUT_FILENO);
        _exit(otel_file_exporter_new(NULL, &exporter) != OTEL_ERROR_SYSTEM);
    }
    assert_int_equal(waitpid(child, &status, 0), child);

    assert_int_equal(status, 0);
}

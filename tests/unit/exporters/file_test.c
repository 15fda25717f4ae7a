/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exporters/file_test.c - specification of the exporters otlp/file and otlp/stdout: what
 * is in the file, whatever happens to it, who is never waited for, and what a program puts in the
 * places of descriptors that it does not know (R47). */
#include <otel/file.h>

#include "common/wire.h"
#include "exporters/file/file_sink.h"
#include "tests/support/batch_double.h"
#include "tests/support/json_check.h"
#include "tests/support/leaks.h"
#include "tests/support/said.h"
#include "tests/support/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGE = 300000 /* more than a pipe holds */, PLACES = 8, FAR = 100, NONE = -1 };

static const otel_scope_view scope;
static char folder[64];
static char path[96];
static char content[2 * LARGE];
static otel_exporter exporter;    /* of the test, freed at its end */
static struct batch_double batch; /* that was exported last, */
static struct export_double call; /* and what the exporter said of it */
static int reader = NONE;         /* of a FIFO */

static int begin(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/otel-file-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/spans.jsonl", folder);
    said_begin(OTEL_LOG_WARN);
    oteli_leaks_begin();
    return 0;
}

static const char *numbered(int number)
{
    static char name[128];
    snprintf(name, sizeof name, number != 0 ? "%s.%d" : "%s", path, number);
    return name;
}

static void free_exporter(void)
{
    if (exporter.free != NULL)
        exporter.free(exporter.state);
    exporter.free = NULL;
}

static int end(void **state)
{
    (void)state;
    free_exporter();
    batch_double_fini(&batch);
    if (reader != NONE)
        close(reader);
    reader = NONE;
    oteli_leaks_check();
    said_end();
    for (int i = 0; i < 10; i++)
        (void)unlink(numbered(i));
    return rmdir(folder);
}

static otel_exporter new_exporter(const otel_file_options *options)
{
    otel_exporter made;
    assert_int_equal(otel_file_exporter_new(options, &made), OTEL_OK);
    return made;
}

static void open_file(void)
{
    exporter = new_exporter(OTEL_FILE_OPTIONS(.path = path));
}

/* A span, whose name is so many times this letter. */
static void fill_batch(char letter, size_t count)
{
    static uint8_t bytes[LARGE + 16];
    uint8_t *at = oteli_put_bytes_head(bytes, 5, count);
    memset(at, letter, count);
    batch_double_fini(&batch);
    batch_double_add(&batch, &scope, bytes, (size_t)(at - bytes) + count);
    call = export_double_of(&batch, UINT64_MAX);
}

static otel_export_result begin_export(const otel_exporter *to, char letter, size_t count)
{
    fill_batch(letter, count);
    return to->export_batch(to->state, &call.export);
}

/* Gives how many were lost. */
static size_t export_to(const otel_exporter *to, char letter, size_t count)
{
    assert_int_equal(begin_export(to, letter, count), OTEL_EXPORT_DONE);
    return export_double_lost(&call);
}

/* A span for each letter; those of capital ones are long. */
static void export_well(const otel_exporter *to, const char *letters)
{
    for (; *letters != '\0'; letters++)
        assert_int_equal(export_to(to, *letters, *letters < 'a' ? 1000 : 1), 0);
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
        return NULL;
    const ssize_t length = read(fd, content, sizeof content);
    close(fd);
    assert_true(length >= 0);
    return letters_in(content, (size_t)length);
}

/* The letters in the file, and of those that it was renamed to. */
static void assert_files(const char *expected)
{
    char text[128] = "";
    const char *letters;
    for (int i = 0; (letters = letters_of(numbered(i))) != NULL; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i != 0 ? " " : "",
                 letters);
    assert_string_equal(text, expected);
}

/* ---- files ---------------------------------------------------------------------------- */

AROUND_EACH(begin, end);

/* spec: X20 */
TEST(X20_each_batch_is_a_line_behind_what_is_there)
{
    for (const char *letter = "abc"; *letter != '\0'; letter++) {
        open_file();
        assert_int_equal(export_to(&exporter, *letter, 1), 0);
        free_exporter();
    }

    assert_files("abc");
    assert_int_equal(strlen("{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},"
                            "\"spans\":[{\"name\":\"a\"}]}]}]}"),
                     strcspn(content, "\n"));
}

/* Two lines fit into 250 bytes. */
TEST(a_file_that_would_become_too_large_is_renamed)
{
    static const struct {
        int64_t bytes;
        int32_t files; /* 0: the default, which is three */
        const char *letters, *expected;
    } table[] = {{250, 2, "abcdefghLz", "z L gh"}, {1, 0, "abcdef", "f e d c"}};
    for (size_t i = 0; i < 2; i++) {
        exporter = new_exporter(OTEL_FILE_OPTIONS(.path = path, .max_bytes = table[i].bytes,
                                                  .max_files = table[i].files));
        export_well(&exporter, table[i].letters);
        assert_files(table[i].expected);
        (void)end(NULL);
        (void)begin(NULL);
    }
}

TEST(two_that_share_a_file_rotate_it_once)
{
    const otel_file_options *options = OTEL_FILE_OPTIONS(.path = path, .max_bytes = 250);
    exporter = new_exporter(options);
    const otel_exporter other = new_exporter(options);

    for (const char *letter = "abcd"; *letter != '\0'; letter++)
        assert_int_equal(export_to(*letter % 2 != 0 ? &exporter : &other, *letter, 1), 0);
    export_well(&other, "e");

    assert_files("e cd ab");
    other.free(other.state);
}

TEST(who_renames_the_file_finds_the_rest_in_a_new_one)
{
    open_file();
    export_well(&exporter, "a");
    assert_int_equal(rename(path, numbered(1)), 0);

    export_well(&exporter, "b");

    assert_files("b a");
}

TEST(the_program_may_change_its_directory)
{
    char before[256];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    exporter = new_exporter(OTEL_FILE_OPTIONS(.path = "spans.jsonl", .max_bytes = 1));
    assert_int_equal(chdir(before), 0);

    export_well(&exporter, "ab");

    assert_files("b a");
}

/* As when the disk is full: part of a line still fits. */
TEST(a_line_that_does_not_fit_is_cut_off_and_counted)
{
    struct rlimit before, low;
    open_file();
    export_well(&exporter, "a");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = before;
    low.rlim_cur = 150;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0); /* with SIGXFSZ as it always is */
    (void)export_to(&exporter, 'b', 100);
    const size_t lost = call.dropped[OTEL_DROP_PERMANENT_ERROR];
    const bool is_torn = strcmp(letters_of(path), "a") != 0;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    export_well(&exporter, "c");

    assert_int_equal(lost, 1);
    assert_false(is_torn);
    assert_files("ac");
}

static int write_in_child(void)
{
    otel_exporter renewed;
    if (exporter.renew(exporter.state, &renewed) != OTEL_OK)
        return 1;
    const size_t lost = export_to(&renewed, 'c', 1);
    renewed.free(renewed.state);
    return lost != 0 ? 2 : 0;
}

TEST(a_child_appends_lines_of_its_own)
{
    open_file();
    export_well(&exporter, "a");
    check_child(write_in_child);
    export_well(&exporter, "b");
    assert_files("acb");
}

TEST(what_cannot_be_is_refused)
{
    otel_exporter none;
    char missing[128];
    snprintf(missing, sizeof missing, "%s/missing/spans", folder);

    assert_int_equal(otel_file_exporter_new(NULL, NULL), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(
        otel_file_exporter_new(OTEL_FILE_OPTIONS(.path = path, .max_bytes = -1), &none),
        OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(
        otel_file_exporter_new(OTEL_FILE_OPTIONS(.path = path, .max_files = -1), &none),
        OTEL_ERROR_INVALID_ARGUMENT);
    errno = 0;
    assert_int_equal(otel_file_exporter_new(OTEL_FILE_OPTIONS(.path = missing), &none),
                     OTEL_ERROR_SYSTEM);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(mkfifo(path, 0600), 0); /* that nobody reads */
    assert_int_equal(otel_file_exporter_new(OTEL_FILE_OPTIONS(.path = path), &none),
                     OTEL_ERROR_SYSTEM);
    assert_int_equal(errno, ENXIO);
}

TEST(without_memory_spans_are_counted_and_nothing_leaks)
{
    bool all_tried = false;
    for (size_t nth = 1; !all_tried; nth++) {
        fill_batch('a', 5000);
        oteli_leaks_fail_at(nth);
        const otel_status made = otel_file_exporter_new(OTEL_FILE_OPTIONS(.path = path), &exporter);
        if (made == OTEL_OK) {
            (void)exporter.export_batch(exporter.state, &call.export);
            free_exporter();
        }
        all_tried = !oteli_leaks_failed();
        assert_true(all_tried || made == OTEL_ERROR_NO_MEMORY ||
                    call.dropped[OTEL_DROP_NO_MEMORY] == 1);
    }
    exporter.free = NULL;
    assert_files("a");
}

/* ---- what may have no room ------------------------------------------------------------ */

static void open_fifo(void)
{
    assert_int_equal(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    open_file();
}

static otel_export_result poll_now(bool abandon)
{
    return exporter.poll(exporter.state, &call.export, 0, abandon);
}

/* Take what is in the pipe behind what has been taken. */
static size_t take(size_t length)
{
    ssize_t got;
    while ((got = read(reader, content + length, sizeof content - length)) > 0)
        length += (size_t)got;
    return length;
}

/* The letters of all that comes until the exporter has no more. */
static const char *take_all(void)
{
    size_t length = 0;
    do
        length = take(length);
    while (poll_now(false) == OTEL_EXPORT_PENDING);
    return letters_in(content, take(length));
}

TEST(a_full_pipe_is_pending_until_somebody_reads)
{
    open_fifo();
    assert_int_equal(begin_export(&exporter, 'a', LARGE), OTEL_EXPORT_PENDING);
    assert_int_equal(poll_now(false), OTEL_EXPORT_PENDING);
    assert_int_equal(exporter.poll(exporter.state, &call.export, INT32_MAX, false),
                     OTEL_EXPORT_PENDING);

    assert_string_equal(take_all(), "a");
    assert_int_equal(export_double_lost(&call), 0);
}

TEST(a_line_that_was_begun_is_finished_before_the_next)
{
    open_fifo();
    assert_int_equal(begin_export(&exporter, 'a', LARGE), OTEL_EXPORT_PENDING);
    assert_int_equal(poll_now(true), OTEL_EXPORT_DONE);
    assert_int_equal(call.dropped[OTEL_DROP_UNCONFIRMED], 1);
    assert_int_equal(begin_export(&exporter, 'b', 1), OTEL_EXPORT_PENDING); /* behind it */
    assert_int_equal(poll_now(true), OTEL_EXPORT_DONE);
    assert_int_equal(call.dropped[OTEL_DROP_EXPORT_TIMEOUT], 1);

    assert_int_equal(begin_export(&exporter, 'c', 1), OTEL_EXPORT_PENDING);
    assert_string_equal(take_all(), "ac");
    assert_int_equal(export_double_lost(&call), 0);
}

TEST(a_flush_finishes_what_was_begun_or_says_that_it_could_not)
{
    open_fifo();
    size_t length = 0;
    assert_int_equal(begin_export(&exporter, 'a', LARGE), OTEL_EXPORT_PENDING);
    assert_int_equal(poll_now(true), OTEL_EXPORT_DONE);

    assert_int_equal(exporter.flush(exporter.state, 0), OTEL_ERROR_TIMEOUT);
    do
        length = take(length);
    while (exporter.flush(exporter.state, 0) != OTEL_OK);
    assert_string_equal(letters_in(content, take(length)), "a");
    /* An end writes what there is room for. */
    assert_int_equal(begin_export(&exporter, 'b', LARGE), OTEL_EXPORT_PENDING);
}

TEST(a_reader_that_has_gone_costs_the_spans_and_nothing_else)
{
    sigset_t pending;
    open_fifo();
    export_well(&exporter, "a");
    close(reader);

    (void)export_to(&exporter, 'b', 1); /* SIGPIPE would kill */
    assert_int_equal(call.dropped[OTEL_DROP_PERMANENT_ERROR], 1);
    reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    export_well(&exporter, "c");

    assert_string_equal(letters_in(content, take(0)), "ac");
    assert_int_equal(sigpending(&pending), 0);
    assert_false(sigismember(&pending, SIGPIPE));
}

/* ---- stdout --------------------------------------------------------------------------- */

/* In a child whose stdout is this: export a, and a long one. 0, or the step that failed. */
static int write_to_stdout(int fd)
{
    if (dup2(fd, STDOUT_FILENO) < 0 || otel_file_exporter_new(NULL, &exporter) != OTEL_OK)
        return 1;
    if (begin_export(&exporter, 'a', 1) != OTEL_EXPORT_DONE || export_double_lost(&call) != 0)
        return 2;
    otel_export_result result = begin_export(&exporter, 'L', LARGE);
    while (result == OTEL_EXPORT_PENDING)
        result = exporter.poll(exporter.state, &call.export, 10000, false);
    free_exporter();
    return export_double_lost(&call) != 0 ? 3 : (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0 ? 4 : 0;
}

static pid_t fork_writer(int fd)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(write_to_stdout(fd));
    return child;
}

/* spec: X20 */
TEST(X20_stdout_is_the_default_whatever_it_is)
{
    for (int is_socket = 0; is_socket < 2; is_socket++) {
        int ends[2];
        assert_int_equal(is_socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)
                                   : pipe2(ends, O_CLOEXEC),
                         0);
        const pid_t child = fork_writer(ends[1]);
        close(ends[1]);
        size_t length = 0;
        for (ssize_t got = 1; got > 0; length += (size_t)got)
            got = read(ends[0], content + length, sizeof content - length);
        close(ends[0]);
        check_forked(child);
        assert_string_equal(letters_in(content, length), "aL");
    }
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const int same = open(path, O_RDONLY | O_CLOEXEC);
    check_forked(fork_writer(file));
    assert_int_equal(write(file, "behind\n", 7), 7); /* at the offset that they share */
    const ssize_t length = read(same, content, sizeof content);
    assert_true(length > 7);
    assert_memory_equal(content + length - 7, "behind\n", 7);
    assert_string_equal(letters_in(content, (size_t)length - 7), "aL");
    close(file);
    close(same);
}

/* As after a change of the user, when the pipe cannot be opened anew. */
TEST(a_pipe_that_blocks_is_given_only_what_it_has_room_for)
{
    static const char text[LARGE];
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const struct oteli_sink sink = {.held = oteli_owned_fd_of(ends[1]), .kind = OTELI_SINK_WAITING};
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

/* ---- places --------------------------------------------------------------------------- */

/* The numbers that descriptors get next, and what the program puts there. */
struct places {
    int first;
    int kept; /* one of them, which stays what it is; NONE: none does */
    struct stat there;
};

static struct places next_places(void)
{
    const int first = dup(STDERR_FILENO);
    assert_true(first >= 0);
    close(first);
    return (struct places){.first = first, .kept = NONE};
}

static void take_places(struct places *places)
{
    FILE *own = tmpfile();
    assert_non_null(own);
    assert_int_equal(dup3(fileno(own), FAR, O_CLOEXEC), FAR);
    assert_int_equal(fclose(own), 0);
    for (int i = places->first; i < places->first + PLACES; i++)
        if (i != places->kept)
            assert_int_equal(dup3(FAR, i, O_CLOEXEC), i);
    assert_int_equal(fstat(FAR, &places->there), 0);
    close(FAR);
}

/* All are still open, and nothing was written. */
static bool are_untouched(const struct places *places)
{
    bool are = true;
    for (int i = places->first; i < places->first + PLACES; i++) {
        struct stat now;
        are &= i == places->kept || (fstat(i, &now) == 0 && now.st_ino == places->there.st_ino &&
                                     now.st_dev == places->there.st_dev && now.st_size == 0);
    }
    return are;
}

static void give_places_back(const struct places *places)
{
    for (int i = places->first; i < places->first + PLACES; i++)
        if (i != places->kept)
            close(i);
}

TEST(what_has_taken_the_place_of_the_file_is_left_alone)
{
    struct places places = next_places();
    open_file();
    export_well(&exporter, "a");
    take_places(&places);

    const size_t lost = export_to(&exporter, 'b', 1);
    free_exporter();
    const bool are_left = are_untouched(&places);
    give_places_back(&places);

    assert_true(are_left);
    assert_int_equal(lost, 0);
    assert_files("ab");
}

TEST(a_file_that_was_closed_is_opened_again)
{
    const struct places places = next_places();
    open_file();
    export_well(&exporter, "a");
    assert_int_equal(close(places.first), 0);
    export_well(&exporter, "b");
    assert_files("ab");
}

static struct places places_of_child;

static int renew_in_child(void)
{
    take_places(&places_of_child);
    const int failed = write_in_child();
    return failed != 0 || are_untouched(&places_of_child) ? failed : 3;
}

TEST(a_child_leaves_what_it_has_opened_alone)
{
    places_of_child = next_places();
    open_file();
    check_child(renew_in_child);
    assert_files("c");
}

TEST(what_has_taken_the_place_of_a_pipe_is_left_alone)
{
    struct places places = next_places();
    open_fifo();
    places.kept = reader;
    export_well(&exporter, "a");
    take_places(&places);

    const size_t lost = export_to(&exporter, 'b', 1);
    free_exporter();
    const bool are_left = are_untouched(&places);
    give_places_back(&places);

    assert_true(are_left);
    assert_int_equal(lost, 1);
    assert_string_equal(letters_in(content, take(0)), "a");
}

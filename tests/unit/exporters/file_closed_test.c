/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exporters/file_closed_test.c - specification of the exporters otlp/file and otlp/stdout where the
 * program closes what it does not know, and opens its own in those places (R47). */
#include <otel/file.h>

#include "common/wire.h"
#include "tests/support/batch_double.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLACES = 8, FAR = 100, NONE = -1 };

static const otel_scope_view scope;
static char folder[64];
static char path[96];
static otel_exporter exporter;

static void silent(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    (void)message;
}

static int begin(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/otel-file-closed-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/spans.jsonl", folder);
    otel_log_set_handler(silent, NULL);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    oteli_leaks_check();
    otel_log_set_handler(NULL, NULL);
    (void)unlink(path);
    return rmdir(folder);
}

/* Export a span whose name is this letter. Gives how many were lost. */
static size_t export_to(const otel_exporter *to, char letter)
{
    struct batch_double batch = {0};
    uint8_t bytes[16];
    uint8_t *at = oteli_put_bytes_head(bytes, 5, 1);
    *at++ = (uint8_t)letter;
    batch_double_add(&batch, &scope, bytes, (size_t)(at - bytes));
    struct export_double call = export_double_of(&batch, UINT64_MAX);
    assert_int_equal(to->export_batch(to->state, &call.export), OTEL_EXPORT_DONE);
    batch_double_fini(&batch);
    return export_double_lost(&call);
}

/* The names of all spans that can be read. */
static const char *names_in(int fd)
{
    static char names[16];
    char content[1024];
    size_t count = 0;
    const ssize_t length = read(fd, content, sizeof content - 1);
    content[length > 0 ? length : 0] = '\0';
    const char *at = content;
    while ((at = strstr(at, "\"name\":\"")) != NULL && count < sizeof names - 1)
        names[count++] = *(at += strlen("\"name\":\""));
    names[count] = '\0';
    return names;
}

static const char *names_in_file(void)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    const char *names = names_in(fd);
    close(fd);
    return names;
}

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

static void open_exporter(void)
{
    assert_int_equal(otel_file_exporter_new(OTEL_FILE_OPTIONS(.path = path), &exporter), OTEL_OK);
}

AROUND_EACH(begin, end);

TEST(what_has_taken_the_place_of_the_file_is_left_alone)
{
    struct places places = next_places();
    open_exporter();
    assert_int_equal(export_to(&exporter, 'a'), 0);
    take_places(&places);

    const size_t lost = export_to(&exporter, 'b');
    exporter.free(exporter.state);
    const bool are_left = are_untouched(&places);
    give_places_back(&places);

    assert_true(are_left);
    assert_int_equal(lost, 0);
    assert_string_equal(names_in_file(), "ab");
}

TEST(a_file_that_was_closed_is_opened_again)
{
    const struct places places = next_places();
    open_exporter();
    assert_int_equal(export_to(&exporter, 'a'), 0);
    assert_int_equal(close(places.first), 0);

    const size_t lost = export_to(&exporter, 'b');
    exporter.free(exporter.state);

    assert_int_equal(lost, 0);
    assert_string_equal(names_in_file(), "ab");
}

/* 0: all went as it should. */
static int renew_in_child(struct places *places)
{
    otel_exporter renewed;
    take_places(places);
    if (exporter.renew(exporter.state, &renewed) != OTEL_OK)
        return 1;
    const size_t lost = export_to(&renewed, 'c');
    renewed.free(renewed.state);
    return lost != 0 ? 2 : are_untouched(places) ? 0 : 3;
}

TEST(a_child_leaves_what_it_has_opened_alone)
{
    int status;
    struct places places = next_places();
    open_exporter();

    const pid_t child = fork();
    if (child == 0)
        _exit(renew_in_child(&places));
    assert_int_equal(waitpid(child, &status, 0), child);
    exporter.free(exporter.state);

    assert_int_equal(status, 0);
    assert_string_equal(names_in_file(), "c");
}

TEST(what_has_taken_the_place_of_a_pipe_is_left_alone)
{
    struct places places = next_places();
    assert_int_equal(mkfifo(path, 0600), 0);
    places.kept = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    open_exporter();
    assert_int_equal(export_to(&exporter, 'a'), 0);
    take_places(&places);

    const size_t lost = export_to(&exporter, 'b');
    exporter.wake(exporter.state);
    exporter.free(exporter.state);
    const bool are_left = are_untouched(&places);
    const char *names = names_in(places.kept);
    give_places_back(&places);
    close(places.kept);

    assert_true(are_left);
    assert_int_equal(lost, 1);
    assert_string_equal(names, "a");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/log_test.c - specification of common/log.h, and of the words of otel/base.h. */
#include "common/log.h"

#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a handler was told. */
struct said {
    size_t lines;
    otel_log_level level;
    char last[2048];
};

static void note(void *state, otel_log_level level, const char *message)
{
    struct said *said = state;
    said->lines++;
    said->level = level;
    snprintf(said->last, sizeof said->last, "%s", message);
    errno = ENOTTY;
}

static struct said said;

static int listen_to_the_log(void **state)
{
    (void)state;
    memset(&said, 0, sizeof said);
    otel_log_set_handler(note, &said);
    assert_false(oteli_log_is_default());
    oteli_log_set_level(OTEL_LOG_INFO);
    return 0;
}

static int stop_listening(void **state)
{
    (void)state;
    otel_log_set_handler(NULL, NULL);
    assert_true(oteli_log_is_default());
    oteli_log_set_level(OTEL_LOG_INFO);
    return 0;
}

AROUND_EACH(listen_to_the_log, stop_listening);

/* spec: Q6 */
TEST(a_site_is_silent_after_its_line_and_then_says_how_often)
{
    struct oteli_log_site site = {0};

    for (int i = 0; i < 4; i++)
        oteli_log_write(&site, OTEL_LOG_WARN, 0, "full");
    assert_int_equal(said.lines, 1);
    assert_string_equal(said.last, "full");
    assert_int_equal(site.suppressed, 3);

    site.next_ns = 0; /* ten seconds later */
    oteli_log_write(&site, OTEL_LOG_WARN, 0, "full");
    assert_int_equal(said.lines, 2);
    assert_string_equal(said.last, "full (3 more like this left out)");
    assert_int_equal(site.suppressed, 0);
}

TEST(a_line_about_lost_spans_says_how_many_were_left_out)
{
    struct oteli_log_site site = {0};

    for (unsigned i = 0; i < 4; i++)
        oteli_log_write(&site, OTEL_LOG_WARN, 100, "lost %u", 100u);
    assert_string_equal(said.last, "lost 100");

    site.next_ns = 0; /* ten seconds later */
    oteli_log_write(&site, OTEL_LOG_WARN, 5, "lost %u", 5u);
    assert_string_equal(said.last, "lost 5 (and 300 more, in 3 messages left out)");
    site.next_ns = 0;
    oteli_log_write(&site, OTEL_LOG_WARN, 7, "lost %u", 7u);
    assert_string_equal(said.last, "lost 7");
}

TEST(sites_do_not_silence_each_other_and_lines_without_one_are_always_said)
{
    for (int i = 0; i < 3; i++) {
        OTELI_LOG(OTEL_LOG_WARN, "one");
        OTELI_LOG(OTEL_LOG_WARN, "other");
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "bad setting");
    }
    assert_int_equal(said.lines, 2 + 3);
}

TEST(errno_stays_and_nothing_is_allocated)
{
    struct oteli_log_site site = {0};
    oteli_leaks_begin();
    errno = ERANGE;

    oteli_log_write(&site, OTEL_LOG_WARN, 0, "%s: %d", "said", 1);
    oteli_log_write(&site, OTEL_LOG_WARN, 0, "not said");

    assert_int_equal(errno, ERANGE);
    assert_int_equal(oteli_leaks_count(), 0);
    oteli_leaks_check();
}

TEST(a_line_has_no_password)
{
    char name[2000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';

    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "%s is \"%s\"", "http_proxy", "http://user:p?w@h:3128");
    assert_string_equal(said.last, "http_proxy is \"http://***@h:3128\"");

    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "to http://user:secret@h/%s", name);
    assert_ptr_equal(strstr(said.last, "to http://***@h/xxx"), said.last);
    assert_int_equal(strspn(said.last + strlen("to http://***@h/"), "x"),
                     strlen(said.last) - strlen("to http://***@h/"));
}

TEST(a_line_is_one_line_of_utf8)
{
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "a\nb\tc\x7F \xC3\xA4 \xFF \xE2\x82");

    assert_string_equal(said.last, "a?b?c? \xC3\xA4 ? ??");

    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "\xC2\x9B"
                                    "31m \xC2\x80 \xC2\xA0 \xC3\x9B \xE2\x82\x9B \xC2");
    assert_string_equal(said.last, "??31m ?? \xC2\xA0 \xC3\x9B \xE2\x82\x9B ?");
}

TEST(a_long_line_is_cut_and_still_tells_what_was_left_out)
{
    char *text = malloc(5000);
    memset(text, 'x', 4999);
    text[4999] = '\0';
    struct oteli_log_site site = {.next_ns = 0, .suppressed = UINT64_MAX};

    oteli_log_write(&site, OTEL_LOG_WARN, 0, "%s", text);

    assert_true(strlen(said.last) < 1024);
    assert_non_null(strstr(said.last, "x (18446744073709551615 more like this left out)"));
    free(text);
}

static void log_again(void *state, otel_log_level level, const char *message)
{
    note(state, level, message);
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "from inside the handler");
}

/* spec: Q4 */
TEST(a_handler_is_not_entered_by_itself)
{
    otel_log_set_handler(log_again, &said);

    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "first");
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "second");

    assert_int_equal(said.lines, 2);
    assert_string_equal(said.last, "second");
}

/* Two handlers, each with a state of its own: whoever gets the other's says so. */
static int states[2];
static int mixed;

static void handler_0(void *state, otel_log_level level, const char *message)
{
    (void)level;
    (void)message;
    mixed += state != &states[0];
}

static void handler_1(void *state, otel_log_level level, const char *message)
{
    (void)level;
    (void)message;
    mixed += state != &states[1];
}

static void *log_many(void *unused)
{
    for (int i = 0; i < 20000; i++)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "line");
    return unused;
}

TEST(a_handler_never_gets_the_state_of_another)
{
    mixed = 0;
    otel_log_set_handler(handler_0, &states[0]);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, log_many, NULL), 0);

    for (int i = 0; i < 100000; i++)
        otel_log_set_handler(i % 2 ? handler_1 : handler_0, &states[i % 2]);
    pthread_join(thread, NULL);

    assert_int_equal(mixed, 0);
}

/* stderr as a pipe that a test can read, fill or close; there is no handler. */
static struct {
    int saved;
    int read_end;
} pipe_of_stderr;

static int replace_stderr(void **state)
{
    int ends[2];
    (void)state;
    otel_log_set_handler(NULL, NULL);
    assert_int_equal(pipe(ends), 0);
    pipe_of_stderr.saved = dup(STDERR_FILENO);
    pipe_of_stderr.read_end = ends[0];
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    return 0;
}

static int put_stderr_back(void **state)
{
    dup2(pipe_of_stderr.saved, STDERR_FILENO);
    close(pipe_of_stderr.saved);
    if (pipe_of_stderr.read_end >= 0)
        close(pipe_of_stderr.read_end);
    return stop_listening(state);
}

/* spec: Q4 */
TEST_WITH(replace_stderr, put_stderr_back, without_a_handler_warnings_and_errors_go_to_stderr)
{
    OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "no thread");
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "queue full");
    OTELI_LOG_ALWAYS(OTEL_LOG_INFO, "hidden");
    oteli_log_set_level(OTEL_LOG_DEBUG);
    OTELI_LOG_ALWAYS(OTEL_LOG_INFO, "shown");
    OTELI_LOG_ALWAYS(OTEL_LOG_DEBUG, "shown too");

    char text[512] = "";
    oteli_log_set_level(OTEL_LOG_NONE);
    OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "error");
    assert_true(read(pipe_of_stderr.read_end, text, sizeof text - 1) > 0);
    assert_string_equal(text, "otel-c: error: no thread\n"
                              "otel-c: warning: queue full\n"
                              "otel-c: info: shown\n"
                              "otel-c: debug: shown too\n");
}

TEST_WITH(replace_stderr, put_stderr_back, a_full_stderr_is_not_waited_for)
{
    char page[4096] = {0};
    const int flags = fcntl(STDERR_FILENO, F_GETFL);
    fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
    while (write(STDERR_FILENO, page, sizeof page) > 0)
        continue;
    fcntl(STDERR_FILENO, F_SETFL, flags); /* from here on a write would block */

    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "nobody reads this");
}

TEST_WITH(replace_stderr, put_stderr_back, a_broken_stderr_does_not_end_the_program)
{
    close(pipe_of_stderr.read_end);
    pipe_of_stderr.read_end = -1;
    errno = 0;

    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "nobody can read this");
    close(STDERR_FILENO);
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "nor this");

    assert_int_equal(errno, 0);
}

TEST_WITH(NULL, NULL, every_status_has_words_and_the_version_is_the_headers)
{
    for (int status = OTEL_OK; status <= OTEL_ERROR_UNSUPPORTED; status++) {
        const char *words = otel_status_string((otel_status)status);
        assert_string_not_equal(words, "unknown status");
        for (int other = OTEL_OK; other < status; other++)
            assert_string_not_equal(words, otel_status_string((otel_status)other));
    }
    assert_string_equal(otel_status_string(OTEL_ERROR_NO_MEMORY), "no memory");
    assert_string_equal(otel_status_string((otel_status)99), "unknown status");
    assert_string_equal(otel_version(), OTEL_VERSION);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/log_keep_test.c - specification of otel_log_keep and otel_log_take: the log's
 * messages, on a thread of the program's. */
#include "common/log.h"

#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 32, WRITERS = 4, LINES = 5000 };

static otel_log_level level;
static char text[OTEL_LOG_MESSAGE_SIZE];

static bool take(void)
{
    return otel_log_take(&level, text, sizeof text);
}

static int begin(void **state)
{
    (void)state;
    otel_log_set_handler(otel_log_keep, NULL);
    oteli_log_set_level(OTEL_LOG_INFO);
    while (take())
        ;
    return 0;
}

static int end(void **state)
{
    (void)state;
    otel_log_set_handler(NULL, NULL);
    return 0;
}

AROUND_EACH(begin, end);

TEST(messages_are_taken_in_their_order_with_their_level)
{
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "first");
    OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "second");
    OTELI_LOG_ALWAYS(OTEL_LOG_DEBUG, "below the level");

    assert_true(take());
    assert_string_equal(text, "first");
    assert_int_equal(level, OTEL_LOG_WARN);
    assert_true(take());
    assert_string_equal(text, "second");
    assert_int_equal(level, OTEL_LOG_ERROR);
    assert_false(take());
}

TEST(what_is_not_taken_in_time_is_counted_and_the_count_is_a_message)
{
    char expected[16];
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < ROOM + 7; i++)
            OTELI_LOG_ALWAYS(OTEL_LOG_INFO, "%u", i);
        for (unsigned i = 0; i < ROOM; i++) {
            snprintf(expected, sizeof expected, "%u", i);
            assert_true(take());
            assert_string_equal(text, expected);
        }
        assert_true(take());
        assert_string_equal(text, "7 messages were lost: more came than were taken");
        assert_int_equal(level, OTEL_LOG_WARN);
        assert_false(take());
    }
}

TEST(a_text_is_cut_to_the_room_that_there_is)
{
    char small[4] = "abc";
    for (unsigned i = 0; i < 3; i++)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "message");

    assert_true(otel_log_take(NULL, small, sizeof small));
    assert_string_equal(small, "mes");
    assert_true(otel_log_take(NULL, small, 1));
    assert_string_equal(small, "");
    assert_true(otel_log_take(NULL, NULL, 0));
    assert_false(take());
}

TEST(nothing_is_allocated_and_errno_stays)
{
    oteli_leaks_begin();
    errno = ERANGE;
    for (unsigned i = 0; i < ROOM + 1; i++)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "message");
    while (take())
        ;
    assert_int_equal(errno, ERANGE);
    assert_int_equal(oteli_leaks_count(), 0);
    oteli_leaks_check();
}

static int find_none_and_keep_one(void)
{
    const bool finds_one = take();
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "the child's");
    return finds_one || !take() || strcmp(text, "the child's") != 0 || take();
}

TEST(a_forked_child_begins_with_none_and_the_parent_keeps_its_own)
{
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "the parent's");

    check_child(find_none_and_keep_one);

    assert_true(take());
    assert_string_equal(text, "the parent's");
}

static void *write_lines(void *number)
{
    for (unsigned i = 0; i < LINES; i++)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "%u %u", *(const unsigned *)number, i);
    return NULL;
}

/* Of a line, or of several that were lost; those of one writer come in their order. */
static uint64_t count_line(int64_t last[WRITERS])
{
    char *at;
    const unsigned long first = strtoul(text, &at, 10);
    if (strncmp(at, " message", strlen(" message")) == 0)
        return first;
    const int64_t line = strtol(at, NULL, 10);
    assert_true(first < WRITERS && line > last[first]);
    last[first] = line;
    return 1;
}

TEST(every_message_of_many_threads_is_taken_or_counted)
{
    unsigned numbers[WRITERS];
    int64_t last[WRITERS];
    pthread_t threads[WRITERS];
    uint64_t count = 0;
    for (unsigned i = 0; i < WRITERS; i++) {
        numbers[i] = i;
        last[i] = -1;
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &numbers[i]), 0);
    }
    for (unsigned i = 0; i < LINES; i++)
        count += take() ? count_line(last) : 0; /* while they write */
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    while (take())
        count += count_line(last);
    assert_int_equal(count, (uint64_t)WRITERS * LINES);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/spool/spool_test.c - specification of exporters/otlp/spool/disk_spool.c: nothing that
 * was put is lost uncounted, whatever is in the directory, whoever else uses it, and whatever the
 * disk says. */
#include "exporters/otlp/spool/disk_spool.h"
#include "exporters/otlp/spool/spool_file.h"
#include "tests/support/spool_fixture.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = OTELI_SPOOL_HEAD, DAY_S = 24 * 3600 };

/* ---- in, and out ---------------------------------------------------------------------- */

AROUND_EACH(begin, end);

TEST(what_is_put_while_the_clock_goes_back_or_stands_is_in_order_too)
{
    static const char *const requests[] = {"one", "two", "three", "four"};
    for (size_t i = 0; i < 4; i++) {
        spool_calls.back_s = 10 * (1 + (time_t)i / 2);
        assert_true(put(requests[i], 1));
    }
    oteli_spool_settle(spool, OTELI_CALL_DELIVERED, 0); /* nothing is on its way */
    open_again(0, 0);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(take(), requests[i]);
}

TEST(every_endpoint_and_format_has_its_own_files)
{
    struct oteli_spool *others[] = {
        oteli_spool_open(files.path, "http://other:4318", OTEL_OTLP_HTTP_PROTOBUF, 0, 0),
        oteli_spool_open(files.path, SPOOL_ENDPOINT, OTEL_OTLP_HTTP_JSON, 0, 0)};
    assert_true(put("one", 1));

    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(take_from(others[i], OTELI_CALL_DELIVERED), "");
        oteli_spool_close(others[i]);
    }

    assert_string_equal(take(), "one");
}

TEST(an_empty_request_and_a_large_one_come_back_whole)
{
    static uint8_t large[3 << 20];
    struct oteli_spool_item item;
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (uint8_t)(i * 2654435761U >> 24);
    spool_calls.most_written = 100000; /* a disk may take it in pieces */
    assert_true(oteli_spool_put(spool, "", 0, 0));
    assert_true(oteli_spool_put(spool, large, sizeof large, 9));

    assert_true(oteli_spool_first(spool, &item));
    assert_int_equal(item.length, 0);
    oteli_spool_settle(spool, OTELI_CALL_DELIVERED, 0);
    assert_true(oteli_spool_first(spool, &item));
    assert_int_equal(item.length, sizeof large);
    assert_memory_equal(item.bytes, large, sizeof large);
    oteli_spool_settle(spool, OTELI_CALL_DELIVERED, 0);
}

TEST(ten_thousand_files_keep_their_order)
{
    enum { FILES = 10000 };
    char text[16];
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(text, sizeof text, "%u", i);
        assert_true(put(text, 1));
    }
    for (unsigned i = 0; i < FILES / 2; i++) {
        snprintf(text, sizeof text, "%u", i);
        assert_string_equal(take(), text);
    }
    assert_true(put("last", 1));
    for (unsigned i = FILES / 2; i < FILES; i++) {
        snprintf(text, sizeof text, "%u", i);
        assert_string_equal(take(), text);
    }
    assert_string_equal(take(), "last");
}

/* ---- bounds --------------------------------------------------------------------------- */

TEST(the_oldest_go_when_there_is_no_room)
{
    open_again(3 * (HEAD + 3), 0);
    assert_true(put("one", 1));
    assert_true(put("two", 2));
    assert_true(put("six", 6));

    assert_true(put("ten", 10));
    assert_int_equal(COUNTED(evicted), 1);
    assert_true(put("thirteen", 13)); /* longer: two have to go */

    assert_int_equal(COUNTED(evicted), 1 + 2 + 6);
    assert_string_equal(take(), "ten");
    assert_string_equal(take(), "thirteen");
}

TEST(what_is_larger_than_the_spool_is_refused_and_nothing_goes_for_it)
{
    open_again(HEAD + 4, 0);
    assert_true(put("one", 1));

    assert_false(put("three", 3));

    assert_int_equal(COUNTED(failures), 3);
    assert_int_equal(COUNTED(evicted), 0);
    assert_string_equal(take(), "one");
}

/* Then it may be more than there should be: to lose either would be worse. */
TEST(what_is_on_its_way_does_not_keep_anything_out)
{
    struct oteli_spool_item item;
    open_again(HEAD + 3, 0);
    assert_true(put("one", 1));
    assert_true(oteli_spool_first(spool, &item));

    assert_true(put("two", 2));
    assert_true(put("six", 6));

    assert_int_equal(COUNTED(waiting), 7);
    assert_true(spool_files_stats().waiting_bytes == 2 * (HEAD + 3)); /* one file too much */
    assert_int_equal(COUNTED(evicted), 2);
    oteli_spool_settle(spool, OTELI_CALL_EXHAUSTED, 0);
    assert_string_equal(take(), "six"); /* the limit holds again: the oldest has gone */
}

static void put_file(uint64_t age_s, const char *request, uint32_t spans)
{
    static uint64_t id;
    const struct oteli_spool_file file = {.written_unix_ns = seconds_ago(age_s),
                                          .id = ++id,
                                          .spans = spans,
                                          .length = (uint32_t)strlen(request)};
    spool_files_put(&files, &file, request);
}

TEST(what_is_too_old_is_not_sent)
{
    make_directory();
    put_file(DAY_S + 10, "old", 1);
    put_file(DAY_S - 60, "young", 2);
    put_file(2 * DAY_S, "older", 4);

    assert_string_equal(take(), "young");
    assert_string_equal(take(), "");

    assert_int_equal(COUNTED(expired), 5);
    assert_int_equal(spool_files_count(&files, ""), 0);
}

TEST(a_put_clears_away_what_is_too_old)
{
    open_again(0, 1000);
    make_directory();
    put_file(5, "old", 1);

    assert_true(put("new", 1));

    assert_int_equal(COUNTED(expired), 1);
    assert_string_equal(take(), "new");
}

TEST(without_a_limit_and_in_the_future_nothing_is_too_old)
{
    open_again(0, OTEL_ZERO);
    make_directory();
    put_file(3650 * (uint64_t)DAY_S, "ancient", 1);
    assert_string_equal(take(), "ancient");

    open_again(0, 1000);
    put_file((uint64_t)-3600, "tomorrow", 1);
    assert_string_equal(take(), "tomorrow");
}

/* ---- several of them ------------------------------------------------------------------ */

TEST(one_sends_at_a_time)
{
    struct oteli_spool_item item;
    struct oteli_spool *other = open_one();
    assert_true(put("one", 1));
    assert_true(oteli_spool_first(spool, &item));
    oteli_spool_close_copies(spool); /* there is none: this is no child */

    assert_string_equal(take_from(other, OTELI_CALL_DELIVERED), "");
    assert_true(oteli_spool_is_taken(other));
    assert_true(oteli_spool_put(other, "two", 3, 2));
    oteli_spool_settle(spool, OTELI_CALL_DELIVERED, 0);

    assert_string_equal(take_from(other, OTELI_CALL_DELIVERED), "two");
    assert_false(oteli_spool_is_taken(other));
    assert_string_equal(take(), "");
    oteli_spool_close(other);
}

TEST(a_spool_that_is_closed_does_not_send_any_more)
{
    struct oteli_spool_item item;
    struct oteli_spool *other = open_one();
    assert_true(put("one", 1));
    assert_true(oteli_spool_first(other, &item));
    assert_string_equal(take(), "");

    oteli_spool_close(other);

    assert_string_equal(take(), "one");
}

/* Each knows what the other did before the last tick of the kernel's clock. */
static void let_time_pass(unsigned number)
{
    const struct timespec stamps[2] = {{1000000 + number, 0}, {1000000 + number, 0}};
    assert_int_equal(utimensat(AT_FDCWD, spool_files_own(&files), stamps, 0), 0);
}

TEST(the_bound_is_of_all_who_use_the_directory)
{
    enum { ROOM = 10 };
    open_again(ROOM * (HEAD + 3), 0);
    struct oteli_spool *other = oteli_spool_open(
        files.path, SPOOL_ENDPOINT, OTEL_OTLP_HTTP_PROTOBUF, ROOM * (uint64_t)(HEAD + 3), 0);
    before = spool_files_stats();
    for (unsigned i = 0; i < 4 * ROOM; i++) {
        assert_true(oteli_spool_put(i % 2 == 0 ? spool : other, "one", 3, 1));
        let_time_pass(i);
        assert_true(spool_files_count(&files, ".otlp") <= ROOM);
    }

    assert_int_equal(COUNTED(stored), 4 * ROOM);
    oteli_spool_close(other);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/baggage_test.c - specification of the pool of baggages and of how one is put
 * together: limits, what stays, what is gone, and forks. */
#include "api/baggage/baggage_pool.h"
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Places of the pool (baggage_pool.c). */
enum { SMALL = 8192, MEDIUM = 1024, LARGE = 256, PLACES = SMALL + MEDIUM + LARGE };

static otel_baggage with(const char *name, const char *value)
{
    return otel_baggage_set(otel_baggage_none(), name, value, NULL);
}

static const char *value_of(otel_baggage baggage, const char *name)
{
    static char value[OTELI_BAGGAGE_BYTES + 1];
    return otel_baggage_get(baggage, name, value, sizeof value) != SIZE_MAX ? value : NULL;
}

/* So many others that each place that nobody holds has another one. */
static void make_others(size_t count, size_t length)
{
    char *value = malloc(length + 1);
    assert_non_null(value);
    memset(value, 'o', length);
    value[length] = '\0';
    for (size_t i = 0; i < count; i++) {
        value[0] = (char)('a' + i % 26);
        assert_int_not_equal(with("other", value).opaque, 0);
    }
    free(value);
}

AROUND_EACH(recorder_setup_without_sdk, recorder_teardown);

/* The first of this file, because the line is said once in ten seconds. */
TEST(that_a_baggage_is_gone_is_said_where_it_is_asked_for)
{
    const otel_baggage gone = with("k", "v");
    make_others(SMALL, 8);
    const otel_baggage there = with("k", "w");
    assert_string_equal(value_of(there, "k"), "w");
    assert_string_equal(recorder.last_log, "");

    assert_null(value_of(gone, "k"));

    assert_non_null(strstr(recorder.last_log, "a baggage is asked for that is gone"));
}

TEST(a_baggage_is_there_until_its_place_is_needed)
{
    const otel_baggage baggage = with("k", "v");
    make_others(SMALL - 1, 8);
    assert_string_equal(value_of(baggage, "k"), "v");
    make_others(1, 8);
    assert_null(value_of(baggage, "k"));
    assert_int_equal(otel_baggage_count(baggage), 0);
}

TEST(what_is_gone_is_empty_and_can_be_added_to)
{
    const otel_baggage gone = with("k", "v");
    make_others(SMALL, 8);
    const otel_baggage more = otel_baggage_set(gone, "l", "w", NULL);
    assert_int_equal(otel_baggage_count(more), 1);
    assert_string_equal(value_of(more, "l"), "w");
    assert_int_equal(otel_baggage_keep(gone).opaque, 0);
    otel_baggage_let_go(gone);
    assert_int_equal(otel_baggage_remove(gone, "k").opaque, gone.opaque);
}

TEST(numbers_that_no_baggage_ever_had_are_empty)
{
    const otel_baggage baggage = with("k", "v");
    const uint64_t numbers[] = {1,
                                PLACES,
                                UINT64_MAX,
                                UINT64_MAX << 16,
                                baggage.opaque ^ UINT64_C(1) << 63,
                                baggage.opaque + 1,
                                baggage.opaque + (1 << 16)};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const otel_baggage no = {numbers[i]};
        assert_int_equal(otel_baggage_count(no), 0);
        assert_int_equal(otel_baggage_keep(no).opaque, 0);
        otel_baggage_let_go(no);
        const otel_context context = {.baggage = numbers[i]};
        const otel_context_token token = otel_context_attach(context);
        assert_int_equal(otel_current_context().baggage, 0);
        assert_true(otel_context_detach(token));
    }
    assert_string_equal(value_of(baggage, "k"), "v");
}

TEST(what_is_kept_stays_until_it_is_let_go_as_often)
{
    const otel_baggage baggage = otel_baggage_keep(otel_baggage_keep(with("k", "v")));
    make_others(2 * SMALL, 8);
    otel_baggage_let_go(baggage);
    make_others(2 * SMALL, 8);
    assert_string_equal(value_of(baggage, "k"), "v");
    otel_baggage_let_go(baggage);
    make_others(SMALL, 8);
    assert_null(value_of(baggage, "k"));
}

TEST(letting_go_too_often_takes_nothing_from_an_attached_context)
{
    const otel_baggage baggage = with("k", "v");
    const otel_context_token token =
        otel_context_attach(otel_context_with_baggage((otel_context){.baggage = 0}, baggage));
    for (unsigned i = 0; i < 3; i++)
        otel_baggage_let_go(baggage);
    make_others(2 * SMALL, 8);
    assert_string_equal(value_of(baggage, "k"), "v");
    assert_true(otel_context_detach(token));
    make_others(SMALL, 8);
    assert_null(value_of(baggage, "k"));
}

TEST(where_every_place_is_kept_nothing_changes)
{
    static otel_baggage kept[PLACES];
    char value[2] = "a";
    for (size_t i = 0; i < PLACES; i++) {
        value[0] = (char)('a' + i % 26);
        kept[i] = otel_baggage_keep(with("k", value));
        assert_int_not_equal(kept[i].opaque, 0);
    }
    assert_int_equal(with("k", "x").opaque, 0);
    assert_int_equal(otel_baggage_set(kept[0], "k", "x", NULL).opaque, kept[0].opaque);
    assert_int_equal(otel_baggage_remove(kept[0], "k").opaque, 0);
    assert_int_equal(recorder.logs, 1); /* now and then */
    for (size_t i = 0; i < PLACES; i++) {
        value[0] = (char)('a' + i % 26);
        assert_string_equal(value_of(kept[i], "k"), value);
        otel_baggage_let_go(kept[i]);
    }
    assert_int_not_equal(with("k", "x").opaque, 0);
}

TEST(large_ones_have_places_of_their_own)
{
    char value[8001];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    const otel_baggage large = with("k", value);
    value[900] = '\0';
    const otel_baggage medium = with("k", value);
    const otel_baggage small = with("k", "v");
    make_others(LARGE - 1, 8000);
    assert_int_equal(strlen(value_of(large, "k")), 8000);
    make_others(1, 8000);
    assert_null(value_of(large, "k"));
    make_others(MEDIUM - 1, 900);
    assert_int_equal(strlen(value_of(medium, "k")), 900);
    make_others(1, 900);
    assert_null(value_of(medium, "k"));
    assert_string_equal(value_of(small, "k"), "v");
}

TEST(without_memory_it_stays_as_it_was)
{
    char value[2000];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    oteli_leaks_fail_at(1); /* no small places; but there are larger ones */
    const otel_baggage baggage = with("k", "v");
    assert_true(oteli_leaks_failed());
    assert_string_equal(value_of(baggage, "k"), "v");
    oteli_leaks_fail_at(1);
    assert_int_equal(otel_baggage_set(baggage, "l", value, NULL).opaque, baggage.opaque);
    assert_true(oteli_leaks_failed());
    assert_int_equal(otel_baggage_count(otel_baggage_set(baggage, "l", value, NULL)), 2);
}

/* Attach; detach in any order; end the thread without detaching. */
static void *attach_there(void *baggage)
{
    const otel_context context = {.baggage = *(uint64_t *)baggage};
    (void)otel_context_attach(context);
    return NULL;
}

TEST(attached_contexts_keep_theirs_whatever_becomes_of_the_tokens)
{
    otel_baggage baggages[3] = {with("k", "0"), with("k", "1"), with("k", "2")};
    otel_context_token tokens[2];
    for (size_t i = 0; i < 2; i++)
        tokens[i] = otel_context_attach((otel_context){.baggage = baggages[i].opaque});
    recorder_on_thread(attach_there, &baggages[2].opaque);
    make_others(SMALL, 8);
    assert_string_equal(value_of(baggages[0], "k"), "0");
    assert_null(value_of(baggages[2], "k"));

    assert_false(otel_context_detach(tokens[0]));
    assert_int_equal(otel_current_context().baggage, baggages[1].opaque);
    make_others(SMALL, 8);
    assert_null(value_of(baggages[0], "k"));
    assert_string_equal(value_of(baggages[1], "k"), "1");
    assert_true(otel_context_detach(tokens[1]));
    make_others(SMALL, 8);
    assert_null(value_of(baggages[1], "k"));
    assert_int_equal(otel_current_context().baggage, 0);
}

TEST(contexts_that_are_never_detached_hold_as_many_as_there_are)
{
    enum { MORE_THAN_CAN_BE_ATTACHED = 1100 };
    otel_baggage first = {0};
    otel_context_token last = {.opaque = 0};
    for (size_t i = 0; i < MORE_THAN_CAN_BE_ATTACHED; i++) {
        const otel_baggage baggage = with("k", "v");
        first = i == 1050 ? baggage : first;
        last = otel_context_attach((otel_context){.baggage = baggage.opaque});
    }
    make_others(SMALL, 8);
    assert_null(value_of(first, "k")); /* another one has its place on the stack */
    assert_string_equal(value_of((otel_baggage){otel_current_context().baggage}, "k"), "v");
    assert_true(otel_context_detach(last));
}

/* In a child, by fork(): 0 when all is as it should be. */
static int look_in_child(otel_baggage attached, otel_baggage kept, otel_baggage loose)
{
    if (otel_current_context().baggage != attached.opaque)
        return 1;
    for (size_t i = 0; i < 2 * SMALL; i++)
        (void)with("other", i % 2 != 0 ? "a" : "b");
    if (value_of(loose, "k") != NULL)
        return 2;
    if (value_of(kept, "k") == NULL || strcmp(value_of(kept, "k"), "kept") != 0)
        return 3;
    if (value_of(attached, "k") == NULL || strcmp(value_of(attached, "k"), "attached") != 0)
        return 4;
    otel_baggage_let_go(kept);
    for (size_t i = 0; i < SMALL; i++)
        (void)with("other", "c");
    return value_of(kept, "k") == NULL ? 0 : 5;
}

TEST(a_forked_child_has_what_is_attached_and_what_is_kept)
{
    const otel_baggage attached = with("k", "attached");
    const otel_baggage kept = otel_baggage_keep(with("k", "kept"));
    const otel_baggage loose = with("k", "loose");
    const otel_baggage held = with("k", "held by a call of another thread");
    assert_non_null(oteli_baggage_hold(held));
    const otel_context_token token =
        otel_context_attach((otel_context){.baggage = attached.opaque});

    const pid_t child = fork();
    if (child == 0)
        _exit(look_in_child(attached, kept, loose) != 0 || value_of(held, "k") != NULL);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    oteli_baggage_release(held);
    otel_baggage_let_go(kept);
    assert_true(otel_context_detach(token));
}

/* --- what fits --- */

TEST(sixty_four_entries_fit_and_no_more)
{
    otel_baggage baggage = {0};
    char name[8];
    for (unsigned i = 0; i < OTELI_BAGGAGE_MEMBERS; i++) {
        snprintf(name, sizeof name, "k%u", i);
        baggage = otel_baggage_set(baggage, name, "v", NULL);
    }
    assert_int_equal(otel_baggage_count(baggage), OTELI_BAGGAGE_MEMBERS);
    assert_int_equal(otel_baggage_set(baggage, "more", "v", NULL).opaque, baggage.opaque);
    const otel_baggage changed = otel_baggage_set(baggage, "k7", "w", NULL);
    assert_int_equal(otel_baggage_count(changed), OTELI_BAGGAGE_MEMBERS);
    assert_string_equal(value_of(changed, "k7"), "w");
    assert_string_equal(value_of(baggage, "k7"), "v");
}

TEST(eight_kibibytes_of_header_fit_and_no_more)
{
    static char value[OTELI_BAGGAGE_BYTES + 2];
    static char text[OTELI_BAGGAGE_BYTES + 1];
    memset(value, 'v', OTELI_BAGGAGE_BYTES - 2);
    const otel_baggage whole = with("k", value);
    assert_int_equal(oteli_baggage_format(whole, text, sizeof text), OTELI_BAGGAGE_BYTES);
    assert_int_equal(otel_baggage_set(whole, "l", "", NULL).opaque, whole.opaque);
    assert_int_equal(otel_baggage_set(whole, "k", value, "m").opaque, whole.opaque);
    value[OTELI_BAGGAGE_BYTES - 2] = 'v';
    assert_int_equal(with("k", value).opaque, 0);

    value[OTELI_BAGGAGE_BYTES - 4] = '\0'; /* what is encoded counts as it is then: %20 */
    value[0] = ' ';
    assert_int_equal(otel_baggage_count(with("k", value)), 1);
    value[1] = ' ';
    assert_int_equal(with("k", value).opaque, 0);
}

TEST(members_beyond_the_limits_are_dropped_and_the_others_go_on)
{
    struct oteli_baggage_builder builder;
    static char text[3 * OTELI_BAGGAGE_BYTES];
    memset(text, ' ', sizeof text); /* each blank in a value is three bytes as we write it */
    memcpy(text, "a=1,b=", 6);
    text[3000] = 'x';
    memcpy(text + 3001, ",c=3", 4);
    oteli_baggage_begin(&builder, otel_baggage_none());
    text[6] = 'x';
    assert_int_equal(oteli_baggage_parse(&builder, text, 3005), 2);
    const otel_baggage baggage = oteli_baggage_finish(&builder);
    assert_string_equal(value_of(baggage, "a"), "1");
    assert_null(value_of(baggage, "b"));
    assert_string_equal(value_of(baggage, "c"), "3");
}

TEST(only_so_much_of_all_headers_is_looked_at)
{
    struct oteli_baggage_builder builder;
    static char text[OTELI_BAGGAGE_TEXT * 2];
    memset(text, ',', sizeof text);
    memcpy(text, "a=1", 3);
    memcpy(text + OTELI_BAGGAGE_TEXT - 3, "b=2,c=3", 7);
    oteli_baggage_begin(&builder, otel_baggage_none());
    assert_int_equal(oteli_baggage_parse(&builder, text, sizeof text), 2);
    assert_int_equal(builder.text_left, 0);
    assert_int_equal(oteli_baggage_parse(&builder, "d=4", 3), 0);

    oteli_baggage_begin(&builder, otel_baggage_none());
    assert_int_equal(oteli_baggage_parse(&builder, "x=1", 3), 1); /* 3, and a comma */
    memcpy(text + OTELI_BAGGAGE_TEXT - 8, "ccc=4444", 8);
    assert_int_equal(oteli_baggage_parse(&builder, text, sizeof text), 1);
    const otel_baggage baggage = oteli_baggage_finish(&builder);
    assert_null(value_of(baggage, "ccc")); /* half of it is nothing */
    assert_string_equal(value_of(baggage, "x"), "1");
}

TEST(in_less_room_there_are_whole_members)
{
    char text[8];
    otel_baggage baggage = with("a", "1");
    baggage = otel_baggage_set(baggage, "long", "long", NULL);
    baggage = otel_baggage_set(baggage, "b", "2", NULL);
    assert_int_equal(oteli_baggage_format(baggage, text, sizeof text), 7);
    assert_string_equal(text, "a=1,b=2");
    assert_int_equal(oteli_baggage_format(baggage, text, 7), 3);
    assert_string_equal(text, "a=1");
    assert_int_equal(oteli_baggage_format(baggage, text, 3), 0);
    assert_int_equal(oteli_baggage_format(baggage, text, 0), 0);
}

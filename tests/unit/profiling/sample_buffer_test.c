/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/sample_buffer_test.c - specification of profiling/sample_buffer.h. */
#include "profiling/sample_buffer.h"
#include "tests/support/unit.h"

enum { WORDS = 512, LOOPS = 10000 };

static struct oteli_sample_buffer buffer;

static int begin(void **state)
{
    (void)state;
    return oteli_sample_buffer_init(&buffer, 1) ? 0 : 1;
}

static int end(void **state)
{
    (void)state;
    oteli_sample_buffer_fini(&buffer);
    return 0;
}

static bool push(uint32_t count, uint64_t first)
{
    uint64_t at;
    if (!oteli_sample_buffer_reserve(&buffer, count, &at))
        return false;
    for (uint32_t i = 0; i < count; i++)
        oteli_sample_buffer_put(&buffer, at, i, first + i);
    oteli_sample_buffer_publish(&buffer, at, count);
    return true;
}

static void expect(uint32_t count, uint64_t first)
{
    uint64_t words[WORDS];
    assert_int_equal(oteli_sample_buffer_take(&buffer, words, WORDS), count);
    for (uint32_t i = 0; i < count; i++)
        assert_true(words[i] == first + i);
}

AROUND_EACH(begin, end);

TEST(gives_samples_of_any_length_in_their_order)
{
    assert_true(push(3, 10));
    assert_true(push(1, 20));
    expect(3, 10);
    expect(1, 20);
    expect(0, 0);
}

TEST(goes_round_for_ever)
{
    for (uint32_t i = 0; i < LOOPS; i++) {
        assert_true(push(i % 60 + 1, i));
        assert_true(push(i % 7 + 1, i));
        expect(i % 60 + 1, i);
        expect(i % 7 + 1, i);
    }
}

TEST(loses_what_does_not_fit_and_counts_it)
{
    assert_true(push(WORDS - 1, 5));
    assert_false(push(1, 6));
    assert_false(push(1, 7));
    assert_true(oteli_load_relaxed_64(&buffer.lost) == 2);
    expect(WORDS - 1, 5);
    assert_true(push(1, 8));
    expect(1, 8);
}

TEST(waits_for_one_that_is_being_written)
{
    uint64_t at;
    assert_true(oteli_sample_buffer_reserve(&buffer, 2, &at));
    assert_true(push(1, 30));
    expect(0, 0);
    oteli_sample_buffer_put(&buffer, at, 0, 40);
    oteli_sample_buffer_put(&buffer, at, 1, 41);
    oteli_sample_buffer_publish(&buffer, at, 2);
    expect(2, 40);
    expect(1, 30);
}

TEST(cuts_what_the_reader_has_no_room_for)
{
    uint64_t word;
    assert_true(push(3, 50));
    assert_true(push(1, 60));
    assert_int_equal(oteli_sample_buffer_take(&buffer, &word, 1), 1);
    assert_true(word == 50);
    expect(1, 60);
}

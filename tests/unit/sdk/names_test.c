/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/names_test.c - specification of sdk/names.h. */
#include "sdk/names.h"

#include "common/utf8.h"
#include "tests/support/unit.h"

#include <otel/trace.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const void *asked;
static const char *answer;
static size_t answer_length;

static size_t resolve(const void *address, char *name, size_t size)
{
    asked = address;
    memcpy(name, answer, answer_length < size ? answer_length : size);
    return answer_length;
}

static void will_answer(const char *text, size_t length)
{
    answer = text;
    answer_length = length;
    otel_set_name_resolver(resolve);
}

static int end(void **state)
{
    (void)state;
    otel_set_name_resolver(NULL);
    return 0;
}

static size_t look_up(uintptr_t address, char name[OTELI_NAME_MOST])
{
    return oteli_name_look_up(&address, sizeof address, name);
}

AROUND_EACH(NULL, end);

TEST(without_a_resolver_a_name_is_a_number)
{
    static const struct {
        uintptr_t address;
        const char *name;
    } rows[] = {
        {0, "0x0"},
        {9, "0x9"},
        {0x10, "0x10"},
        {0xabc, "0xabc"},
        {0x401136, "0x401136"},
        {UINTPTR_MAX >> 4 | 1, NULL},
        {UINTPTR_MAX, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[OTELI_NAME_MOST];
        char expected[32];
        snprintf(expected, sizeof expected, "0x%llx", (unsigned long long)rows[i].address);

        const size_t length = look_up(rows[i].address, name);

        assert_int_equal(length, strlen(expected));
        assert_memory_equal(name, expected, length);
        if (rows[i].name != NULL)
            assert_string_equal(rows[i].name, expected);
    }
}

TEST(the_resolver_is_asked_for_the_address)
{
    char name[OTELI_NAME_MOST];
    will_answer("charge", 6);

    assert_int_equal(look_up(0x1234, name), 6);

    assert_memory_equal(name, "charge", 6);
    assert_ptr_equal(asked, (const void *)0x1234);
}

TEST(what_the_resolver_does_not_know_is_a_number)
{
    char name[OTELI_NAME_MOST];
    will_answer("", 0);

    assert_int_equal(look_up(0x1234, name), 6);

    assert_memory_equal(name, "0x1234", 6);
}

TEST(a_long_name_is_cut_between_characters)
{
    static const char *const characters[] = {"x", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    static char text[OTELI_NAME_MOST + 8];
    for (size_t i = 0; i < 4; i++) {
        const size_t size = strlen(characters[i]);
        for (size_t before = 0; before <= 5; before++) {
            char name[OTELI_NAME_MOST];
            memset(text, 'a', sizeof text);
            memcpy(text + OTELI_NAME_MOST - before, characters[i], size);
            will_answer(text, OTELI_NAME_MOST - before + size);

            const size_t length = look_up(1, name);

            const bool fits = size <= before;
            assert_int_equal(length, OTELI_NAME_MOST - before + (fits ? size : 0));
            assert_memory_equal(name, text, length);
        }
    }
}

/* spec: X19 trace.proto MUST stable */
TEST(bad_utf8_is_replaced)
{
    char name[OTELI_NAME_MOST];
    will_answer("a\xff"
                "b",
                3);

    assert_int_equal(look_up(1, name), 5);

    assert_memory_equal(name,
                        "a\xef\xbf\xbd"
                        "b",
                        5);
}

TEST(a_long_name_of_nothing_good_is_cut_as_well)
{
    static char text[2 * OTELI_NAME_MOST];
    char name[OTELI_NAME_MOST];
    memset(text, 0x80, sizeof text);
    will_answer(text, sizeof text);

    const size_t length = look_up(1, name);

    assert_int_equal(length, OTELI_NAME_MOST / 3 * 3);
    assert_true(oteli_utf8_is_valid(name, length));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/functions/functions_exclude_test.c - specification of functions/exclude.h. */
#include "functions/exclude.h"

#include "functions/symbols.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <pthread.h>

static int calls;

__attribute__((noinline)) static void apple(void)
{
    calls += 1;
}

__attribute__((noinline)) static void apricot(void)
{
    calls += 2;
}

__attribute__((noinline)) static void banana(void)
{
    calls += 3;
}

static bool is_excluded(void (*function)(void))
{
    return oteli_is_excluded((const void *)(uintptr_t)function);
}

static int end(void **state)
{
    (void)state;
    oteli_exclude_fini();
    oteli_symbols_fini();
    return 0;
}

static int prepare(void **state)
{
    (void)state;
    apple();
    apricot();
    banana();
    return 0;
}

AROUND_ALL(prepare, NULL);

AROUND_EACH(NULL, end);

/* Each list takes the place of the last. */
TEST(lists_of_names_and_patterns_exclude_functions)
{
    static const struct {
        const char *list;
        bool apple, apricot, banana;
    } table[] = {
        {NULL, false, false, false},   {"nothing, apple", true, false, false},
        {"ap*", true, true, false},    {"[bx]anan?", false, false, true},
        {"apple", true, false, false}, {"banana", false, false, true},
    };
    assert_false(is_excluded(apple));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        oteli_exclude_update(table[i].list);
        for (int asked = 0; asked < 3; asked++) {
            assert_int_equal(is_excluded(apple), table[i].apple);
            assert_int_equal(is_excluded(apricot), table[i].apricot);
            assert_int_equal(is_excluded(banana), table[i].banana);
        }
    }
}

TEST(functions_of_no_module_are_not_excluded)
{
    oteli_exclude_update("*");

    assert_true(is_excluded(apple));
    assert_false(oteli_is_excluded((const void *)(uintptr_t)16));
}

/* As for a program that loads and unloads plug-ins for ever. */
TEST(updates_do_not_pile_up)
{
    static const char *const lists[] = {"*", "apple", "nothing"};
    oteli_exclude_fini();
    oteli_symbols_fini();
    oteli_leaks_begin();
    for (size_t i = 0; i < 6; i++)
        oteli_exclude_update(lists[i % 3]);
    const size_t live = oteli_leaks_live();
    for (size_t i = 0; i < 60; i++) {
        oteli_exclude_update(lists[i % 3]);
        assert_true(is_excluded(apple) == (i % 3 != 2));
        assert_true(is_excluded(banana) == (i % 3 == 0));
    }
    assert_int_equal(oteli_leaks_live(), live);
}

enum { ASKERS = 2, UPDATES = 40 };

struct asking {
    pthread_t thread;
    uint32_t is_over;
    bool is_wrong;
};

static void *ask(void *argument)
{
    struct asking *asking = argument;
    do {
        const char *code = (const char *)(uintptr_t)apple;
        for (size_t i = 0; i < 8; i++)
            asking->is_wrong |= !is_excluded(apple) || is_excluded(apricot) ||
                                (i < 2 && !oteli_is_excluded(code + i));
    } while (oteli_load_acquire_32(&asking->is_over) == 0);
    return NULL;
}

/* The tables take turns below those who read them. */
TEST(what_all_lists_say_is_said_while_they_change)
{
    static const char *const lists[] = {"apple,banana", "apple", "apple,f*,t*", "apple,m*"};
    struct asking asking[ASKERS] = {{.is_over = 0}};
    oteli_exclude_update("apple");
    for (size_t i = 0; i < ASKERS; i++)
        assert_int_equal(pthread_create(&asking[i].thread, NULL, ask, &asking[i]), 0);
    for (size_t i = 0; i < UPDATES; i++)
        oteli_exclude_update(lists[i % 4]);
    for (size_t i = 0; i < ASKERS; i++) {
        oteli_store_release_32(&asking[i].is_over, 1);
        pthread_join(asking[i].thread, NULL);
        assert_false(asking[i].is_wrong);
    }
}

/* Without memory the list that was there stays. */
TEST(without_memory_the_last_list_holds)
{
    oteli_exclude_update("apple");
    for (size_t nth = 1;; nth++) {
        oteli_leaks_fail_at(nth);
        oteli_exclude_update("*a*");
        const bool all_tried = !oteli_leaks_failed();
        assert_true(is_excluded(apple));
        if (is_excluded(banana))
            return;
        assert_false(all_tried);
    }
}

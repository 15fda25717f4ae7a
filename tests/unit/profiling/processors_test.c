/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/processors_test.c - specification of profiling/processors.h. */
#include "profiling/processors.h"
#include "tests/support/unit.h"

#include <stddef.h>

static unsigned count(const struct oteli_processors *processors)
{
    unsigned found = 0;
    for (unsigned number = 0; number < OTELI_PROCESSORS_MOST; number++)
        found += oteli_processors_has(processors, number);
    return found;
}

TEST(lists_are_numbers_and_ranges)
{
    struct oteli_processors processors;
    assert_true(oteli_processors_parse(&processors, "0-3,8,62-65\n"));
    assert_int_equal(count(&processors), 9);
    assert_true(oteli_processors_has(&processors, 3) && oteli_processors_has(&processors, 8));
    assert_true(oteli_processors_has(&processors, 62) && oteli_processors_has(&processors, 65));
    assert_false(oteli_processors_has(&processors, 4));
    assert_true(oteli_processors_parse(&processors, "8191"));
    assert_int_equal(count(&processors), 1);
}

TEST(all_else_is_no_list)
{
    const char *const others[] = {"",    "\n",   "x",      "-3",  "3-",  "3-x",
                                  "5-3", "8192", "0-8192", "1;2", "1 2", "99999999999999999999"};
    struct oteli_processors processors;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(oteli_processors_parse(&processors, others[i]));
}

TEST(one_is_on)
{
    struct oteli_processors processors;
    oteli_processors_online(&processors);
    assert_true(count(&processors) >= 1);
}

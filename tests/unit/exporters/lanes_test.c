/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exporters/lanes_test.c - specification of exporters/file/lanes.h: who shares a
 * track. */
#include "exporters/file/lanes.h"

#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 };

/* Spans as "start-end", and of a child "start-end^" with the number of its parent, from 0; a bar
 * between trees that are written one after the other. Lanes as digits. */
static const struct {
    const char *what, *spans, *lanes;
} table[] = {
    {"children lie on their parents", "0-10 1-9^0 2-4^1 4-8^1", "0000"},
    {"brothers that overlap do not share", "0-10 1-6^0 2-4^0 3-8^0 6-9^0", "00120"},
    {"grandchildren follow their parents elsewhere", "0-10 1-9^0 2-8^0 3-7^2 3-5^1", "00110"},
    {"what outlives its parent has a lane of its own", "0-10 5-15^0 6-12^1", "011"},
    {"what starts before its parent does too", "0-4^1 2-10 5-6^1", "011"},
    {"what begins when its parent has ended stands behind it", "0-4 4-4^0 5-9^0", "000"},
    {"lanes are used again, the freshest first: when the third comes, two are going on",
     "0-10 | 10-20 | 5-30 | 30-40 | 20-41 | 0-50", "001102"},
    {"a span without duration is not in the way", "0-10 3-3^0 3-3^0 4-5^0", "0000"},
};

/* Read a tree, up to a bar or the end. */
static uint32_t read_tree(const char **text, struct oteli_lane_span *spans)
{
    uint32_t count = 0;
    for (; **text != '\0' && **text != '|'; *text += strspn(*text, " ")) {
        char *at;
        spans[count] = (struct oteli_lane_span){.parent = OTELI_LANE_NONE};
        spans[count].start_ns = strtoull(*text, &at, 10);
        spans[count].end_ns = strtoull(at + 1, &at, 10);
        if (*at == '^')
            spans[count].parent = (uint32_t)strtoul(at + 1, &at, 10);
        *text = at;
        count++;
    }
    *text += strspn(*text, "| ");
    return count;
}

TEST(who_shares_a_lane)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct oteli_lanes lanes = {0};
        char digits[MOST + 1] = "";
        oteli_leaks_begin();
        for (const char *at = table[i].spans; *at != '\0';) {
            struct oteli_lane_span spans[MOST];
            const uint32_t count = read_tree(&at, spans);
            assert_true(oteli_lanes_assign(&lanes, spans, count));
            for (uint32_t k = 0; k < count; k++)
                snprintf(strchr(digits, '\0'), 2, "%u", spans[k].lane);
        }
        if (strcmp(digits, table[i].lanes) != 0)
            fail_msg("%s: %s", table[i].what, digits);
        oteli_lanes_fini(&lanes);
        oteli_leaks_check();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* After how long answers are tried again, and how Retry-After is read. */
#include "exporters/otlp/retry.h"
#include "tests/support/unit.h"

#include <stddef.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NOW = 784111777 }; /* Sun, 06 Nov 1994 08:49:37 GMT */

TEST(backoff_has_full_jitter_below_a_bound_that_grows)
{
    static const uint64_t bounds[] = {1000, 1500, 2250, 3375, 5062, 7593, 10000, 10000};
    for (unsigned i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        assert_int_equal(oteli_retry_backoff_ms(i, 0), 100);
        assert_in_range(oteli_retry_backoff_ms(i, UINT32_MAX), bounds[i] - 1, bounds[i]);
        assert_in_range(oteli_retry_backoff_ms(i, UINT32_MAX / 2), (bounds[i] + 100) / 2 - 1,
                        (bounds[i] + 100) / 2);
    }
    assert_in_range(oteli_retry_backoff_ms(UINT32_MAX, UINT32_MAX), 9999, 10000);
}

TEST(the_server_sets_the_least_wait)
{
    assert_int_equal(oteli_retry_wait_ms(0, 0, 0), 100);
    assert_int_equal(oteli_retry_wait_ms(0, 500, 0), 500);
    assert_int_equal(oteli_retry_wait_ms(0, 1000, 0), 1000);
    assert_in_range(oteli_retry_wait_ms(3, 1000, UINT32_MAX), 3374, 3375);
    assert_int_equal(oteli_retry_wait_ms(0, 5000, 0), 5000);
    assert_in_range(oteli_retry_wait_ms(0, 5000, UINT32_MAX), 5998, 6000);
    assert_true(oteli_retry_wait_ms(0, UINT64_MAX, UINT32_MAX) == UINT64_MAX);
    assert_true(oteli_retry_wait_ms(0, UINT64_MAX, 0) == UINT64_MAX);
    assert_true(oteli_retry_wait_ms(0, UINT64_MAX / 2, UINT32_MAX) >= UINT64_MAX / 2);
}

TEST(connecting_leaves_time_for_another_attempt)
{
    assert_int_equal(oteli_retry_connect_ms(UINT64_MAX), 5000);
    assert_int_equal(oteli_retry_connect_ms(10000), 5000);
    assert_int_equal(oteli_retry_connect_ms(3000), 1500);
    assert_int_equal(oteli_retry_connect_ms(2), 1);
    assert_int_equal(oteli_retry_connect_ms(0), 1);
}

TEST(retry_after_is_seconds_or_a_date)
{
    static const struct {
        const char *text;
        uint64_t wait_ms;
    } good[] = {
        {"0", 0},
        {"1", 1000},
        {"120", 120000},
        {"000007", 7000},
        {"63072000", UINT64_C(63072000000)},
        {"99999999999999999999999999999999", UINT64_MAX},
        {"Sun, 06 Nov 1994 08:49:37 GMT", 0},
        {"Sun, 06 Nov 1994 08:49:38 GMT", 1000},
        {"Sunday, 06-Nov-94 08:50:37 GMT", 60000},
        {"Sun Nov  6 08:49:39 1994", 2000},
        {"Mon, 07 Nov 1994 08:49:37 GMT", 86400000},
        {"Sun, 06 Nov 1994 08:49:36 GMT", 0},
        {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
        {"Tue, 29 Feb 2000 00:00:00 GMT", UINT64_C(951782400000) - NOW * UINT64_C(1000)},
        {"Fri, 01 Mar 2024 12:00:00 GMT", UINT64_C(1709294400000) - NOW * UINT64_C(1000)},
        {"Wednesday, 31-Dec-25 23:59:59 GMT", UINT64_C(1767225599000) - NOW * UINT64_C(1000)},
        {"Fri, 31 Dec 9999 23:59:59 GMT", UINT64_C(253402300799000) - NOW * UINT64_C(1000)},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t wait_ms = 12345;
        assert_true(oteli_retry_after_ms(good[i].text, NOW, &wait_ms));
        assert_true(wait_ms == good[i].wait_ms);
    }
}

TEST(a_bad_retry_after_is_none)
{
    static const char *const bad[] = {
        "",
        " ",
        "-1",
        "+1",
        "1e99",
        "1.5",
        "0x10",
        "5 minutes",
        "soon",
        "never, ever",
        "Sun, 06 Nov 1994",
        "06 Nov 1994 08:49:37 1995 7",
        "Sun, 06 Nov 1994 25:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 32 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nox 1994 08:49:37 GMT",
        "Sun, 06 Nov 1969 08:49:37 GMT",
        "Sun, 06 Nov 19940 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 08:49:37 GMT",
        ":::",
        "\xff\xfe",
        "Sun, 06 Nov 1994 :49:37 GMT",
        "averyverylongword 06 Nov 1994 08:49:37",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t wait_ms;
        if (oteli_retry_after_ms(bad[i], NOW, &wait_ms))
            fail_msg("\"%s\" was taken for a wait", bad[i]);
    }
}

/* A year and a bit in uneven steps, and the turns of months and centuries: each moment in the three
 * forms that HTTP has, as the C library writes them. */
TEST(R29_dates_are_read_in_every_form)
{
    static const char *const forms[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
                                        "%a %b %e %H:%M:%S %Y"};
    static const time_t marks[] = {951782399,  951782400,  951868800,  1709164799, 1709251199,
                                   1735689599, 1735689600, 1767225599, 2147483647, 2147483648};
    const size_t mark_count = sizeof marks / sizeof *marks;
    size_t tried = 0;
    for (size_t i = 0; i < 60 + mark_count; i++) {
        const time_t then =
            i < mark_count ? marks[i] : NOW + (time_t)(i - mark_count) * (7 * 86400 + 3671);
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
            char text[64];
            struct tm parts;
            uint64_t wait_ms = 12345;
            assert_non_null(gmtime_r(&then, &parts));
            assert_true(strftime(text, sizeof text, forms[k], &parts) != 0);
            if (!oteli_retry_after_ms(text, NOW, &wait_ms) ||
                wait_ms != (uint64_t)(then - NOW) * 1000)
                fail_msg("\"%s\" is %llu ms", text, (unsigned long long)wait_ms);
            tried++;
        }
    }
    assert_true(tried >= 200);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/call/retry.c - the back-off and Retry-After. Any thread;
 * owns nothing. Dates are read by hand: strptime follows the locale, timegm may read TZ
 * from the environment. */
#include "exporters/otlp/call/retry.h"

#include <stddef.h>
#include <string.h>

enum { LEAST_MS = 100, FIRST_MS = 1000, LONGEST_MS = 10000, CONNECT_LONGEST_MS = 5000 };

/* `value` times a share of `fraction` that chance decides. */
static uint64_t share(uint64_t value, uint32_t random)
{
    return value > UINT32_MAX ? (value >> 32) * random : value * random >> 32;
}

uint64_t oteli_retry_backoff_ms(unsigned retry, uint32_t random)
{
    uint64_t most = FIRST_MS;
    for (unsigned i = 0; i < retry && most < LONGEST_MS; i++)
        most += most / 2;
    if (most > LONGEST_MS)
        most = LONGEST_MS;
    return LEAST_MS + share(most - LEAST_MS, random);
}

uint64_t oteli_retry_wait_ms(unsigned retry, uint64_t asked_ms, uint32_t random)
{
    const uint64_t backoff = oteli_retry_backoff_ms(retry, random);
    const uint64_t spread = share(asked_ms / 5, random);
    const uint64_t asked = asked_ms > UINT64_MAX - spread ? UINT64_MAX : asked_ms + spread;
    return backoff > asked ? backoff : asked;
}

int64_t oteli_retry_connect_ms(uint64_t left_ms)
{
    if (left_ms < 2)
        return 1;
    return left_ms / 2 < CONNECT_LONGEST_MS ? (int64_t)(left_ms / 2) : CONNECT_LONGEST_MS;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Read up to `most` digits; -1 when there is none or there are more. */
static int take_number(const char **at, int most)
{
    int number = 0;
    int digits = 0;
    for (; is_digit(**at); (*at)++) {
        if (++digits > most)
            return -1;
        number = number * 10 + (**at - '0');
    }
    return digits != 0 ? number : -1;
}

/* A month by its English name, 1 to 12; 0 when it is none. */
static int month_of(const char *word, size_t length)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (length != 3)
        return 0;
    for (int i = 0; i < 12; i++) {
        if (memcmp(names + (size_t)i * 3, word, 3) == 0)
            return i + 1;
    }
    return 0;
}

struct date {
    int year, month, day, hour, minute, second;
};

/* Days from 1970-01-01 in the Gregorian calendar, counted in years that begin in March so
 * that the leap day is the last. */
static int64_t days_since_epoch(const struct date *date)
{
    const int64_t year = date->year - (date->month <= 2);
    const int64_t month = (date->month + 9) % 12;
    return year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + date->day - 1 -
           719468;
}

static bool take_time(const char **at, int hour, struct date *date)
{
    date->hour = hour;
    (*at)++;
    date->minute = take_number(at, 2);
    if (**at != ':')
        return false;
    (*at)++;
    date->second = take_number(at, 2);
    return hour <= 23 && date->minute >= 0 && date->minute <= 59 && date->second >= 0 &&
           date->second <= 60;
}

/* A number of a date is the day, the time when a colon follows, or else the year. */
static bool take_part(const char **at, struct date *date)
{
    const char *start = *at;
    const int number = take_number(at, 4);
    if (number < 0)
        return false;
    if (**at == ':')
        return date->hour < 0 && take_time(at, number, date);
    if (*at - start <= 2 && date->day < 0) {
        date->day = number;
        return number >= 1 && number <= 31;
    }
    if (date->year >= 0)
        return false;
    /* RFC 850 years have two digits. What lies before the epoch is in the next century. */
    const bool is_short = *at - start <= 2;
    date->year = is_short ? number + (number < 70 ? 2000 : 1900) : number;
    return date->year >= 1970;
}

/* Read any of
 *     Sun, 06 Nov 1994 08:49:37 GMT
 *     Sunday, 06-Nov-94 08:49:37 GMT
 *     Sun Nov  6 08:49:37 1994
 * as a weekday and then the same parts in whatever order. */
static bool parse_date(const char *at, int64_t *unix_s)
{
    struct date date = {-1, -1, -1, -1, -1, -1};
    while (*at != '\0') {
        if (*at == ' ' || *at == ',' || *at == '-') {
            at++;
        } else if (is_digit(*at)) {
            if (!take_part(&at, &date))
                return false;
        } else {
            const size_t length = strcspn(at, " ,-0123456789");
            const int month = month_of(at, length);
            if (month != 0)
                date.month = month;
            else if (length < 3 || length > 9)
                return false;
            at += length;
        }
    }
    if (date.year < 0 || date.month < 0 || date.day < 0 || date.hour < 0)
        return false;
    *unix_s = ((days_since_epoch(&date) * 24 + date.hour) * 60 + date.minute) * 60 + date.second;
    return true;
}

static bool parse_seconds(const char *text, uint64_t *wait_ms)
{
    uint64_t seconds = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (!is_digit(*text))
            return false;
        if (seconds <= UINT64_MAX / 100000)
            seconds = seconds * 10 + (uint64_t)(*text - '0');
        else
            seconds = UINT64_MAX / 1000;
    }
    *wait_ms = seconds >= UINT64_MAX / 1000 ? UINT64_MAX : seconds * 1000;
    return true;
}

bool oteli_retry_after_ms(const char *text, int64_t now_unix_s, uint64_t *wait_ms)
{
    if (parse_seconds(text, wait_ms))
        return true;
    int64_t until;
    if (!parse_date(text, &until))
        return false;
    *wait_ms = until > now_unix_s ? (uint64_t)(until - now_unix_s) * 1000 : 0;
    return true;
}

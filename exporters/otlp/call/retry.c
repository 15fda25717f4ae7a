/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/call/retry.c - the back-off and Retry-After. Any thread; owns nothing. libcurl
 * reads dates: strptime follows the locale, timegm may read TZ from the environment. */
#include "exporters/otlp/call/retry.h"

#include "common/text/text.h"
#include "exporters/otlp/transport/transport.h"

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

bool oteli_retry_after_ms(const char *text, int64_t now_unix_s, uint64_t *wait_ms)
{
    int64_t seconds;
    if (oteli_parse_whole(oteli_slice_of(text), &seconds)) {
        *wait_ms = seconds < INT64_MAX / 1000 ? (uint64_t)seconds * 1000 : UINT64_MAX;
        return true;
    }
    int64_t until;
    if (!oteli_transport_date(text, &until))
        return false;
    *wait_ms = until > now_unix_s ? (uint64_t)(until - now_unix_s) * 1000 : 0;
    return true;
}

void oteli_retry_read(struct oteli_outcome *outcome, int64_t now_unix_s)
{
    if (outcome->retry_after != NULL &&
        oteli_retry_after_ms(outcome->retry_after, now_unix_s, &outcome->asked_ms))
        outcome->is_throttled = true;
    outcome->retry_after = NULL;
}

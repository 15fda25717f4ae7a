/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/transport_url.c - what curl thinks of URLs and dates. Any thread; owns
 * nothing. */
#include "exporters/otlp/transport/transport.h"
#include "exporters/otlp/transport/transport_parts.h"

#include <string.h>
#include <strings.h>

bool oteli_transport_url_is_valid(const char *url)
{
    const size_t scheme = strncasecmp(url, "http://", 7) == 0    ? 7
                          : strncasecmp(url, "https://", 8) == 0 ? 8
                                                                 : 0;
    /* curl takes a third slash for a slip of the pen; here it is a missing host. */
    if (scheme == 0 || strcspn(url + scheme, "/?#") == 0)
        return false;
    CURLU *parts = curl_url();
    const bool is_valid = parts != NULL && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK;
    curl_url_cleanup(parts);
    return is_valid;
}

char *oteli_transport_url_for_log(const char *url)
{
    static const CURLUPart secret[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS,
                                       CURLUPART_QUERY, CURLUPART_FRAGMENT};
    CURLU *parts = curl_url();
    char *text = NULL;
    char *copy = NULL;
    if (parts != NULL && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK) {
        for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
            (void)curl_url_set(parts, secret[i], NULL, 0);
        if (curl_url_get(parts, CURLUPART_URL, &text, 0) == CURLUE_OK)
            copy = strdup(text);
    }
    curl_free(text);
    curl_url_cleanup(parts);
    return copy;
}

bool oteli_transport_date(const char *text, int64_t *unix_s)
{
    const time_t date = curl_getdate(text, NULL);
    *unix_s = date;
    return date >= 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* api/http/url.h - cut URLs and the headers of proxies into the parts that attributes are made of,
 * and hide the secrets in them. Parts point into the text that they are of.
 *
 * Threads:  any thread; no state. */
#ifndef OTELI_HTTP_URL_H
#define OTELI_HTTP_URL_H

#include "common/text/text.h"

/* Shorten the text to what stands before the first `mark`. Returns what stands behind it. */
static inline otel_slice oteli_cut_behind(otel_slice *text, char mark)
{
    const char *at = text->length != 0 ? memchr(text->data, mark, text->length) : NULL;
    if (at == NULL)
        return otel_slice_n(NULL, 0);
    const char *end = text->data + text->length;
    text->length = (size_t)(at - text->data);
    return otel_slice_n(at + 1, (size_t)(end - at - 1));
}

/* Copies and texts that are put together, on the stack of the call; what does not fit is cut. */
struct oteli_url_text {
    size_t used;
    char text[4096];
};

otel_slice oteli_url_keep(struct oteli_url_text *text, otel_slice piece);

/* "scheme://user@host:port/path?query#fragment": parts that are not there are empty. */
struct oteli_url {
    otel_slice scheme;
    otel_slice user;      /* with its '@' */
    otel_slice authority; /* host and port */
    otel_slice path;
    otel_slice query;
};

/* Cut a URL, or a path with its query. */
struct oteli_url oteli_url_cut(otel_slice text);

/* The host of "host", "host:port", "[::1]:port" or "::1", without brackets. `*port` stays as it is
 * where there is none. */
otel_slice oteli_url_host(otel_slice authority, uint16_t *port);

/* scheme://authority, and the path behind it. */
otel_slice oteli_url_join(struct oteli_url_text *text, otel_slice scheme, otel_slice authority,
                          otel_slice path);

/* The text as it may be shown: itself, or a copy in which its part `user`, and the values of secret
 * parameters in its part `query`, are REDACTED. */
otel_slice oteli_url_redact(struct oteli_url_text *text, otel_slice whole, otel_slice user,
                            otel_slice query);

/* What one proxy says in its member of a Forwarded header (RFC 7239); the first member is that of
 * the proxy which the client has called. Empty: nothing. A client that is unknown or has a made-up
 * name is none. */
struct oteli_forwarded {
    otel_slice client;
    otel_slice scheme;
    otel_slice host;
};
struct oteli_forwarded oteli_url_forwarded(otel_slice member);

#endif

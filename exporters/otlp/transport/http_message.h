/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/http_message.h - a request as a transport (transport.h) has it, and
 * where it sends requests. */
#ifndef OTELI_HTTP_MESSAGE_H
#define OTELI_HTTP_MESSAGE_H

#include "exporters/otlp/protocol/http_response.h"
#include "exporters/otlp/transport/tls.h"

#include <otel/otlp.h>

/* What an observer is told of a request while it runs, for tools that say why it fails. */
enum oteli_observed {
    OTELI_OBSERVED_TEXT, /* libcurl's words, meant for people; may have secrets in them */
    OTELI_OBSERVED_LINE  /* a header line of an answer, a proxy's too */
};
struct oteli_observer {
    void (*note)(void *state, enum oteli_observed what, const char *bytes, size_t length);
    void *state;
};

struct oteli_transport_options {
    const char *url;         /* http or https */
    const char *unix_socket; /* the path to connect to instead of the URL's host; NULL: none */
    const char *user_agent;
    const char *proxy;               /* "" or NULL: none */
    const char *no_proxy;            /* "" or NULL: none */
    const otel_otlp_header *headers; /* of every request, Content-Type and its like among them:
                                        the transport adds none but User-Agent, and the Accept
                                        of curl where there is none */
    size_t header_count;
    size_t max_response_bytes; /* after decompression; 0: 4 MiB */
    bool gets;                 /* instead of posting */
    bool is_http2;             /* nothing else: with prior knowledge, or by ALPN under TLS */
    struct oteli_tls tls;      /* counts for https, and for a proxy of that kind */
    const struct oteli_observer *observer; /* called while polling; NULL: none */
};

struct oteli_transport_request {
    const void *body; /* stays until the answer */
    size_t length;
    int64_t connect_ms; /* give up connecting after this */
    bool fresh; /* not over the connection of the request before; names are looked up anew */
    const otel_otlp_header *headers; /* of this request alone, copied; one with the name of a
                                        constant one replaces it */
    size_t header_count;
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/http_message.h - a request and a response, as a transport (transport.h)
 * has them, and where it sends requests. */
#ifndef OTELI_HTTP_MESSAGE_H
#define OTELI_HTTP_MESSAGE_H

#include "exporters/otlp/protocol/response.h"
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
    const char *no_proxy;            /* the same */
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

/* How far a request has come. */
enum oteli_transport_step {
    OTELI_STEP_NAME,    /* looking up the host's address, or the proxy's */
    OTELI_STEP_CONNECT, /* to that address */
    OTELI_STEP_PROXY,   /* asking it for a way through */
    OTELI_STEP_TLS,     /* handshake, certificates */
    OTELI_STEP_SEND,
    OTELI_STEP_ANSWER /* waiting for it, or reading it */
};

/* What came of a request. Valid until the next one starts. */
struct oteli_transport_response {
    int status;         /* 0: no (whole) answer */
    bool body_was_sent; /* no answer, but the receiver may have got the spans */
    int os_error; /* errno of the connection that failed last, also where another one came about;
                     0: none */
    bool connection_refused; /* no answer: no process listens there, or there is no route */
    bool is_hopeless;        /* no answer, and no retry can help: a bad certificate, for example */
    bool is_too_long;        /* the answer was above the limit and has been cut off */
    bool is_tls_file;        /* no answer, because a file that TLS needs cannot be used */
    int proxy_status;        /* of a proxy's answer to CONNECT; 0: none */
    struct oteli_response_body body;
    /* Header or trailer fields; NULL: none, or longer than what is kept. */
    const char *retry_after;
    const char *content_type;
    const char *grpc_status;        /* of a trailer, or of the headers of an answer without body */
    const char *grpc_message;       /* percent-encoded; the first KiB of it */
    const char *grpc_details;       /* grpc-status-details-bin, base64; at most 8 KiB */
    const char *problem;            /* no answer: why, in words */
    enum oteli_transport_step step; /* no answer: how far it got */
};

#endif

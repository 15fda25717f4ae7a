/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol/http_response.h - what came of an HTTP request: what a transport
 * (transport.h) fills in, and what a protocol reads. */
#ifndef OTELI_HTTP_RESPONSE_H
#define OTELI_HTTP_RESPONSE_H

#include "exporters/otlp/protocol/response.h"

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

/* SPDX-License-Identifier: Apache-2.0 */
/* otel/http.h - spans of HTTP servers and clients, by the semantic conventions.
 *
 * A server, whose span continues the trace of its client, and is current on this thread:
 *
 *     otel_http_options options = {.size = sizeof options, .get_header = get, .carrier = request};
 *     otel_span span = otel_http_server_enter(tracer, "GET", "/users/7?full=1", &options);
 *     otel_http_set_route(span, "/users/{id}");                as soon as it is known
 *     otel_http_server_end(span, 200, NULL);
 *
 * A client, which sends its context along:
 *
 *     otel_http_options options = {.size = sizeof options, .set_header = set, .carrier = headers};
 *     otel_span span = otel_http_client_enter(tracer, "GET", "https://example.com/a", &options);
 *     otel_http_client_end(span, 0, "timeout");                or the status of the answer
 *
 * The span is one of otel/trace.h: set more attributes, add events, end it as any other.
 *
 * Names:    "{method} {route}", or "{method}"; "HTTP" instead of a method that is not known.
 * Secrets:  user and password of a URL become REDACTED:REDACTED@, in url.full; and so do, in
 *           url.full and url.query, the values of the parameters X-Amz-Signature,
 *           X-Amz-Credential, X-Amz-Security-Token, X-Goog-Signature, sig, AWSAccessKeyId
 *           and Signature.
 * Strings:  borrowed for the call. What has to be put together or copied for a span, such as a
 *           URL with secrets, is cut behind 4,096 bytes in all; all else has the limits of spans.
 * Threads:  any thread, as in otel/trace.h.
 * Signals:  as in otel/context.h: not in a handler that may have interrupted malloc.
 * Cost:     that of a span with its attributes, and 5 KiB of stack at its start; no lock and no
 *           allocation beyond those of spans. Attributes are not made while no SDK runs.
 * Errors:   none. What is not known, or is not valid, is left out.
 * Source:   OpenTelemetry semantic conventions 1.44.0, docs/http/http-spans.md; RFC 7239. */
#ifndef OTEL_HTTP_H
#define OTEL_HTTP_H

#include <otel/propagate.h>
#include <otel/trace.h>

OTEL_BEGIN_DECLS

/* What else is known of a request when its span starts, each field or none; texts as by
 * otel_slice_of("https") or otel_slice_n(data, length). */
typedef struct otel_http_options {
    size_t size;                /* sizeof(otel_http_options) */
    const otel_context *parent; /* NULL: this thread's current context */
    uint64_t start_ns;          /* Unix time; 0: now. Below 2^63 */

    /* "GET,PURGE": these are known, and no others. NULL: those of the environment variable
     * OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS when the SDK was started, or of the conventions. */
    const char *known_methods;

    otel_slice scheme;           /* "https"; empty: that of the target, or "http" */
    otel_slice authority;        /* "example.com:8080", where the target has none; empty: Host */
    otel_slice route;            /* server: "/users/{id}", if it is known already */
    otel_slice protocol_version; /* "1.1", "2"; or "HTTP/1.1" */
    otel_slice peer_address;     /* of the connection: "192.0.2.4", or the path of a socket */
    uint16_t peer_port;

    /* Server: the headers Forwarded, or X-Forwarded-For, -Proto and -Host, say what the client has
     * asked for. Only behind a proxy that lets none of the client's own through. */
    bool trusts_proxy;

    uint32_t resend_count; /* client: 1 for the first retry or redirect of a request, and so on */

    /* The headers of the request, by the functions of otel/propagate.h: a server extracts its
     * parent, and gets Host and User-Agent; a client injects its context. NULL: neither. */
    otel_get_header *get_header;
    otel_list_headers *list_headers;
    otel_set_header *set_header;
    void *carrier;

    otel_context *context; /* is set to the span's, with its baggage; NULL: not wanted */

    /* Server: the User-Agent, where there is no get_header: for a program that has extracted
     * `parent` itself, and knows its headers. */
    otel_slice user_agent;
} otel_http_options;

#define OTEL_HTTP_OPTIONS(...) \
    (&(otel_http_options){.size = sizeof(otel_http_options), __VA_ARGS__})

/* Behind the inline functions: a span of kind SERVER or CLIENT, for texts without a final NUL. */
OTEL_API void otel_http_enter_p(otel_span *span, otel_tracer *tracer, otel_span_kind kind,
                                otel_slice method, otel_slice target,
                                const otel_http_options *options);
OTEL_API void otel_http_start_p(otel_span *span, otel_tracer *tracer, otel_span_kind kind,
                                otel_slice method, otel_slice target,
                                const otel_http_options *options);
OTEL_API void otel_http_set_route_n(otel_span span, const char *route, size_t length);
OTEL_API void otel_http_end_n(otel_span span, otel_span_kind kind, unsigned status,
                              const char *error_type, size_t length);

/* Start the span of a request: entered, so that it is current on this thread; or started, for any
 * thread. A server's target is what stands in the request line ("/users/7?full=1"), a client's the
 * URL, or the path, with scheme and authority in the options. Options may be NULL. */
OTEL_INLINE otel_span otel_http_server_enter(otel_tracer *tracer, const char *method,
                                             const char *target, const otel_http_options *options)
{
    otel_span span;
    otel_http_enter_p(&span, tracer, OTEL_SPAN_KIND_SERVER, otel_slice_of(method),
                      otel_slice_of(target), options);
    return span;
}
OTEL_INLINE otel_span otel_http_server_start(otel_tracer *tracer, const char *method,
                                             const char *target, const otel_http_options *options)
{
    otel_span span;
    otel_http_start_p(&span, tracer, OTEL_SPAN_KIND_SERVER, otel_slice_of(method),
                      otel_slice_of(target), options);
    return span;
}
OTEL_INLINE otel_span otel_http_client_enter(otel_tracer *tracer, const char *method,
                                             const char *url, const otel_http_options *options)
{
    otel_span span;
    otel_http_enter_p(&span, tracer, OTEL_SPAN_KIND_CLIENT, otel_slice_of(method),
                      otel_slice_of(url), options);
    return span;
}
OTEL_INLINE otel_span otel_http_client_start(otel_tracer *tracer, const char *method,
                                             const char *url, const otel_http_options *options)
{
    otel_span span;
    otel_http_start_p(&span, tracer, OTEL_SPAN_KIND_CLIENT, otel_slice_of(method),
                      otel_slice_of(url), options);
    return span;
}

/* Set the route of a server's span: http.route, and the name. A route of more than 500
 * bytes is no part of the name. */
OTEL_INLINE void otel_http_set_route(otel_span span, const char *route)
{
    if (span.opaque[3] & OTEL_SPAN_IS_RECORDING_)
        otel_http_set_route_n(span, route, otel_length_(route));
}

/* End the span with the status of the answer (0: there was none) and, if something else went wrong
 * that has a name of few, such as "timeout", that as error.type; or NULL. An error is what has
 * an error type, 5xx, and for a client 4xx. A client that has given up of its own will says 0 and
 * NULL, which is no error. A status that the program has set itself stays. */
OTEL_INLINE void otel_http_server_end(otel_span span, unsigned status, const char *error_type)
{
    if (span.opaque[3] & OTEL_SPAN_IS_OPEN_)
        otel_http_end_n(span, OTEL_SPAN_KIND_SERVER, status, error_type, otel_length_(error_type));
}
OTEL_INLINE void otel_http_client_end(otel_span span, unsigned status, const char *error_type)
{
    if (span.opaque[3] & OTEL_SPAN_IS_OPEN_)
        otel_http_end_n(span, OTEL_SPAN_KIND_CLIENT, status, error_type, otel_length_(error_type));
}

OTEL_END_DECLS
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* api/http/http.c - the spans of otel/http.h: what is known of a request becomes the attributes of
 * the semantic conventions, and the span gets them at its start, so that samplers see them.
 *
 * Attributes point into the program's text (url.c cuts it). What is put together, and what a getter
 * lends only until its next call, is copied into the request, which is on the stack.
 *
 * Threads:  any thread; no state. */
#include "api/http/methods.h"
#include "api/http/url.h"
#include "api/span/inspect.h"
#include "common/base/sized.h"
#include <otel/http.h>
#include <otel/semconv.h>

#include <stdio.h>

enum {
    NAME_MOST = 600, /* a method and a route */
    ATTRIBUTES_MOST = 13,
    STATUS_LEAST = 100,
    STATUS_CLIENT_ERROR = 400,
    STATUS_SERVER_ERROR = 500
};

/* A span that is about to start. */
struct request {
    const otel_http_options *options;
    otel_attribute attributes[ATTRIBUTES_MOST];
    size_t count;
    struct oteli_url_text text;
};

/* Field by field: whole values are moved through memory once more. */
static inline otel_attribute *add(struct request *request, const char *key, otel_value_type type)
{
    otel_attribute *next = &request->attributes[request->count++];
    next->key = key;
    next->key_length = strlen(key);
    next->value.type = type;
    next->value.reserved = 0;
    return next;
}

static inline void add_text(struct request *request, const char *key, otel_slice text)
{
    if (text.length == 0)
        return;
    otel_attribute *next = add(request, key, OTEL_VALUE_STRING);
    next->value.length = text.length;
    next->value.as.string = text.data;
}

/* Numbers that are zero are not known, or not worth an attribute. */
static inline void add_number(struct request *request, const char *key, int64_t number)
{
    if (number == 0)
        return;
    otel_attribute *next = add(request, key, OTEL_VALUE_INT);
    next->value.length = 0;
    next->value.as.integer = number;
}

/* The first header of this name, lent until the next one is asked for; empty: there is none. */
static otel_slice lent_header(const struct request *request, const char *name)
{
    size_t length = 0;
    const char *text = request->options->get_header(request->options->carrier, name, 0, &length);
    if (text == NULL || length == 0)
        return otel_slice_n(NULL, 0);
    const bool has_blanks = text[0] <= ' ' || text[length - 1] <= ' ';
    return has_blanks ? oteli_trim(otel_slice_n(text, length)) : otel_slice_n(text, length);
}

static otel_slice header(struct request *request, const char *name)
{
    return oteli_url_keep(&request->text, lent_header(request, name));
}

/* The first member of a list, which each proxy on the way has made longer. */
static otel_slice first_member(struct request *request, const char *name)
{
    otel_slice list = lent_header(request, name);
    otel_slice member = {NULL, 0};
    (void)oteli_list_next(&list, &member);
    return oteli_url_keep(&request->text, member);
}

/* --- methods and names --- */

/* Write "method route" and a NUL, or "method" where the route is too long. The method is one that
 * is known, or "HTTP". */
static otel_slice put_name(char name[NAME_MOST], otel_slice method, otel_slice route)
{
    oteli_slice_put(name, method);
    if (method.length + 1 + route.length >= NAME_MOST)
        return otel_slice_n(name, method.length);
    name[method.length] = ' ';
    oteli_slice_put(name + method.length + 1, route);
    return otel_slice_n(name, method.length + 1 + route.length);
}

/* Add the method, and say what stands for it in the name. */
static otel_slice add_method(struct request *request, otel_slice method)
{
    if (oteli_methods_know(method, request->options->known_methods)) {
        add_text(request, OTEL_SEMCONV_HTTP_REQUEST_METHOD, method);
        return method;
    }
    add_text(request, OTEL_SEMCONV_HTTP_REQUEST_METHOD,
             otel_slice_of(OTEL_SEMCONV_HTTP_REQUEST_METHOD_VALUE_OTHER));
    add_text(request, OTEL_SEMCONV_HTTP_REQUEST_METHOD_ORIGINAL, method);
    return otel_slice_of("HTTP");
}

/* --- what is known of a request --- */

/* Where it goes: the port is that of the scheme if the authority has none. */
static void add_server(struct request *request, otel_slice scheme, otel_slice authority)
{
    uint16_t port = 0;
    const otel_slice host = oteli_url_host(authority, &port);
    if (host.length == 0)
        return;
    if (port == 0 && oteli_is_word(scheme, "https"))
        port = 443;
    else if (port == 0 && oteli_is_word(scheme, "http"))
        port = 80;
    add_text(request, OTEL_SEMCONV_SERVER_ADDRESS, host);
    add_number(request, OTEL_SEMCONV_SERVER_PORT, port);
}

/* The connection that it came or goes by. */
static void add_network(struct request *request)
{
    const otel_http_options *options = request->options;
    otel_slice version = options->protocol_version;
    if (version.length > 5 && memcmp(version.data, "HTTP/", 5) == 0)
        version = otel_slice_n(version.data + 5, version.length - 5);
    if (oteli_is_text(version, "2.0") || oteli_is_text(version, "3.0"))
        version.length = 1;
    if (options->peer_address.length != 0) {
        add_text(request, OTEL_SEMCONV_NETWORK_PEER_ADDRESS, options->peer_address);
        add_number(request, OTEL_SEMCONV_NETWORK_PEER_PORT, options->peer_port);
    }
    add_text(request, OTEL_SEMCONV_NETWORK_PROTOCOL_VERSION, version);
}

/* What the proxies in front of a server say that its client has asked for. */
static struct oteli_forwarded forwarded(struct request *request)
{
    struct oteli_forwarded said = oteli_url_forwarded(first_member(request, "forwarded"));
    if (said.client.length == 0)
        said.client = oteli_url_host(first_member(request, "x-forwarded-for"), &(uint16_t){0});
    if (said.scheme.length == 0)
        said.scheme = first_member(request, "x-forwarded-proto");
    if (said.host.length == 0)
        said.host = first_member(request, "x-forwarded-host");
    return said;
}

/* The first of these that is not empty. */
static otel_slice first_of(otel_slice one, otel_slice other, otel_slice last)
{
    if (one.length != 0)
        return one;
    return other.length != 0 ? other : last;
}

static void describe_server(struct request *request, otel_slice method, otel_slice target)
{
    const otel_http_options *options = request->options;
    const bool has_headers = options->get_header != NULL;
    struct oteli_forwarded said = {{0}, {0}, {0}};
    if (has_headers && options->trusts_proxy)
        said = forwarded(request);
    const struct oteli_url url = oteli_is_text(method, "CONNECT")
                                     ? (struct oteli_url){.authority = target}
                                     : oteli_url_cut(target);
    otel_slice authority = first_of(said.host, url.authority, options->authority);
    if (authority.length == 0 && has_headers)
        authority = header(request, "host");
    otel_slice scheme = first_of(said.scheme, options->scheme, url.scheme);
    if (scheme.length == 0)
        scheme = otel_slice_of("http");

    add_text(request, OTEL_SEMCONV_URL_SCHEME, scheme);
    add_text(request, OTEL_SEMCONV_URL_PATH, url.path);
    if (url.query.length != 0)
        add_text(request, OTEL_SEMCONV_URL_QUERY,
                 oteli_url_redact(&request->text, url.query, (otel_slice){0}, url.query));
    add_server(request, scheme, authority);
    add_text(request, OTEL_SEMCONV_CLIENT_ADDRESS,
             said.client.length != 0 ? said.client : options->peer_address);
    add_network(request);
    add_text(request, OTEL_SEMCONV_HTTP_ROUTE, options->route);
    add_text(request, OTEL_SEMCONV_USER_AGENT_ORIGINAL,
             has_headers ? lent_header(request, "user-agent") : options->user_agent);
}

static void describe_client(struct request *request, otel_slice target)
{
    const otel_http_options *options = request->options;
    struct oteli_url url = oteli_url_cut(target);
    const bool is_path = target.length == 0 || target.data[0] == '/';
    if (url.scheme.length == 0 && (options->authority.length != 0 || !is_path)) {
        const otel_slice scheme =
            options->scheme.length != 0 ? options->scheme : otel_slice_of("http");
        target = oteli_url_join(&request->text, scheme, options->authority, target);
        url = oteli_url_cut(target);
    }
    add_text(request, OTEL_SEMCONV_URL_FULL,
             oteli_url_redact(&request->text, target, url.user, url.query));
    add_server(request, url.scheme, url.authority);
    add_network(request);
    add_number(request, OTEL_SEMCONV_HTTP_REQUEST_RESEND_COUNT, options->resend_count);
}

/* --- start, route and end --- */

typedef void start_span(otel_span *span, otel_tracer *tracer, const char *name, size_t name_length,
                        const otel_span_options *options);

static void start(start_span *begin, otel_span *span, otel_tracer *tracer, otel_span_kind kind,
                  otel_slice method, otel_slice target, const otel_http_options *options)
{
    static const otel_http_options none = {.size = sizeof none};
    otel_http_options known;
    struct request request;
    request.options = options =
        options != NULL ? oteli_sized(options, options->size, &known, sizeof known) : &none;
    request.count = 0;
    request.text.used = 0;
    const bool is_server = kind == OTEL_SPAN_KIND_SERVER;
    otel_context context;
    if (is_server && options->get_header != NULL) {
        const otel_carrier_reader reader = {options->get_header, options->list_headers,
                                            options->carrier};
        context = otel_extract_from(options->parent, &reader);
    } else {
        context = options->parent != NULL ? *options->parent : otel_current_context();
    }

    char whole_name[NAME_MOST];
    otel_slice name = add_method(&request, method);
    if (options->route.length != 0)
        name = put_name(whole_name, name, options->route);
    if (otel_tracer_enabled(tracer)) {
        if (is_server)
            describe_server(&request, method, target);
        else
            describe_client(&request, target);
    }
    const otel_span_options span_options = {.size = sizeof span_options,
                                            .kind = kind,
                                            .parent = &context,
                                            .attributes = request.attributes,
                                            .attribute_count = request.count,
                                            .start_ns = options->start_ns};
    begin(span, tracer, name.data, name.length, &span_options);
    if (options->context == NULL && options->set_header == NULL)
        return;
    context = otel_context_with_span(context, *span);
    if (options->context != NULL)
        *options->context = context;
    if (options->set_header != NULL)
        otel_inject(&context, options->set_header, options->carrier);
}

void otel_http_enter_p(otel_span *span, otel_tracer *tracer, otel_span_kind kind, otel_slice method,
                       otel_slice target, const otel_http_options *options)
{
    start(otel_span_enter_p, span, tracer, kind, method, target, options);
}

void otel_http_start_p(otel_span *span, otel_tracer *tracer, otel_span_kind kind, otel_slice method,
                       otel_slice target, const otel_http_options *options)
{
    start(otel_span_start_p, span, tracer, kind, method, target, options);
}

/* What the span knows of itself: its method, and its status. */
static struct oteli_peek peek(const otel_span *span, char method[OTELI_METHOD_MOST])
{
    struct oteli_peek known = {.key = OTEL_SEMCONV_HTTP_REQUEST_METHOD,
                               .key_length = sizeof OTEL_SEMCONV_HTTP_REQUEST_METHOD - 1,
                               .value = method,
                               .size = OTELI_METHOD_MOST};
    oteli_span_peek(span, &known);
    return known;
}

void otel_http_set_route_n(otel_span span, const char *route, size_t length)
{
    char name[NAME_MOST];
    char text[OTELI_METHOD_MOST];
    if (length == 0)
        return;
    otel_slice method = otel_slice_n(text, peek(&span, text).length);
    if (method.length == 0 || method.length > sizeof text ||
        oteli_is_text(method, OTEL_SEMCONV_HTTP_REQUEST_METHOD_VALUE_OTHER))
        method = otel_slice_of("HTTP");
    otel_span_update_name(span, put_name(name, method, otel_slice_n(route, length)).data);
    otel_span_set_string_n(otel_span_ref_of(&span), OTEL_SEMCONV_HTTP_ROUTE,
                           sizeof OTEL_SEMCONV_HTTP_ROUTE - 1, route, length);
}

void otel_http_end_n(otel_span span, otel_span_kind kind, unsigned status, const char *error_type,
                     size_t length)
{
    const otel_span_ref ref = otel_span_ref_of(&span);
    const unsigned least =
        kind == OTEL_SPAN_KIND_CLIENT ? STATUS_CLIENT_ERROR : STATUS_SERVER_ERROR;
    const bool is_bad = status >= least || (status != 0 && status < STATUS_LEAST);
    char digits[12];
    otel_slice error = otel_slice_n(error_type, length);
    if (error.length == 0 && is_bad)
        error = otel_slice_n(digits, (size_t)snprintf(digits, sizeof digits, "%u", status));
    if (status != 0)
        otel_span_set_int_n(ref, OTEL_SEMCONV_HTTP_RESPONSE_STATUS_CODE,
                            sizeof OTEL_SEMCONV_HTTP_RESPONSE_STATUS_CODE - 1, status);
    char method[OTELI_METHOD_MOST];
    const unsigned said = error.length != 0 ? peek(&span, method).status : OTEL_SPAN_STATUS_OK;
    if (said != OTEL_SPAN_STATUS_OK)
        otel_span_set_string_n(ref, OTEL_SEMCONV_ERROR_TYPE, sizeof OTEL_SEMCONV_ERROR_TYPE - 1,
                               error.data, error.length);
    if (said == OTEL_SPAN_STATUS_UNSET)
        otel_span_set_status(span, OTEL_SPAN_STATUS_ERROR, NULL);
    otel_span_end_n(ref, 0);
}

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
#include "common/base/atomic.h"
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
    struct oteli_url_text text;
};

/* Attributes are added at `next`, and what comes behind is returned. They are written field by
 * field: whole values are moved through memory once more. */

static OTELI_INLINE void put_key(otel_attribute *next, const char *key, otel_value_type type)
{
    next->key = key;
    next->key_length = strlen(key);
    next->value.type = type;
    next->value.reserved = 0;
}

static OTELI_INLINE otel_attribute *add_text(otel_attribute *next, const char *key, otel_slice text)
{
    if (text.length == 0)
        return next;
    put_key(next, key, OTEL_VALUE_STRING);
    next->value.length = text.length;
    next->value.as.string = text.data;
    return next + 1;
}

/* Numbers that are zero are not known, or not worth an attribute. */
static OTELI_INLINE otel_attribute *add_number(otel_attribute *next, const char *key,
                                               int64_t number)
{
    if (number == 0)
        return next;
    put_key(next, key, OTEL_VALUE_INT);
    next->value.length = 0;
    next->value.as.integer = number;
    return next + 1;
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

/* Add the method. What stands for it in the name replaces it. */
static OTELI_INLINE otel_attribute *add_method(otel_attribute *next, otel_slice *method,
                                               const char *known)
{
    if (OTELI_LIKELY(oteli_methods_know(*method, known)))
        return add_text(next, OTEL_SEMCONV_HTTP_REQUEST_METHOD, *method);
    next = add_text(next, OTEL_SEMCONV_HTTP_REQUEST_METHOD,
                    otel_slice_of(OTEL_SEMCONV_HTTP_REQUEST_METHOD_VALUE_OTHER));
    next = add_text(next, OTEL_SEMCONV_HTTP_REQUEST_METHOD_ORIGINAL, *method);
    *method = otel_slice_of("HTTP");
    return next;
}

/* --- what is known of a request --- */

/* Where it goes: the port is that of the scheme if the authority has none. */
static otel_attribute *add_server(otel_attribute *next, otel_slice scheme, otel_slice authority)
{
    uint16_t port = 0;
    const otel_slice host = oteli_url_host(authority, &port);
    if (host.length == 0)
        return next;
    if (port == 0 && oteli_is_word(scheme, "https"))
        port = 443;
    else if (port == 0 && oteli_is_word(scheme, "http"))
        port = 80;
    next = add_text(next, OTEL_SEMCONV_SERVER_ADDRESS, host);
    return add_number(next, OTEL_SEMCONV_SERVER_PORT, port);
}

/* The connection that it came or goes by. */
static otel_attribute *add_network(otel_attribute *next, const otel_http_options *options)
{
    otel_slice version = options->protocol_version;
    if (version.length > 5 && memcmp(version.data, "HTTP/", 5) == 0)
        version = otel_slice_n(version.data + 5, version.length - 5);
    if (oteli_is_text(version, "2.0") || oteli_is_text(version, "3.0"))
        version.length = 1;
    if (options->peer_address.length != 0) {
        next = add_text(next, OTEL_SEMCONV_NETWORK_PEER_ADDRESS, options->peer_address);
        next = add_number(next, OTEL_SEMCONV_NETWORK_PEER_PORT, options->peer_port);
    }
    return add_text(next, OTEL_SEMCONV_NETWORK_PROTOCOL_VERSION, version);
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

/* Cut a server's target. Mostly it is a path: `*scheme` and `*authority` stay as they are then. */
static OTELI_INLINE void cut_target(otel_slice method, otel_slice target, otel_slice *path,
                                    otel_slice *query, otel_slice *scheme, otel_slice *authority)
{
    *path = target;
    *query = otel_slice_n(NULL, 0);
    if (oteli_is_text(method, "CONNECT")) {
        path->length = 0;
        *authority = target;
    } else if (OTELI_LIKELY(target.length != 0) && OTELI_LIKELY(target.data[0] == '/')) {
        (void)oteli_cut_behind(path, '#');
        *query = oteli_cut_behind(path, '?');
    } else {
        const struct oteli_url url = oteli_url_cut(target);
        *path = url.path;
        *query = url.query;
        *scheme = url.scheme;
        *authority = url.authority;
    }
}

static OTELI_INLINE otel_attribute *describe_server(struct request *request, otel_attribute *next,
                                                    otel_slice method, otel_slice target)
{
    const otel_http_options *options = request->options;
    const bool has_headers = options->get_header != NULL;
    struct oteli_forwarded said = {{0}, {0}, {0}};
    if (has_headers && options->trusts_proxy)
        said = forwarded(request);
    otel_slice path;
    otel_slice query;
    otel_slice own_scheme = {NULL, 0};
    otel_slice own_authority = {NULL, 0};
    cut_target(method, target, &path, &query, &own_scheme, &own_authority);
    otel_slice authority = first_of(said.host, own_authority, options->authority);
    if (authority.length == 0 && has_headers)
        authority = header(request, "host");
    otel_slice scheme = first_of(said.scheme, options->scheme, own_scheme);
    if (scheme.length == 0)
        scheme = otel_slice_of("http");

    next = add_text(next, OTEL_SEMCONV_URL_SCHEME, scheme);
    next = add_text(next, OTEL_SEMCONV_URL_PATH, path);
    if (query.length != 0)
        next = add_text(next, OTEL_SEMCONV_URL_QUERY,
                        oteli_url_redact(&request->text, query, (otel_slice){0}, query));
    next = add_server(next, scheme, authority);
    next = add_text(next, OTEL_SEMCONV_CLIENT_ADDRESS,
                    said.client.length != 0 ? said.client : options->peer_address);
    next = add_network(next, options);
    next = add_text(next, OTEL_SEMCONV_HTTP_ROUTE, options->route);
    return add_text(next, OTEL_SEMCONV_USER_AGENT_ORIGINAL,
                    has_headers ? lent_header(request, "user-agent") : options->user_agent);
}

static OTELI_NOINLINE otel_attribute *describe_client(struct request *request, otel_attribute *next,
                                                      otel_slice target)
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
    next = add_text(next, OTEL_SEMCONV_URL_FULL,
                    oteli_url_redact(&request->text, target, url.user, url.query));
    next = add_server(next, url.scheme, url.authority);
    next = add_network(next, options);
    return add_number(next, OTEL_SEMCONV_HTTP_REQUEST_RESEND_COUNT, options->resend_count);
}

/* --- start, route and end --- */

/* Where it comes from; in a function of its own, so that it is written once. */
static OTELI_NOINLINE otel_context parent_of(const otel_http_options *options, bool is_server)
{
    if (is_server && options->get_header != NULL) {
        const otel_carrier_reader reader = {options->get_header, options->list_headers,
                                            options->carrier};
        return otel_extract_from(options->parent, &reader);
    }
    return options->parent != NULL ? *options->parent : otel_current_context();
}

/* The context of the span, for the program and for whom it calls. */
static OTELI_NOINLINE void hand_on(const otel_context *parent, const otel_span *span,
                                   const otel_http_options *options)
{
    const otel_context context = otel_context_with_span(*parent, *span);
    if (options->context != NULL)
        *options->context = context;
    if (options->set_header != NULL)
        otel_inject(&context, options->set_header, options->carrier);
}

/* Beside the kind of a span: it does not become current. */
enum { IS_DETACHED = 0x100 };

static void start(otel_span *span, otel_tracer *tracer, unsigned how, otel_slice method,
                  otel_slice target, const otel_http_options *options)
{
    static const otel_http_options none = {.size = sizeof none};
    otel_http_options known;
    struct request request;
    request.options = options =
        options != NULL ? oteli_sized(options, options->size, &known, sizeof known) : &none;
    request.text.used = 0;
    const otel_span_kind kind = (otel_span_kind)(how & ~(unsigned)IS_DETACHED);
    const otel_context parent = parent_of(options, kind == OTEL_SPAN_KIND_SERVER);

    char whole_name[NAME_MOST];
    otel_slice name = method;
    otel_attribute *end = add_method(request.attributes, &name, options->known_methods);
    if (options->route.length != 0)
        name = put_name(whole_name, name, options->route);
    if (otel_tracer_enabled(tracer)) {
        if (kind == OTEL_SPAN_KIND_SERVER)
            end = describe_server(&request, end, method, target);
        else
            end = describe_client(&request, end, target);
    }
    const otel_span_options span_options = {.size = sizeof span_options,
                                            .kind = kind,
                                            .parent = &parent,
                                            .attributes = request.attributes,
                                            .attribute_count = (size_t)(end - request.attributes),
                                            .start_ns = options->start_ns};
    if ((how & IS_DETACHED) != 0)
        otel_span_start_p(span, tracer, name.data, name.length, &span_options);
    else
        otel_span_enter_p(span, tracer, name.data, name.length, &span_options);
    if (options->context != NULL || options->set_header != NULL)
        hand_on(&parent, span, options);
}

void otel_http_enter_p(otel_span *span, otel_tracer *tracer, otel_span_kind kind, otel_slice method,
                       otel_slice target, const otel_http_options *options)
{
    start(span, tracer, kind, method, target, options);
}

void otel_http_start_p(otel_span *span, otel_tracer *tracer, otel_span_kind kind, otel_slice method,
                       otel_slice target, const otel_http_options *options)
{
    start(span, tracer, kind | IS_DETACHED, method, target, options);
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

static OTELI_INLINE void set_status_code(otel_span_ref span, unsigned status)
{
    if (status != 0)
        otel_span_set_int_n(span, OTEL_SEMCONV_HTTP_RESPONSE_STATUS_CODE,
                            sizeof OTEL_SEMCONV_HTTP_RESPONSE_STATUS_CODE - 1, status);
}

/* End it with an error, whose type is the status if the program does not say another. A status of
 * the span that the program has set stays. */
static OTELI_NOINLINE void end_with_error(const otel_span *span, unsigned status, otel_slice error)
{
    const otel_span_ref ref = otel_span_ref_of(span);
    set_status_code(ref, status);
    char digits[12];
    char method[OTELI_METHOD_MOST];
    if (error.length == 0)
        error = otel_slice_n(digits, (size_t)snprintf(digits, sizeof digits, "%u", status));
    const unsigned said = peek(span, method).status;
    if (said != OTEL_SPAN_STATUS_OK)
        otel_span_set_string_n(ref, OTEL_SEMCONV_ERROR_TYPE, sizeof OTEL_SEMCONV_ERROR_TYPE - 1,
                               error.data, error.length);
    if (said == OTEL_SPAN_STATUS_UNSET)
        otel_span_set_status(*span, OTEL_SPAN_STATUS_ERROR, NULL);
    otel_span_end_n(ref, 0);
}

void otel_http_end_n(otel_span span, otel_span_kind kind, unsigned status, const char *error_type,
                     size_t length)
{
    const unsigned least =
        kind == OTEL_SPAN_KIND_CLIENT ? STATUS_CLIENT_ERROR : STATUS_SERVER_ERROR;
    if (OTELI_UNLIKELY(length != 0) || OTELI_UNLIKELY(status >= least) ||
        OTELI_UNLIKELY(status != 0 && status < STATUS_LEAST)) {
        end_with_error(&span, status, otel_slice_n(error_type, length));
        return;
    }
    const otel_span_ref ref = otel_span_ref_of(&span);
    set_status_code(ref, status);
    otel_span_end_n(ref, 0);
}

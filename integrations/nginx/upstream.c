/* SPDX-License-Identifier: Apache-2.0 */
/* integrations/nginx/upstream.c - a client's span for each call of an upstream.
 *
 * nginx has no phase right before the request to an upstream is made. So the content handler of a
 * location is ours (module.c): it starts the span, sets the headers, and calls the location's own.
 * r->upstream_states says what the call has become, when nginx calls finalize_request. */
#include "module.h"

#include <otel/semconv.h>

enum { URL_MOST = 2048, NS_IN_MS = 1000000 };

typedef ngx_http_upstream_state_t attempt;
static const ngx_msec_t unknown = (ngx_msec_t)-1;

static ngx_uint_t state_count(const ngx_http_request_t *r)
{
    return r->upstream_states != NULL ? r->upstream_states->nelts : 0;
}

/* The next attempt of the call at or behind *index, or NULL. There are states without a peer
 * between two calls, and some of the whole upstream where no server of it is live. */
static const attempt *next_attempt(const ngx_http_request_t *r, const ngx_http_upstream_t *u,
                                   ngx_uint_t *index)
{
    while (*index < state_count(r)) {
        const attempt *state = (const attempt *)r->upstream_states->elts + (*index)++;
        if (state->peer != NULL && (u->upstream == NULL || state->peer != &u->upstream->host))
            return state;
    }
    return NULL;
}

/* Why there is no answer; NULL: there is one, at least its status and headers. */
static const char *error_of(const attempt *state)
{
    if (state == NULL)
        return "no_upstream";
    if (state->header_time != unknown)
        return NULL;
    if (state->status == NGX_HTTP_GATEWAY_TIME_OUT)
        return "timeout";
    return state->connect_time == unknown ? "connect_error" : "response_error";
}

/* Cut "192.0.2.4:80", "[2001:db8::1]:80" or "unix:/path" into an address and a port, or 0. */
static ngx_str_t cut_peer(ngx_str_t peer, ngx_int_t *port)
{
    *port = 0;
    if (peer.len > 5 && ngx_strncmp(peer.data, "unix:", 5) == 0)
        return (ngx_str_t){peer.len - 5, peer.data + 5};
    size_t colon = peer.len;
    while (colon != 0 && peer.data[colon - 1] != ':')
        colon--;
    if (colon-- == 0)
        return peer;
    *port = ngx_atoi(peer.data + colon + 1, peer.len - colon - 1);
    const size_t bracket = peer.data[0] == '[';
    return (ngx_str_t){colon - 2 * bracket, peer.data + bracket};
}

static void add_retry(otel_span span, const attempt *state, uint64_t time_ns)
{
    ngx_int_t port;
    const ngx_str_t address = cut_peer(*state->peer, &port);
    const char *error = error_of(state);
    const otel_attribute attributes[] = {
        error != NULL ? otel_attribute_of(OTEL_SEMCONV_ERROR_TYPE, otel_value_string(error))
                      : otel_attribute_of(OTEL_SEMCONV_HTTP_RESPONSE_STATUS_CODE,
                                          otel_value_int((int64_t)state->status)),
        otel_attribute_of(OTEL_SEMCONV_NETWORK_PEER_ADDRESS,
                          otel_value_string_n((const char *)address.data, address.len)),
        otel_attribute_of(OTEL_SEMCONV_NETWORK_PEER_PORT, otel_value_int(port)),
    };
    otel_span_add_event_at(span, "upstream.retry", time_ns, attributes, port > 0 ? 3 : 2);
}

/* Make an event of each attempt but the last, which is returned, at its end. NULL: no attempt. */
static const attempt *add_attempts(const ngx_http_request_t *r, const ngx_http_upstream_t *u,
                                   const struct ngx_http_otel_call *call)
{
    const attempt *state;
    const attempt *last = NULL;
    uint64_t time_ns = otel_now_ns();
    for (ngx_uint_t i = call->first_state; (state = next_attempt(r, u, &i)) != NULL;)
        time_ns -= state->response_time != unknown ? state->response_time * NS_IN_MS : 0;
    int64_t count = 0;
    for (ngx_uint_t i = call->first_state; (state = next_attempt(r, u, &i)) != NULL; count++) {
        if (last != NULL)
            add_retry(call->span, last, time_ns);
        time_ns += state->response_time != unknown ? state->response_time * NS_IN_MS : 0;
        last = state;
    }
    if (count > 1)
        otel_span_set_int(call->span, OTEL_SEMCONV_HTTP_REQUEST_RESEND_COUNT, count - 1);
    return last;
}

/* The URL is without its query, which the server's span has, free of secrets. */
static void describe(otel_span span, const ngx_http_request_t *r, const ngx_http_upstream_t *u,
                     const attempt *last)
{
    u_char url[URL_MOST];
    const ngx_http_upstream_resolved_t *to = u->resolved;
    const ngx_http_upstream_srv_conf_t *conf = u->conf->upstream;
    if (to == NULL && conf == NULL)
        return;
    const ngx_str_t host = to != NULL ? to->host : conf->host;
    ngx_int_t port = to != NULL ? to->port : conf->port;
    ngx_str_t path = u->uri.len != 0 ? u->uri : r->uri;
    const u_char *query = ngx_strlchr(path.data, path.data + path.len, '?');
    if (query != NULL)
        path.len = (size_t)(query - path.data);
    u_char *end =
        ngx_snprintf(url, sizeof url, port != 0 ? "%V%V:%i" : "%V%V", &u->schema, &host, port);
    end = ngx_slprintf(end, url + sizeof url, "%V", &path);
    ngx_http_otel_set_text(span, OTEL_SEMCONV_URL_FULL, (ngx_str_t){(size_t)(end - url), url});
    ngx_http_otel_set_text(span, OTEL_SEMCONV_SERVER_ADDRESS, host);
    if (port != 0)
        otel_span_set_int(span, OTEL_SEMCONV_SERVER_PORT, port);
    if (last == NULL)
        return;
    ngx_http_otel_set_text(span, OTEL_SEMCONV_NETWORK_PEER_ADDRESS, cut_peer(*last->peer, &port));
    if (port > 0)
        otel_span_set_int(span, OTEL_SEMCONV_NETWORK_PEER_PORT, port);
}

static void end_call(const ngx_http_request_t *r, struct ngx_http_otel_call *call,
                     const ngx_http_upstream_t *u, ngx_int_t rc)
{
    call->is_open = false;
    const attempt *last = add_attempts(r, u, call);
    const char *error = error_of(last);
    const ngx_int_t status = error == NULL ? (ngx_int_t)last->status : 0;
    describe(call->span, r, u, last);
    if (rc == NGX_HTTP_CLIENT_CLOSED_REQUEST || r->connection->error)
        error = NULL; /* the client has gone */
    else if (status != 0 && rc != status && rc == NGX_HTTP_GATEWAY_TIME_OUT)
        error = "timeout"; /* in the middle of the answer, and so is the next */
    else if (status != 0 && rc != status && (rc == NGX_HTTP_BAD_GATEWAY || rc == NGX_ERROR))
        error = "response_error";
    otel_http_client_end(call->span, (unsigned)status, error);
}

/* finalize_request of the upstream, which has answered or failed. */
static void finalize(ngx_http_request_t *r, ngx_int_t rc)
{
    struct ngx_http_otel_request *request = ngx_http_otel_request_of(r, 0);
    if (request == NULL || request->call.upstream == NULL)
        return;
    ngx_http_upstream_t *u = request->call.upstream;
    request->call.upstream = NULL;
    u->finalize_request = request->call.finalize_request;
    end_call(r, &request->call, u, rc);
    u->finalize_request(r, rc);
}

void ngx_http_otel_call_leave(struct ngx_http_otel_request *request)
{
    const ngx_http_request_t *r = request->request;
    struct ngx_http_otel_call *call = &request->call;
    ngx_http_upstream_t *u = r->upstream != call->before ? r->upstream : NULL;
    if (call->upstream != NULL)
        call->upstream->finalize_request = call->finalize_request;
    call->upstream = NULL;
    if (call->is_open && u != NULL && state_count(r) > call->first_state)
        end_call(r, call, u, NGX_OK);
    else if (call->is_open)
        otel_span_cancel(call->span); /* from the cache, or no upstream has this content */
    call->is_open = false;
}

ngx_int_t ngx_http_otel_content_handler(ngx_http_request_t *r)
{
    const struct ngx_http_otel_loc_conf *conf = ngx_http_otel_conf_of(r);
    struct ngx_http_otel_request *request = ngx_http_otel_request_of(r, 0);
    if (request == NULL)
        return conf->handler(r);
    struct ngx_http_otel_call *call = &request->call;
    ngx_http_otel_call_leave(request);
    call->before = r->upstream;
    call->first_state = state_count(r);
    call->is_open = otel_span_is_recording(request->context.span);
    otel_http_options options = {.size = sizeof options, .parent = &request->context, .carrier = r};
    options.set_header = ngx_http_otel_own_headers(r) ? ngx_http_otel_set_header : NULL;
    if (call->is_open)
        otel_http_start_p(&call->span, ngx_http_otel_tracer, OTEL_SPAN_KIND_CLIENT,
                          ngx_http_otel_slice(r->method_name), otel_slice_n(NULL, 0), &options);
    else if (options.set_header != NULL)
        otel_inject(&request->context, options.set_header, r);
    const ngx_int_t rc = conf->handler(r);
    ngx_http_upstream_t *u = r->upstream;
    /* A redirect, for an error for example, may have begun and even ended another call by now. */
    if (!call->is_open || call->upstream != NULL)
        return rc;
    if (u == call->before || (u->cleanup == NULL && state_count(r) > call->first_state)) {
        ngx_http_otel_call_leave(request); /* no call of an upstream, or one that is over */
    } else {
        call->upstream = u;
        call->finalize_request = u->finalize_request;
        u->finalize_request = finalize;
    }
    return rc;
}

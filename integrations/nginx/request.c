/* SPDX-License-Identifier: Apache-2.0 */
/* integrations/nginx/request.c - a server's span for each request.
 *
 * It starts in the rewrite phase of the first location that is traced, or in the log phase, if the
 * request never comes to a location: malformed ones, and `return` of a server. It ends in the log
 * phase. A sub-request has no span, but the same context. nginx zeroes the contexts of modules when
 * it redirects a request: what is known of it is kept, and found again, as a clean-up of its pool,
 * which sub-requests share. */
#include "module.h"

#include <otel/semconv.h>
#include <sys/random.h>

/* The pool is about to be destroyed. */
static void forget(void *data)
{
    struct ngx_http_otel_request *request = data;
    ngx_http_otel_call_leave(request);
    otel_baggage_let_go(request->baggage);
}

static struct ngx_http_otel_request *find(ngx_http_request_t *r)
{
    struct ngx_http_otel_request *request = ngx_http_get_module_ctx(r, ngx_http_otel_module);
    if (request != NULL || !(r->internal || r->filter_finalize))
        return request;
    for (const ngx_pool_cleanup_t *cleanup = r->pool->cleanup; cleanup; cleanup = cleanup->next) {
        request = cleanup->data;
        if (cleanup->handler == forget && request->request == r) {
            ngx_http_set_ctx(r, request, ngx_http_otel_module);
            return request;
        }
    }
    return NULL;
}

/* A span that is none, but has ids: the next services do not sample this trace either. */
static otel_span unsampled_span(otel_span_context context)
{
    uint8_t ids[sizeof context.trace_id + sizeof context.span_id] = {0};
    (void)getrandom(ids, sizeof ids, GRND_NONBLOCK);
    if (!otel_span_context_is_valid(&context)) {
        context.flags = OTEL_TRACE_FLAG_RANDOM;
        ngx_memcpy(context.trace_id, ids, sizeof context.trace_id);
    }
    ngx_memcpy(context.span_id, ids + sizeof context.trace_id, sizeof context.span_id);
    context.flags &= (uint8_t)~OTEL_TRACE_FLAG_SAMPLED;
    context.is_remote = false;
    return otel_span_wrap(&context);
}

static void start_server(struct ngx_http_otel_request *request, uint64_t start_ns)
{
    ngx_http_request_t *r = request->request;
    const struct ngx_http_otel_loc_conf *conf = ngx_http_otel_conf_of(r);
    otel_context parent = {{{0, 0, 0, 0}}, NULL, 0};
    if (conf->trusts_context)
        parent = otel_extract(&parent, ngx_http_otel_get_header, r);
    request->parent = otel_span_get_context(parent.span);
    request->baggage = otel_baggage_keep(otel_context_baggage(&parent));
    if (conf->sample != NULL && ngx_http_test_predicates(r, conf->sample) != NGX_DECLINED) {
        request->context = otel_context_with_span(parent, unsampled_span(request->parent));
        return;
    }
    const ngx_http_core_loc_conf_t *clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    ngx_str_t route = clcf->name;
    if (conf->route != NULL && ngx_http_complex_value(r, conf->route, &route) != NGX_OK)
        route.len = 0;
    otel_http_options options = {.size = sizeof options, .parent = &parent};
    options.start_ns = start_ns;
    options.scheme = otel_slice_of(r->http_connection->ssl ? "https" : "http");
    options.route = ngx_http_otel_slice(route);
    options.protocol_version = ngx_http_otel_slice(r->http_protocol);
    options.peer_address = ngx_http_otel_slice(r->connection->addr_text);
    options.peer_port = ngx_inet_get_port(r->connection->sockaddr);
    if (r->headers_in.host != NULL)
        options.authority = ngx_http_otel_slice(r->headers_in.host->value);
    if (r->headers_in.user_agent != NULL)
        options.user_agent = ngx_http_otel_slice(r->headers_in.user_agent->value);
    options.context = &request->context;
    otel_span span;
    otel_http_start_p(&span, ngx_http_otel_tracer, OTEL_SPAN_KIND_SERVER,
                      ngx_http_otel_slice(r->method_name), ngx_http_otel_slice(r->unparsed_uri),
                      &options);
}

struct ngx_http_otel_request *ngx_http_otel_request_of(ngx_http_request_t *r, uint64_t start_ns)
{
    if (ngx_http_otel_tracer == NULL)
        return NULL;
    struct ngx_http_otel_request *request = find(r);
    if (request != NULL || !ngx_http_otel_conf_of(r)->trace)
        return request;
    const struct ngx_http_otel_request *main_request = r != r->main ? find(r->main) : NULL;
    if (r != r->main && main_request == NULL)
        return NULL;
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(r->pool, sizeof *request);
    if (cleanup == NULL)
        return NULL;
    request = memset(cleanup->data, 0, sizeof *request);
    request->request = r;
    cleanup->handler = forget;
    ngx_http_set_ctx(r, request, ngx_http_otel_module);
    if (main_request == NULL)
        start_server(request, start_ns);
    else
        request->context = main_request->context;
    return request;
}

ngx_int_t ngx_http_otel_rewrite_handler(ngx_http_request_t *r)
{
    (void)ngx_http_otel_request_of(r, 0);
    return NGX_DECLINED;
}

ngx_int_t ngx_http_otel_log_handler(ngx_http_request_t *r)
{
    /* If it is not known yet, it has started when its first bytes came. */
    const uint64_t start_ms = (uint64_t)r->start_sec * 1000 + r->start_msec;
    struct ngx_http_otel_request *request = ngx_http_otel_request_of(r, start_ms * 1000000);
    const ngx_uint_t status = r->err_status != 0 ? r->err_status : r->headers_out.status;
    if (r == r->main && request != NULL)
        otel_http_server_end(request->context.span, (unsigned)status, NULL);
    return NGX_OK;
}

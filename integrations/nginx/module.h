/* SPDX-License-Identifier: Apache-2.0 */
/* integrations/nginx/module.h - what the files of the module share.
 *
 * module.c: directives, start and end of the SDK in a worker. request.c: a span for each request.
 * upstream.c: a span for each call of an upstream. headers.c: the headers of a request as a carrier
 * of contexts. variables.c: $otel_trace_id and its like.
 *
 * Threads:  all of it runs on the one thread of a worker, or of the master.
 * Memory:   what belongs to a request is in its pool, the configuration in the cycle's.
 * Errors:   none reaches a client: what cannot be recorded is left out. */
#ifndef NGX_HTTP_OTEL_MODULE_H
#define NGX_HTTP_OTEL_MODULE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <otel/http.h>
#include <otel/otel.h>

struct ngx_http_otel_loc_conf {
    ngx_flag_t trace;
    ngx_flag_t trusts_context;       /* of clients */
    ngx_array_t *sample;             /* of values, one of which has to be true; or NULL */
    ngx_http_complex_value_t *route; /* NULL: the name of the location */
    ngx_http_handler_pt handler;     /* the location's own, which upstream.c's calls */
};

/* A call of an upstream. */
struct ngx_http_otel_call {
    otel_span span;
    bool is_open;
    ngx_http_upstream_t *before;   /* r->upstream before: another one is that of this call */
    ngx_http_upstream_t *upstream; /* whose finalize_request is upstream.c's, or NULL */
    void (*finalize_request)(ngx_http_request_t *r, ngx_int_t rc); /* its own */
    ngx_uint_t first_state;                                        /* in r->upstream_states */
};

/* A request or sub-request that is traced. */
struct ngx_http_otel_request {
    ngx_http_request_t *request;
    otel_context context;           /* of the span, which records nothing if it is not sampled */
    otel_span_context parent;       /* what the client has sent; all zero: nothing */
    otel_baggage baggage;           /* kept as long as the request */
    struct ngx_http_otel_call call; /* the newest */
};

extern ngx_module_t ngx_http_otel_module;
extern otel_tracer *ngx_http_otel_tracer; /* NULL: no SDK runs in this process */

/* request.c. What is known of r, whose span starts if it has not yet, at start_ns (0: now). NULL: r
 * is not traced. */
struct ngx_http_otel_request *ngx_http_otel_request_of(ngx_http_request_t *r, uint64_t start_ns);
ngx_int_t ngx_http_otel_rewrite_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_otel_log_handler(ngx_http_request_t *r);

/* upstream.c. The content handler of traced locations; and the end of a call that is still open. */
ngx_int_t ngx_http_otel_content_handler(ngx_http_request_t *r);
void ngx_http_otel_call_leave(struct ngx_http_otel_request *request);

/* headers.c. The carrier is an ngx_http_request_t. Before headers are set, own_headers gives it a
 * list of its own, without those that the propagators set. False: no memory. */
otel_get_header ngx_http_otel_get_header;
otel_set_header ngx_http_otel_set_header;
bool ngx_http_otel_own_headers(ngx_http_request_t *r);

ngx_int_t ngx_http_otel_add_variables(ngx_conf_t *cf); /* variables.c */

static inline struct ngx_http_otel_loc_conf *ngx_http_otel_conf_of(ngx_http_request_t *r)
{
    return ngx_http_get_module_loc_conf(r, ngx_http_otel_module);
}

static inline otel_slice ngx_http_otel_slice(ngx_str_t text)
{
    return otel_slice_n((const char *)text.data, text.len);
}

static inline void ngx_http_otel_set_text(otel_span span, const char *key, ngx_str_t text)
{
    otel_span_set_string_n(otel_span_ref_of(&span), key, strlen(key), (const char *)text.data,
                           text.len);
}

#endif

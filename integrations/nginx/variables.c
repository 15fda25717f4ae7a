/* SPDX-License-Identifier: Apache-2.0 */
/* integrations/nginx/variables.c - the ids of a request's span, for logs, headers and otel_sample.
 * In a sub-request they are those of the main request. */
#include "module.h"

enum variable { TRACE_ID, SPAN_ID, SAMPLED, PARENT_ID };

static ngx_int_t get(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t variable)
{
    const struct ngx_http_otel_request *request = ngx_http_otel_request_of(r->main, 0);
    otel_span_context context = {{0}, {0}, 0, false, {0}, 0};
    if (request != NULL)
        context =
            variable == PARENT_ID ? request->parent : otel_span_get_context(request->context.span);
    value->not_found = !otel_span_context_is_valid(&context);
    if (value->not_found)
        return NGX_OK;
    char *text = ngx_pnalloc(r->pool, 33);
    if (text == NULL)
        return NGX_ERROR;
    if (variable == TRACE_ID)
        otel_trace_id_hex(&context, text);
    else if (variable != SAMPLED)
        otel_span_id_hex(&context, text);
    else
        memcpy(text, context.flags & OTEL_TRACE_FLAG_SAMPLED ? "1" : "0", 2);
    value->data = (u_char *)text;
    value->len = (unsigned)strlen(text);
    value->valid = 1;
    return NGX_OK;
}

ngx_int_t ngx_http_otel_add_variables(ngx_conf_t *cf)
{
    static ngx_str_t names[] = {
        [TRACE_ID] = ngx_string("otel_trace_id"),
        [SPAN_ID] = ngx_string("otel_span_id"),
        [PARENT_ID] = ngx_string("otel_parent_id"),
        [SAMPLED] = ngx_string("otel_sampled"),
    };
    for (uintptr_t i = 0; i < sizeof names / sizeof *names; i++) {
        ngx_http_variable_t *variable =
            ngx_http_add_variable(cf, &names[i], NGX_HTTP_VAR_NOCACHEABLE);
        if (variable == NULL)
            return NGX_ERROR;
        variable->get_handler = get;
        variable->data = i;
    }
    return NGX_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* integrations/nginx/headers.c - the headers of a request, as a carrier of contexts.
 *
 * A sub-request starts with a copy of the list of its parent, which shares memory with it. So a
 * list is never changed in place: a request that sends a context gets one of its own. */
#include "module.h"

struct walk {
    const ngx_list_part_t *part;
    ngx_uint_t index;
};

static ngx_table_elt_t *next_header(struct walk *walk)
{
    while (walk->part != NULL && walk->index >= walk->part->nelts)
        *walk = (struct walk){walk->part->next, 0};
    return walk->part != NULL ? (ngx_table_elt_t *)walk->part->elts + walk->index++ : NULL;
}

/* The header of this name behind `walk`, or NULL. */
static ngx_table_elt_t *find_header(struct walk *walk, const char *name, size_t length)
{
    ngx_table_elt_t *header = next_header(walk);
    while (header != NULL && (header->key.len != length ||
                              ngx_strncasecmp(header->key.data, (u_char *)name, length) != 0))
        header = next_header(walk);
    return header;
}

const char *ngx_http_otel_get_header(void *carrier, const char *name, size_t index, size_t *length)
{
    const ngx_http_request_t *r = carrier;
    struct walk walk = {&r->headers_in.headers.part, 0};
    const size_t name_length = strlen(name);
    const ngx_table_elt_t *header = find_header(&walk, name, name_length);
    while (header != NULL && index-- != 0)
        header = find_header(&walk, name, name_length);
    if (header == NULL)
        return NULL;
    *length = header->value.len;
    return (const char *)header->value.data;
}

void ngx_http_otel_set_header(void *carrier, const char *name, const char *value, size_t length)
{
    ngx_http_request_t *r = carrier;
    const size_t name_length = strlen(name);
    u_char *text = ngx_pnalloc(r->pool, name_length + length);
    ngx_table_elt_t *header = text != NULL ? ngx_list_push(&r->headers_in.headers) : NULL;
    if (header == NULL)
        return;
    ngx_memzero(header, sizeof *header);
    header->key = (ngx_str_t){name_length, text};
    header->lowcase_key = text;
    header->value = (ngx_str_t){length, text + name_length};
    ngx_strlow(text, (u_char *)name, name_length);
    ngx_memcpy(header->value.data, value, length);
    header->hash = ngx_hash_key(header->lowcase_key, name_length);
}

bool ngx_http_otel_own_headers(ngx_http_request_t *r)
{
    const ngx_list_t shared = r->headers_in.headers;
    struct walk walk = {&shared.part, 0};
    ngx_table_elt_t *header;
    if (ngx_list_init(&r->headers_in.headers, r->pool, 20, sizeof *header) != NGX_OK)
        goto fail;
    while ((header = next_header(&walk)) != NULL) {
        const ngx_list_part_t one = {header, 1, NULL};
        const char *const *field = otel_propagator_fields(otel_propagator_get());
        while (*field && !find_header(&(struct walk){&one, 0}, *field, strlen(*field)))
            field++;
        if (*field != NULL)
            continue;
        ngx_table_elt_t *copy = ngx_list_push(&r->headers_in.headers);
        if (copy == NULL)
            goto fail;
        *copy = *header;
    }
    return true;

fail:
    r->headers_in.headers = shared;
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/service_shop.c - answers PUT /baskets/{basket}/lines/{line} as a shop does it:
 * parse, look the product up, take it from the stock and put it into the basket in one
 * transaction, list the basket, and render it as JSON with a checksum as its ETag.
 *
 * It is traced like a program that somebody wants to understand: a span for the request, one
 * for each stage, one for each statement to the database, each with two attributes.
 *
 *     PUT /baskets/{basket}/lines/{line}      server
 *     ├── parse request
 *     ├── put line
 *     │   ├── SELECT product                  client
 *     │   ├── UPDATE product                  client
 *     │   ├── UPDATE line                     client
 *     │   └── SELECT lines                    client
 *     └── render response
 *
 * This file is compiled twice. Without SERVICE_TRACED nothing of TRACED(...) is left, and
 * the function has the other name. */
#include "benchmarks/service_shop.h"

#include <otel/otel.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#ifdef SERVICE_TRACED
#define TRACED(...) __VA_ARGS__
#define SERVICE_HANDLE service_handle_traced
#else
#define TRACED(...)
#define SERVICE_HANDLE service_handle_bare
#endif

TRACED(static otel_tracer *tracer;)
TRACED(static const otel_span_options client = {.size = sizeof client,
                                                .kind = OTEL_SPAN_KIND_CLIENT};)

struct request {
    char path[64];
    int64_t basket;
    int64_t line;
    size_t body_length;
    char sku[SERVICE_SKU];
    int64_t quantity;
};

struct answer {
    int status;
    struct service_product product;
    unsigned line_count;
    struct service_line lines[SERVICE_LINES];
};

/* Copy what is before the end or the first of `ends`; false: it has no room. */
static bool take_word(char *word, size_t size, const char *text, const char *ends)
{
    const size_t length = strcspn(text, ends);
    if (length >= size)
        return false;
    memcpy(word, text, length);
    word[length] = '\0';
    return true;
}

/* The value of a header line, or NULL. */
static const char *find_header(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (const char *line = strstr(text, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, length) == 0 && line[length] == ':')
            return line + length + 1 + strspn(line + length + 1, " ");
    }
    return NULL;
}

static bool parse_body(const char *body, struct request *request)
{
    for (const char *field = body; *field != '\0'; field += *field == '&') {
        if (strncmp(field, "sku=", 4) == 0 &&
            !take_word(request->sku, sizeof request->sku, field + 4, "&"))
            return false;
        if (strncmp(field, "quantity=", 9) == 0)
            request->quantity = strtoll(field + 9, NULL, 10);
        field += strcspn(field, "&");
    }
    return request->sku[0] != '\0' && request->quantity > 0;
}

static bool parse_text(const char *text, struct request *request)
{
    static const char method[] = "PUT ";
    static const char baskets[] = "/baskets/";
    static const char lines[] = "/lines/";
    if (strncmp(text, method, sizeof method - 1) != 0 ||
        !take_word(request->path, sizeof request->path, text + sizeof method - 1, " \r"))
        return false;
    if (strncmp(request->path, baskets, sizeof baskets - 1) != 0)
        return false;
    char *end;
    request->basket = strtoll(request->path + sizeof baskets - 1, &end, 10);
    if (strncmp(end, lines, sizeof lines - 1) != 0)
        return false;
    request->line = strtoll(end + sizeof lines - 1, &end, 10);
    const char *length = find_header(text, "Content-Length");
    const char *body = strstr(text, "\r\n\r\n");
    if (*end != '\0' || length == NULL || body == NULL)
        return false;
    request->body_length = strtoul(length, NULL, 10);
    return request->body_length == strlen(body + 4) && parse_body(body + 4, request);
}

static bool parse(const char *text, struct request *request)
{
    TRACED(const otel_span span = otel_span_enter(tracer, "parse request", NULL));
    const bool is_good = parse_text(text, request);
    TRACED(otel_span_set_int(span, "http.request.body.size", (int64_t)request->body_length));
    TRACED(otel_span_set_string(span, "shop.sku", request->sku));
    TRACED(otel_span_end(span));
    return is_good;
}

static bool find_product(struct service_store *store, const char *sku,
                         struct service_product *product)
{
    TRACED(const otel_span span = otel_span_enter(tracer, "SELECT product", &client));
    const bool is_there = service_store_find(store, sku, product);
    TRACED(otel_span_set_string(span, "db.collection.name", "product"));
    TRACED(otel_span_set_int(span, "db.response.returned_rows", is_there));
    TRACED(otel_span_end(span));
    return is_there;
}

static bool take_product(struct service_store *store, int64_t product, int64_t quantity)
{
    TRACED(const otel_span span = otel_span_enter(tracer, "UPDATE product", &client));
    const int changed = service_store_take(store, product, quantity);
    TRACED(otel_span_set_string(span, "db.collection.name", "product"));
    TRACED(otel_span_set_int(span, "shop.rows.changed", changed));
    TRACED(otel_span_end(span));
    return changed == 1;
}

static bool put_line(struct service_store *store, const struct request *request, int64_t product)
{
    TRACED(const otel_span span = otel_span_enter(tracer, "UPDATE line", &client));
    const int changed =
        service_store_put_line(store, request->basket, request->line, product, request->quantity);
    TRACED(otel_span_set_string(span, "db.collection.name", "line"));
    TRACED(otel_span_set_int(span, "shop.rows.changed", changed));
    TRACED(otel_span_end(span));
    return changed == 1;
}

static unsigned list_lines(struct service_store *store, int64_t basket,
                           struct service_line lines[SERVICE_LINES])
{
    TRACED(const otel_span span = otel_span_enter(tracer, "SELECT lines", &client));
    const unsigned count = service_store_lines(store, basket, lines);
    TRACED(otel_span_set_string(span, "db.collection.name", "line"));
    TRACED(otel_span_set_int(span, "db.response.returned_rows", count));
    TRACED(otel_span_end(span));
    return count;
}

static int work(struct service_store *store, const struct request *request, struct answer *answer)
{
    int status = 404;
    TRACED(const otel_span span = otel_span_enter(tracer, "put line", NULL));
    TRACED(otel_span_set_int(span, "shop.basket.id", request->basket));
    TRACED(otel_span_set_int(span, "shop.line.quantity", request->quantity));
    service_store_begin(store);
    if (find_product(store, request->sku, &answer->product) &&
        take_product(store, answer->product.id, request->quantity) &&
        put_line(store, request, answer->product.id)) {
        answer->line_count = list_lines(store, request->basket, answer->lines);
        status = 200;
    }
    service_store_commit(store);
    TRACED(otel_span_end(span));
    return status;
}

static const char *reason(int status)
{
    return status == 200 ? "OK" : status == 404 ? "Not Found" : "Bad Request";
}

/* Append; a body that is full stays as it is. */
__attribute__((format(printf, 3, 4))) static void print(char body[SERVICE_BODY_BYTES],
                                                        size_t *length, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int more = vsnprintf(body + *length, SERVICE_BODY_BYTES - *length, format, arguments);
    va_end(arguments);
    if ((size_t)more < SERVICE_BODY_BYTES - *length)
        *length += (size_t)more;
}

static size_t render_body(const struct request *request, const struct answer *answer,
                          char body[SERVICE_BODY_BYTES])
{
    size_t length = 0;
    int64_t cents = 0;
    const struct service_product *product = &answer->product;
    print(body, &length, "{\"basket\":%lld,\"put\":{\"name\":\"%s\",\"left\":%lld},\"lines\":[",
          (long long)request->basket, product->name,
          (long long)(product->stock - request->quantity));
    for (unsigned i = 0; i < answer->line_count; i++) {
        const struct service_line *line = &answer->lines[i];
        print(body, &length,
              "%s{\"line\":%lld,\"sku\":\"%s\",\"name\":\"%s\",\"quantity\":%lld,\"cents\":%lld}",
              i == 0 ? "" : ",", (long long)line->line, line->sku, line->name,
              (long long)line->quantity, (long long)line->cents);
        cents += line->quantity * line->cents;
    }
    print(body, &length, "],\"cents\":%lld}", (long long)cents);
    return length;
}

static size_t render(const struct request *request, const struct answer *answer,
                     char response[SERVICE_RESPONSE_BYTES])
{
    char body[SERVICE_BODY_BYTES];
    char etag[16];
    TRACED(const otel_span span = otel_span_enter(tracer, "render response", NULL));
    const size_t body_length = render_body(request, answer, body);
    snprintf(etag, sizeof etag, "\"%08lx\"",
             crc32(0, (const unsigned char *)body, (unsigned)body_length));
    const int length = snprintf(response, SERVICE_RESPONSE_BYTES,
                                "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n"
                                "ETag: %s\r\nContent-Length: %zu\r\n\r\n%s",
                                answer->status, reason(answer->status), etag, body_length, body);
    TRACED(otel_span_set_int(span, "http.response.body.size", (int64_t)body_length));
    TRACED(otel_span_set_string(span, "http.response.header.etag", etag));
    TRACED(otel_span_end(span));
    return (size_t)length;
}

size_t SERVICE_HANDLE(struct service_store *store, const char *text,
                      char response[SERVICE_RESPONSE_BYTES])
{
    struct request request = {.quantity = 0};
    struct answer answer = {.status = 400};
    TRACED(if (tracer == NULL) tracer = otel_tracer_get("shop", "1.0"));
    TRACED(const otel_span span =
               otel_span_enter(tracer, "PUT /baskets/{basket}/lines/{line}",
                               OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_SERVER)));
    if (parse(text, &request))
        answer.status = work(store, &request, &answer);
    const size_t length = render(&request, &answer, response);
    TRACED(otel_span_set_string(span, "url.path", request.path));
    TRACED(otel_span_set_int(span, "http.response.status_code", answer.status));
    TRACED(otel_span_end(span));
    return length;
}

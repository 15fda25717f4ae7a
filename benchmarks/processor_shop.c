/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/processor_shop.c - the shop, and its spans. The rivals' are as in the study, without
 * attributes; otel-c's have two each, as a program would write them. */
#include "benchmarks/processor_shop.h"
#include "benchmarks/service_shop.h"

#include <otel/otel.h>
#include <stdio.h>
#include <string.h>

enum { REQUEST_BYTES = 320 };

static struct service_store *stores[PROCESSOR_MOST_THREADS];
static unsigned store_count;
static bool (*end_of_rival)(struct processor_thread *thread);
static otel_tracer *tracer;

void processor_shops_open(unsigned count)
{
    tracer = otel_tracer_get("shop", "1.0");
    for (store_count = 0; store_count < count; store_count++)
        stores[store_count] = service_store_open();
}

void processor_shops_close(void)
{
    while (store_count > 0)
        service_store_close(stores[--store_count]);
}

void processor_shop_use(const struct processor_design *rival)
{
    end_of_rival = rival->end;
}

static void write_request(char request[REQUEST_BYTES], uint64_t number)
{
    const uint64_t spread = (number + 1) * UINT64_C(0x9E3779B97F4A7C15);
    char sku[SERVICE_SKU];
    char body[64];
    service_store_sku(sku, (unsigned)(spread >> 16) % SERVICE_PRODUCTS);
    const int length =
        snprintf(body, sizeof body, "sku=%s&quantity=%u", sku, 1 + (unsigned)(spread >> 20) % 5);
    snprintf(request, REQUEST_BYTES,
             "PUT /baskets/%u/lines/%u HTTP/1.1\r\nHost: shop.example.com\r\n"
             "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
             (unsigned)(spread >> 40) % SERVICE_BASKETS, (unsigned)(spread >> 52) % SERVICE_LINES,
             length, body);
}

/* --- spans --- */

struct open_span {
    otel_span otel;
    struct processor_span rival;
};

static void enter_otel(struct processor_thread *thread, struct open_span *span,
                       const struct open_span *parent, const char *name)
{
    (void)thread;
    (void)parent;
    span->otel = otel_span_enter(tracer, name, NULL);
}

static void end_otel(struct processor_thread *thread, struct open_span *span, size_t bytes)
{
    (void)thread;
    otel_span_set_string(span->otel, "http.request.method", "PUT");
    otel_span_set_int(span->otel, "http.response.body.size", (int64_t)bytes);
    otel_span_end(span->otel);
}

static void enter_rival(struct processor_thread *thread, struct open_span *span,
                        const struct open_span *parent, const char *name)
{
    processor_begin(thread);
    span->rival = thread->span;
    span->rival.name_length = (uint32_t)strlen(name);
    if (parent != NULL) {
        memcpy(span->rival.trace_id, parent->rival.trace_id, sizeof span->rival.trace_id);
        span->rival.parent_id = parent->rival.span_id;
    }
}

static void end_rival(struct processor_thread *thread, struct open_span *span, size_t bytes)
{
    (void)bytes;
    thread->span = span->rival;
    if (!end_of_rival(thread))
        oteli_count(&thread->dropped, 1);
}

/* --- pages --- */

static OTELI_INLINE void serve(struct processor_thread *thread, unsigned pages,
                               void (*enter)(struct processor_thread *, struct open_span *,
                                             const struct open_span *, const char *),
                               void (*end)(struct processor_thread *, struct open_span *, size_t))
{
    char text[REQUEST_BYTES];
    char response[SERVICE_RESPONSE_BYTES];
    for (unsigned i = 0; i < pages; i++) {
        const uint64_t start = processor_ticks();
        struct open_span page;
        size_t bytes = 0;
        enter(thread, &page, NULL, "PUT /baskets/{basket}");
        for (unsigned j = 0; j < PROCESSOR_SHOP_REQUESTS; j++) {
            struct open_span request;
            write_request(text, thread->worked++);
            enter(thread, &request, &page, "PUT line");
            const size_t length = service_handle_bare(stores[thread->index], text, response);
            end(thread, &request, length);
            bytes += length;
        }
        end(thread, &page, bytes);
        if (thread->is_measured)
            processor_histogram_add(&thread->histogram, processor_ticks() - start);
        oteli_count(&thread->offered, PROCESSOR_SHOP_SPANS);
    }
}

void processor_shop_serve_otel(struct processor_thread *thread, unsigned pages)
{
    serve(thread, pages, enter_otel, end_otel);
}

void processor_shop_serve_rival(struct processor_thread *thread, unsigned pages)
{
    serve(thread, pages, enter_rival, end_rival);
}

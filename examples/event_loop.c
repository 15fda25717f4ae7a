/* SPDX-License-Identifier: Apache-2.0 */
/* examples/event_loop.c - thousands of requests at a time on one thread.
 *
 *     cc event_loop.c -o event_loop $(pkg-config --cflags --libs otel-sdk)
 *     ./event_loop
 *
 * In an event loop there is no "current" request: between two steps of one request run
 * steps of all the others. So a request carries its context itself. Its spans are started,
 * not entered, each names its parent, and the thread's current span stays empty.
 *
 * At the end the program looks through its own spans, which a memory exporter has kept,
 * and says whether each has the right parent; it exits with 1 if not. */
#include <inttypes.h>
#include <otel/memory.h>
#include <otel/otel.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    REQUESTS = 3000,
    SPANS_EACH = 3,  /* request, query, render */
    ARRIVAL_US = 50, /* one request after another */
    LONGEST_STEP_US = 60000
};

/* A request on its way through the loop: what it waits for, and its trace. */
struct request {
    int64_t id;
    void (*next)(struct request *request); /* the step to take when its time has come */
    uint64_t due_us;
    otel_span span;       /* the whole request */
    otel_span child;      /* what it does just now */
    otel_context context; /* with `span` in it: the parent of everything in this request */
};

static struct request requests[REQUESTS];
static otel_tracer *tracer;
static uint64_t random_state = 1;
static int in_flight, most_in_flight;
static int with_current_span; /* steps that found a current span: there must be none */

/* ---- the loop: a heap of timers and poll ---------------------------------------------- */

static struct request *heap[REQUESTS];
static size_t heap_size;

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void swap(size_t i, size_t k)
{
    struct request *request = heap[i];
    heap[i] = heap[k];
    heap[k] = request;
}

static void wait_for(struct request *request, uint64_t due_us,
                     void (*next)(struct request *request))
{
    request->due_us = due_us;
    request->next = next;
    size_t i = heap_size++;
    heap[i] = request;
    for (; i != 0 && heap[i]->due_us < heap[(i - 1) / 2]->due_us; i = (i - 1) / 2)
        swap(i, (i - 1) / 2);
}

static struct request *take_first(void)
{
    struct request *first = heap[0];
    heap[0] = heap[--heap_size];
    for (size_t i = 0;;) {
        size_t least = 2 * i + 1;
        if (least >= heap_size)
            return first;
        if (least + 1 < heap_size && heap[least + 1]->due_us < heap[least]->due_us)
            least++;
        if (heap[i]->due_us <= heap[least]->due_us)
            return first;
        swap(i, least);
        i = least;
    }
}

static void run_loop(void)
{
    while (heap_size != 0) {
        const uint64_t now = now_us();
        if (heap[0]->due_us > now) {
            poll(NULL, 0, (int)((heap[0]->due_us - now) / 1000) + 1); /* sockets would go here */
            continue;
        }
        struct request *request = take_first();
        const otel_span_context current = otel_span_get_context(otel_current_span());
        with_current_span += otel_span_context_is_valid(&current);
        request->next(request);
    }
}

/* ---- a request, step by step ------------------------------------------------------------ */

static uint64_t some_time_later(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return now_us() + (random_state >> 33) % LONGEST_STEP_US;
}

static void finish(struct request *request)
{
    otel_span_end(request->child);
    otel_span_end(request->span);
    in_flight--;
}

static void render(struct request *request)
{
    otel_span_end(request->child);
    request->child =
        otel_span_start(tracer, "render", OTEL_SPAN_OPTIONS(.parent = &request->context));
    otel_span_set_int(request->child, "request.id", request->id);
    wait_for(request, some_time_later(), finish);
}

static void query(struct request *request)
{
    request->child = otel_span_start(
        tracer, "query",
        OTEL_SPAN_OPTIONS(.parent = &request->context, .kind = OTEL_SPAN_KIND_CLIENT));
    otel_span_set_int(request->child, "request.id", request->id);
    wait_for(request, some_time_later(), render);
}

static void accept_one(struct request *request)
{
    request->span = otel_span_start(tracer, "request",
                                    OTEL_SPAN_OPTIONS(.root = true, .kind = OTEL_SPAN_KIND_SERVER));
    request->context = otel_context_with_span((otel_context){0}, request->span);
    otel_span_set_int(request->span, "request.id", request->id);
    if (++in_flight > most_in_flight)
        most_in_flight = in_flight;
    wait_for(request, some_time_later(), query);
}

/* ---- are the traces right? ---------------------------------------------------------------- */

static const struct request *request_of(const otel_span_view *span)
{
    otel_attribute_view attribute;
    otel_slice rest = span->attributes;
    while (otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute))
        if (attribute.key.length == strlen("request.id") &&
            memcmp(attribute.key.data, "request.id", attribute.key.length) == 0 &&
            attribute.value.integer >= 0 && attribute.value.integer < REQUESTS)
            return &requests[attribute.value.integer];
    return NULL;
}

static bool is_named(const otel_span_view *span, const char *name)
{
    return span->name.length == strlen(name) &&
           memcmp(span->name.data, name, span->name.length) == 0;
}

static bool is_right(const otel_span_view *span)
{
    const struct request *request = request_of(span);
    if (request == NULL)
        return false;
    const otel_span_context root = otel_span_get_context(request->span);
    if (memcmp(span->trace_id, root.trace_id, sizeof root.trace_id) != 0)
        return false;
    if (is_named(span, "request"))
        return span->parent_span_id == NULL;
    return span->parent_span_id != NULL &&
           memcmp(span->parent_span_id, root.span_id, sizeof root.span_id) == 0;
}

int main(void)
{
    otel_memory *memory = otel_memory_new();
    if (memory == NULL)
        return 1;
    const otel_exporter exporter = otel_memory_exporter(memory);
    const otel_status status = otel_start_with(
        OTEL_SDK_OPTIONS(.service_name = "event-loop", .exporters = &exporter, .exporter_count = 1,
                         .bsp_max_queue_size = REQUESTS * SPANS_EACH));
    if (status != OTEL_OK) {
        fprintf(stderr, "cannot start: %s\n", otel_status_string(status));
        return 1;
    }
    tracer = otel_tracer_get("example.event_loop", "1.0");

    const uint64_t start = now_us();
    for (int64_t id = 0; id < REQUESTS; id++) {
        requests[id].id = id;
        wait_for(&requests[id], start + (uint64_t)id * ARRIVAL_US, accept_one);
    }
    run_loop();

    const otel_status end = otel_shutdown(5000);
    const size_t count = otel_memory_count(memory);
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        otel_span_view span;
        wrong += !otel_memory_span(memory, i, &span) || !is_right(&span);
    }
    printf("%d requests, up to %d at a time on one thread: %zu spans, %zu of them with a wrong "
           "parent, %d steps with a current span\n",
           REQUESTS, most_in_flight, count, wrong, with_current_span);
    otel_memory_free(memory);
    return end != OTEL_OK || count != REQUESTS * SPANS_EACH || wrong != 0 || with_current_span != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* examples/event_loop.c - thousands of requests at a time on one thread, with epoll.
 *
 *     cc event_loop.c -o event_loop $(pkg-config --cflags --libs otel)
 *     ./event_loop [REQUESTS]
 *
 * In an event loop there is no "current" request: between two steps of one request run
 * steps of all the others. So each request carries its context itself, and the thread's
 * current span is empty whenever the loop waits:
 *
 *     GET /orders         started, not entered: it is open while other requests have their turn
 *       read order        likewise; the parent is named, because nothing is current
 *       price order       entered: it begins and ends within one step, with the request's
 *         look up tax     context attached, so functions further down find their parent
 *       write invoice     again started
 *
 * The two awaited operations would be sockets; here each is a timer of its own. */
#include <otel/otel.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { EVENTS = 64, LONGEST_WAIT_US = 50000 };

/* A request on its way: what it waits for, what comes then, and its trace. */
struct request {
    int64_t id;
    int fd; /* what the loop waits for */
    void (*next)(struct request *request);
    otel_context context; /* with `span` in it: the parent of everything in this request */
    otel_span span;       /* the whole request */
    otel_span operation;  /* the one that is awaited just now */
};

static otel_tracer *tracer;
static int epoll_fd;
static size_t in_flight;

/* ---- awaiting ------------------------------------------------------------------------------ */

/* As if it came over a network: up to 50 ms. */
static long some_time_ns(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return 1000L * (1 + (long)((state >> 33) % LONGEST_WAIT_US));
}

/* Begin an operation that takes some time, and go on with `next` when it is done. */
static void await(struct request *request, const char *operation,
                  void (*next)(struct request *request))
{
    request->operation = otel_span_start(
        tracer, operation,
        OTEL_SPAN_OPTIONS(.parent = &request->context, .kind = OTEL_SPAN_KIND_CLIENT));
    otel_span_set_int(request->operation, "request.id", request->id);
    request->next = next;
    const struct itimerspec delay = {.it_value.tv_nsec = some_time_ns()};
    timerfd_settime(request->fd, 0, &delay, NULL);
}

/* What was awaited is there. */
static void resume(struct request *request)
{
    uint64_t expirations;
    if (read(request->fd, &expirations, sizeof expirations) != sizeof expirations)
        return; /* a false alarm: it comes again */
    otel_span_end(request->operation);
    request->next(request);
}

/* ---- work that knows nothing of requests or loops -------------------------------------------- */

static double look_up_tax(int64_t item)
{
    OTEL_SCOPED(span, tracer, "look up tax");
    otel_span_set_int(span, "item", item);
    return item % 3 == 0 ? 0.07 : 0.19;
}

static double price_order(int64_t item)
{
    OTEL_SCOPED(span, tracer, "price order");
    const double price = (double)item * (1 + look_up_tax(item));
    otel_span_set_double(span, "price", price);
    return price;
}

/* ---- a request, step by step
 * ------------------------------------------------------------------ */

static void finish(struct request *request)
{
    otel_span_set_int(request->span, "http.response.status_code", 200);
    otel_span_end(request->span);
    otel_baggage_let_go(otel_context_baggage(&request->context));
    close(request->fd);
    in_flight--;
}

static void price(struct request *request)
{
    /* For this step, and only for it, the thread is about this request. */
    const otel_context_token token = otel_context_attach(request->context);
    const double amount = price_order(request->id);
    otel_context_detach(token);

    otel_span_set_double(request->span, "order.amount", amount);
    await(request, "write invoice", finish);
}

static bool accept_one(struct request *request, int64_t id)
{
    request->id = id;
    request->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = request};
    if (request->fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, request->fd, &event) != 0)
        return false;
    in_flight++;

    /* With a real client, this is what otel_extract finds in its headers. The request's context has
     * the client's baggage too, which is kept until the request is done. */
    const otel_context client = {0};
    request->span = otel_span_start(
        tracer, "GET /orders", OTEL_SPAN_OPTIONS(.parent = &client, .kind = OTEL_SPAN_KIND_SERVER));
    otel_span_set_int(request->span, "request.id", id);
    request->context = otel_context_with_span(client, request->span);
    otel_baggage_keep(otel_context_baggage(&client));
    await(request, "read order", price);
    return true;
}

/* ---- the loop
 * ------------------------------------------------------------------------------------ */

static bool run_loop(void)
{
    struct epoll_event events[EVENTS];
    while (in_flight != 0) {
        const int count = epoll_wait(epoll_fd, events, EVENTS, -1);
        if (count < 0 && errno != EINTR)
            return false;
        for (int i = 0; i < count; i++)
            resume(events[i].data.ptr);
    }
    return true;
}

/* Every request has a descriptor: allow as many as the system does. */
static void allow_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    const int64_t count = argc > 1 ? strtol(argv[1], NULL, 10) : 2000;
    struct request *requests = count > 0 ? calloc((size_t)count, sizeof *requests) : NULL;
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (requests == NULL || epoll_fd < 0) {
        fprintf(stderr, "usage: event_loop [REQUESTS]\n");
        free(requests);
        return 1;
    }
    allow_descriptors();

    const otel_status status =
        otel_start(OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.service_name = "event-loop")));
    if (status != OTEL_OK)
        fprintf(stderr, "telemetry is off: %s\n", otel_status_string(status));
    tracer = otel_tracer_get("example.event_loop", "1.0");

    bool is_good = true;
    for (int64_t id = 0; id < count && is_good; id++)
        is_good = accept_one(&requests[id], id);
    const size_t at_a_time = in_flight;
    is_good = is_good && run_loop();
    if (!is_good)
        perror("event_loop");
    printf("%zu requests at a time on one thread\n", at_a_time);

    const bool is_delivered = otel_shutdown(5000) == OTEL_OK;
    close(epoll_fd);
    free(requests);
    return is_good && is_delivered ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/otel-view.c - receive OTLP on loopback and show the traces, for people or as JSON,
 * or only count.
 *
 *     otel-view                                  in one terminal
 *     OTEL_TRACES_EXPORTER=otlp ./my-program     in another
 *
 * One thread waits for requests, signals and the moment when a trace is complete. Drawings,
 * JSON and counts go to stdout; what otel-view says of itself goes to stderr. */
#include "common/clock/time_units.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "proto/json.h"
#include "tools/view/view_check.h"
#include "tools/view/view_discard.h"
#include "tools/view/view_grpc.h"
#include "tools/view/view_http.h"
#include "tools/view/view_options.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

enum {
    TICK_MS = 100,     /* how often traces are looked at while some wait */
    FAREWELL_MS = 2000 /* how long the last answers may take before the end */
};

struct view {
    struct view_options options;
    struct view_spans spans;
    struct view_discard discard;
    struct view_http http;
    struct view_grpc grpc;
    uint64_t last_ns; /* monotonic: the last request, or the start */
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return oteli_timespec_ns(now);
}

/* ---- requests ------------------------------------------------------------------------- */

struct stream_buffer {
    ProtobufCBuffer base;
    FILE *stream;
    bool failed;
};

static void append_to_stream(ProtobufCBuffer *base, size_t length, const uint8_t *data)
{
    struct stream_buffer *buffer = (struct stream_buffer *)base;
    buffer->failed |= fwrite(data, 1, length, buffer->stream) != length;
}

/* TracesData and ExportTraceServiceRequest are the same message under two names. */
static void print_json(struct view *view, const ProtobufCMessage *request)
{
    struct stream_buffer buffer = {.base.append = append_to_stream, .stream = view->spans.out};
    if (!oteli_json_print(request, &buffer.base))
        buffer.failed = true;
    buffer.failed |= fputc('\n', buffer.stream) == EOF;
    buffer.failed |= fflush(buffer.stream) != 0;
    view->spans.failed |= buffer.failed;
}

static unsigned refuse(unsigned status, const char *why)
{
    fprintf(stderr, "otel-view: refused a request: %s\n", why);
    return status;
}

static unsigned discard_request(void *state, const uint8_t *body, size_t length, char *why,
                                size_t why_size)
{
    struct view *view = state;
    view->last_ns = now_ns();
    if (!view_discard_count(&view->discard, body, length, view->last_ns)) {
        snprintf(why, why_size, "the body is no ExportTraceServiceRequest");
        return refuse(400, why);
    }
    view->spans.received = view->discard.all.spans;
    return 0;
}

static unsigned take_request(void *state, const uint8_t *body, size_t length, char *why,
                             size_t why_size)
{
    struct view *view = state;
    const ProtobufCMessageDescriptor *type =
        &opentelemetry__proto__collector__trace__v1__export_trace_service_request__descriptor;
    view->last_ns = now_ns();
    if (!view_check(type, body, length, why, why_size))
        return refuse(400, why);
    ProtobufCMessage *request =
        view->options.json ? protobuf_c_message_unpack(type, NULL, length, body) : NULL;
    if (view->options.json && request == NULL) {
        snprintf(why, why_size, "the body is no ExportTraceServiceRequest");
        return refuse(400, why);
    }
    const otel_slice bytes = {(const char *)body, length};
    const bool added = view_spans_add(&view->spans, bytes, view->last_ns);
    if (added && view->options.json)
        print_json(view, request);
    protobuf_c_message_free_unpacked(request, NULL);
    if (added)
        return 0;
    snprintf(why, why_size, "no memory");
    return refuse(503, why);
}

/* ---- the loop ------------------------------------------------------------------------- */

/* The signals that end us, as something to poll. */
static int open_signals(void)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigset_t blocked = ends;
    sigaddset(&blocked, SIGPIPE); /* a closed stdout is an error of write then */
    if (sigprocmask(SIG_BLOCK, &blocked, NULL) != 0)
        return -1;
    return signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool is_enough(const struct view *view)
{
    if (view->spans.failed)
        return true;
    if (view->options.count != 0 && view->spans.received >= view->options.count)
        return true;
    return view->options.idle_exit_ms != 0 &&
           (now_ns() - view->last_ns) / OTELI_NS_PER_MS >= view->options.idle_exit_ms;
}

/* Wait for something to do and do it. False: a signal ends us. */
static bool step(struct view *view, int signals, int limit_ms)
{
    struct pollfd fds[3] = {{.fd = signals, .events = POLLIN},
                            {.fd = view_http_fd(&view->http), .events = POLLIN},
                            {.fd = view->grpc.epoll, .events = POLLIN}};
    const int ready = poll(fds, 3, view_http_timeout_ms(&view->http, limit_ms));
    if (ready < 0 && errno != EINTR)
        return false;
    if (ready > 0 && fds[0].revents != 0)
        return false;
    view_http_run(&view->http);
    view_grpc_run(&view->grpc);
    view_spans_draw_ready(&view->spans, now_ns());
    if (!view_discard_print(&view->discard, stdout, now_ns(), false))
        view->spans.failed = true;
    return true;
}

static void serve(struct view *view, int signals)
{
    while (!is_enough(view)) {
        const bool waiting = view->spans.waiting.count != 0 || view->options.idle_exit_ms != 0 ||
                             view->discard.line.requests != 0;
        if (!step(view, signals, waiting ? TICK_MS : 60000))
            return;
    }
    /* The sender of the last spans still waits for its answer. */
    const uint64_t until_ns = now_ns() + FAREWELL_MS * OTELI_NS_PER_MS;
    while (view->http.in_flight + view->grpc.in_flight != 0 && now_ns() < until_ns &&
           step(view, signals, TICK_MS))
        continue;
}

/* ---- from start to end ---------------------------------------------------------------- */

static bool cannot_listen(uint16_t port)
{
    fprintf(stderr, "otel-view: cannot listen on 127.0.0.1:%u: %s\n", (unsigned)port,
            strerror(errno));
    return false;
}

/* Listen, and say where. */
static bool start(struct view *view)
{
    const struct view_taker taker = {view->options.discard ? discard_request : take_request, view};
    if (!view_http_start(&view->http, view->options.port, taker))
        return cannot_listen(view->options.port);
    if (!view_grpc_start(&view->grpc, view->options.grpc_port, taker)) {
        (void)cannot_listen(view->options.grpc_port);
        view_http_stop(&view->http);
        return false;
    }
    if (view->options.needs_grpc && view->grpc.port == 0) {
        fprintf(stderr,
                "otel-view: this otel-view was built without libnghttp2, so without gRPC\n");
        view_http_stop(&view->http);
        return false;
    }
    fprintf(stderr, "otel-view: listening on http://127.0.0.1:%u", (unsigned)view->http.port);
    if (view->grpc.port != 0)
        fprintf(stderr, ", for gRPC on http://127.0.0.1:%u", (unsigned)view->grpc.port);
    fprintf(stderr, "\n");
    return true;
}

/* Show what has not been shown, and say how much has come. */
static void conclude(struct view *view)
{
    const struct view_spans *spans = &view->spans;
    view_spans_draw_all(&view->spans);
    if (!view_discard_print(&view->discard, stdout, now_ns(), true))
        view->spans.failed = true;
    fprintf(stderr, "received %" PRIu64 " spans", spans->received);
    if (view->options.discard)
        fprintf(stderr, " in %" PRIu64 " requests of %" PRIu64 " bytes", view->discard.all.requests,
                view->discard.all.bytes);
    if (spans->twice != 0)
        fprintf(stderr, " (%" PRIu64 " twice)", spans->twice);
    if (view_filter_is_set(&view->options.filter))
        fprintf(stderr, ", showed %" PRIu64 " of %" PRIu64 " %s", spans->shown,
                spans->shown + spans->hidden,
                view->options.form == VIEW_LINES ? "spans" : "traces");
    fprintf(stderr, "\n");
    if (spans->failed)
        fprintf(stderr, "otel-view: cannot write to stdout\n");
}

int main(int argc, char **argv)
{
    struct view view = {0};
    const int early = view_options_parse(&view.options, argc, argv);
    if (early >= 0)
        return early;
    const int signals = open_signals();
    if (signals < 0) {
        fprintf(stderr, "otel-view: cannot start: %s\n", strerror(errno));
        return 1;
    }
    view_spans_init(&view.spans, stdout);
    view.spans.form = view.options.form;
    view.spans.all = view.options.all;
    view.spans.filter = view.options.filter;
    if (!start(&view)) {
        view_spans_fini(&view.spans);
        return 1;
    }
    view.last_ns = now_ns();
    serve(&view, signals);
    view_http_stop(&view.http);
    view_grpc_stop(&view.grpc);
    conclude(&view);
    const bool failed = view.spans.failed;
    view_spans_fini(&view.spans);
    close(signals);
    return failed ? 1 : 0;
}

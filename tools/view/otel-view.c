/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/otel-view.c - receive OTLP on loopback and show the traces, for people or as JSON.
 *
 *     otel-view                                  in one terminal
 *     OTEL_TRACES_EXPORTER=otlp ./my-program     in another
 *
 * One thread waits for requests, signals and the moment when a trace is complete. Drawings
 * and JSON go to stdout; what otel-view says of itself goes to stderr. */
#include "common/clock/time_units.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "proto/json.h"
#include "tools/view/view_check.h"
#include "tools/view/view_grpc.h"
#include "tools/view/view_http.h"
#include "tools/view/view_spans.h"

#include <errno.h>
#include <getopt.h>
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
    DEFAULT_PORT = 4318,
    DEFAULT_GRPC_PORT = 4317,
    TICK_MS = 100,     /* how often traces are looked at while some wait */
    FAREWELL_MS = 2000 /* how long the last answers may take before the end */
};

static const char usage_text[] =
    "usage: otel-view [OPTION]...\n"
    "Receive traces by OTLP on 127.0.0.1 and draw each one when it is complete.\n"
    "Senders have to speak http/protobuf or grpc without TLS (not http/json); they may\n"
    "compress with gzip or zstd.\n"
    "\n"
    "  --port N         listen for http/protobuf on this port; 0: any free one (default 4318)\n"
    "  --grpc-port N    the same for grpc (default 4317, or with --port any free one)\n"
    "  --json           print each request as a line of OTLP/JSON instead\n"
    "  --count N        end when N spans have been received\n"
    "  --idle-exit MS   end when nothing has been received for so long\n"
    "  --help           print this\n"
    "  --version        print the version\n"
    "\n"
    "The first line on stderr names the addresses. SIGINT and SIGTERM draw the rest and end.\n";

struct view {
    struct view_spans spans;
    struct view_http http;
    struct view_grpc grpc;
    bool json;
    uint16_t port, grpc_port;
    bool needs_grpc;       /* its port is an option that was given */
    uint64_t count;        /* 0: no end by count */
    uint64_t idle_exit_ms; /* 0: never */
    uint64_t last_ns;      /* monotonic: the last request, or the start */
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
        view->json ? protobuf_c_message_unpack(type, NULL, length, body) : NULL;
    if (view->json && request == NULL) {
        snprintf(why, why_size, "the body is no ExportTraceServiceRequest");
        return refuse(400, why);
    }
    const otel_slice bytes = {(const char *)body, length};
    const bool added = view_spans_add(&view->spans, bytes, !view->json, view->last_ns);
    if (added && view->json)
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
    if (view->count != 0 && view->spans.received >= view->count)
        return true;
    return view->idle_exit_ms != 0 &&
           (now_ns() - view->last_ns) / OTELI_NS_PER_MS >= view->idle_exit_ms;
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
    return true;
}

static void serve(struct view *view, int signals)
{
    while (!is_enough(view)) {
        const bool waiting = view->spans.waiting.count != 0 || view->idle_exit_ms != 0;
        if (!step(view, signals, waiting ? TICK_MS : 60000))
            return;
    }
    /* The sender of the last spans still waits for its answer. */
    const uint64_t until_ns = now_ns() + FAREWELL_MS * OTELI_NS_PER_MS;
    while (view->http.in_flight + view->grpc.in_flight != 0 && now_ns() < until_ns &&
           step(view, signals, TICK_MS))
        continue;
}

/* ---- options -------------------------------------------------------------------------- */

static bool parse_number(const char *text, uint64_t max, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *text >= '0' && *text <= '9' &&
           *number <= max;
}

/* Returns the exit status when there is nothing more to do, otherwise -1. */
static int parse_options(struct view *view, int argc, char **argv)
{
    static const struct option options[] = {{"port", required_argument, NULL, 'p'},
                                            {"grpc-port", required_argument, NULL, 'g'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"count", required_argument, NULL, 'c'},
                                            {"idle-exit", required_argument, NULL, 'i'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'v'},
                                            {NULL, 0, NULL, 0}};
    uint64_t port = DEFAULT_PORT, grpc_port = DEFAULT_GRPC_PORT;
    bool fine = true;
    for (int option; fine && (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'h')
            return fputs(usage_text, stdout) < 0;
        if (option == 'v')
            return printf("otel-view %s\n", OTEL_VERSION) < 0;
        if (option == 'p') {
            fine = parse_number(optarg, UINT16_MAX, &port);
            grpc_port = view->needs_grpc ? grpc_port : 0;
        } else if (option == 'g') {
            fine = parse_number(optarg, UINT16_MAX, &grpc_port);
            view->needs_grpc = true;
        } else if (option == 'c')
            fine = parse_number(optarg, UINT64_MAX, &view->count) && view->count != 0;
        else if (option == 'i')
            fine = parse_number(optarg, UINT32_MAX, &view->idle_exit_ms) && view->idle_exit_ms != 0;
        else if (option == 'j')
            view->json = true;
        else
            return 2; /* getopt_long has said why */
        if (!fine)
            fprintf(stderr, "otel-view: \"%s\" is no number that fits here\n", optarg);
    }
    if (fine && optind < argc) {
        fprintf(stderr, "otel-view: there is no argument \"%s\"\n", argv[optind]);
        fine = false;
    }
    view->port = (uint16_t)port;
    view->grpc_port = (uint16_t)grpc_port;
    return fine ? -1 : 2;
}

static bool cannot_listen(uint16_t port)
{
    fprintf(stderr, "otel-view: cannot listen on 127.0.0.1:%u: %s\n", (unsigned)port,
            strerror(errno));
    return false;
}

/* Listen, and say where. */
static bool start(struct view *view)
{
    const struct view_taker taker = {take_request, view};
    if (!view_http_start(&view->http, view->port, taker))
        return cannot_listen(view->port);
    if (!view_grpc_start(&view->grpc, view->grpc_port, taker)) {
        (void)cannot_listen(view->grpc_port);
        view_http_stop(&view->http);
        return false;
    }
    if (view->needs_grpc && view->grpc.port == 0) {
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

int main(int argc, char **argv)
{
    struct view view = {0};
    const int early = parse_options(&view, argc, argv);
    if (early >= 0)
        return early;
    const int signals = open_signals();
    if (signals < 0) {
        fprintf(stderr, "otel-view: cannot start: %s\n", strerror(errno));
        return 1;
    }
    view_spans_init(&view.spans, stdout);
    if (!start(&view)) {
        view_spans_fini(&view.spans);
        return 1;
    }
    view.last_ns = now_ns();
    serve(&view, signals);
    view_http_stop(&view.http);
    view_grpc_stop(&view.grpc);
    view_spans_draw_all(&view.spans);
    fprintf(stderr, "received %" PRIu64 " spans", view.spans.received);
    if (view.spans.twice != 0)
        fprintf(stderr, " (%" PRIu64 " twice)", view.spans.twice);
    fprintf(stderr, "\n");
    const bool failed = view.spans.failed;
    if (failed)
        fprintf(stderr, "otel-view: cannot write to stdout\n");
    view_spans_fini(&view.spans);
    close(signals);
    return failed ? 1 : 0;
}

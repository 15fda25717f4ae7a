/* SPDX-License-Identifier: Apache-2.0 */
/* examples/relay/relay.c - a server with a pool of threads that calls other servers, and traces
 * that go through it: relay.cpp is the same in C++.
 *
 *     cc relay.c wire.c -o relay $(pkg-config --cflags --libs otel) -pthread
 *     OTEL_TRACES_EXPORTER=console ./relay 8080
 *
 *     curl 127.0.0.1:8080/relay -d '[{"url": "http://127.0.0.1:8080/relay", "arguments": []}]'
 *
 * It POSTs the arguments of each call to its URL, as the services do that W3C's tests of Trace
 * Context are run against. Spans and headers are by otel/http.h; wire.h stands for the HTTP library
 * that a real server has. */
#include "wire.h"

#include <inttypes.h>
#include <otel/http.h>
#include <otel/otel.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static otel_tracer *tracer;

/* ---- how headers are read and set ---- */

/* A header can be there several times: they are asked for one after the other. */
static const char *get_header(void *carrier, const char *name, size_t index, size_t *length)
{
    const struct wire_request *request = carrier;
    for (size_t i = 0; i < request->header_count; i++)
        if (strcasecmp(request->headers[i].name, name) == 0 && index-- == 0) {
            *length = request->headers[i].value.length;
            return request->headers[i].value.data;
        }
    return NULL;
}

static void set_header(void *carrier, const char *name, const char *value, size_t length)
{
    wire_add_line(carrier, name, value, length);
}

/* ---- the way out: a client span, and its context in the request's headers ---- */

static bool call(const char *url, struct wire_text arguments)
{
    struct wire_lines lines = {.length = 0};
    otel_span span = otel_http_client_enter(
        tracer, "POST", url, OTEL_HTTP_OPTIONS(.set_header = set_header, .carrier = &lines));
    const unsigned status = wire_post(url, &lines, arguments);
    otel_http_client_end(span, status, status == 0 ? "no_answer" : NULL);
    return status >= 200 && status < 300;
}

static unsigned relay(struct wire_text calls)
{
    char url[256];
    struct wire_text arguments;
    unsigned status = 200;
    while (wire_next_call(&calls, url, &arguments))
        if (!call(url, arguments))
            status = 502;
    return status;
}

/* ---- the way in: a server span that continues the caller's trace ---- */

static void serve(int connection, struct wire_request *request)
{
    otel_span span = otel_http_server_enter(
        tracer, request->method, request->target,
        OTEL_HTTP_OPTIONS(.protocol_version = otel_slice_of(request->version),
                          .peer_address = otel_slice_of(request->peer),
                          .peer_port = request->peer_port, .get_header = get_header,
                          .carrier = request));
    unsigned status = 404;
    if (strcmp(request->target, "/relay") == 0) {
        otel_http_set_route(span, "/relay");
        status = relay(request->body);
    }
    wire_answer(connection, status);
    otel_http_server_end(span, status, NULL);
}

static void *serve_all(void *listener)
{
    struct wire_request *request = malloc(sizeof *request);
    int connection;
    while (request != NULL && (connection = wire_accept(*(int *)listener, request)) >= 0)
        serve(connection, request);
    free(request);
    return NULL;
}

int main(int argc, char **argv)
{
    uint16_t port = argc > 1 ? (uint16_t)strtoul(argv[1], NULL, 10) : 0;
    int listener = wire_listen(&port);
    if (listener < 0) {
        perror("cannot listen");
        return 1;
    }
    sigset_t ends; /* blocked before there are threads, so that all inherit it */
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);

    otel_status status = otel_start(NULL); /* everything from OTEL_* */
    if (status != OTEL_OK)
        fprintf(stderr, "telemetry is off: %s\n", otel_status_string(status));
    tracer = otel_tracer_get("example.relay", "1.0");

    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    int started = 0;
    while (started < THREADS && pthread_create(&threads[started], NULL, serve_all, &listener) == 0)
        started++;
    fprintf(stderr, "listening on http://127.0.0.1:%u/relay\n", port);

    int signal_number;
    sigwait(&ends, &signal_number);
    wire_stop(listener);
    while (started > 0)
        pthread_join(threads[--started], NULL);
    if (otel_shutdown(5000 /* ms */) != OTEL_OK) /* sends what is left */
        fprintf(stderr, "not all spans were delivered\n");
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* examples/relay/relay.cpp - a server with a pool of threads that calls other servers, and traces
 * that go through it: relay.c in C++17, with otel/otel.hpp and otel/http.h.
 *
 *     cc -c wire.c
 *     c++ -std=c++17 relay.cpp wire.o -o relay $(pkg-config --cflags --libs otel) -pthread
 *     OTEL_TRACES_EXPORTER=console ./relay 8080
 *
 *     curl 127.0.0.1:8080/relay -d '[{"url": "http://127.0.0.1:8080/relay", "arguments": []}]' */
#include "wire.h"

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <otel/http.h>
#include <otel/otel.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <strings.h>
#include <thread>
#include <vector>

static otel_tracer *tracer;

/* ---- how headers are read and set: two objects that can be called ---- */

/* A header can be there several times: they are asked for one after the other. */
struct headers_in {
    const wire_request &request;

    std::optional<std::string_view> operator()(std::string_view name, size_t index) const
    {
        for (size_t i = 0; i < request.header_count; i++) {
            const wire_header &header = request.headers[i];
            if (strcasecmp(header.name, name.data()) == 0 && index-- == 0)
                return std::string_view(header.value.data, header.value.length);
        }
        return std::nullopt;
    }
};

struct headers_out {
    wire_lines lines{};

    void operator()(std::string_view name, std::string_view value)
    {
        wire_add_line(&lines, name.data(), value.data(), value.size());
    }
};

/* ---- the way out: a client span, and its context in the request's headers ---- */

static void call(const std::string &url, std::string_view arguments)
{
    headers_out out;
    auto options = otel::options<otel_http_options>();
    options.set_header = otel::set_header<headers_out>;
    options.carrier = &out;
    const otel::span span(otel_http_client_enter(tracer, "POST", url.c_str(), &options));
    const unsigned status =
        wire_post(url.c_str(), &out.lines, {arguments.data(), arguments.size()});
    otel_http_client_end(span.get(), status, status == 0 ? "no_answer" : nullptr);
    if (status < 200 || status > 299)
        throw std::runtime_error(url + " answers " + std::to_string(status));
}

static void relay(wire_text calls)
{
    char url[256];
    wire_text arguments;
    while (wire_next_call(&calls, url, &arguments))
        call(url, {arguments.data, arguments.length});
}

/* ---- the way in: a server span that continues the caller's trace ---- */

static void serve(int connection, const wire_request &request)
{
    headers_in in{request};
    auto options = otel::options<otel_http_options>();
    options.protocol_version = otel_slice_of(request.version);
    options.peer_address = otel_slice_of(request.peer);
    options.peer_port = request.peer_port;
    options.get_header = otel::get_header<headers_in>;
    options.carrier = &in;
    const otel::span span(otel_http_server_enter(tracer, request.method, request.target, &options));
    unsigned status = 404;
    try {
        if (request.target == std::string_view("/relay")) {
            otel_http_set_route(span.get(), "/relay");
            relay(request.body);
            status = 200;
        }
    } catch (const std::exception &error) {
        span.record(error);
        status = 502;
    }
    wire_answer(connection, status);
    otel_http_server_end(span.get(), status, nullptr);
}

int main(int argc, char **argv)
{
    uint16_t port = argc > 1 ? static_cast<uint16_t>(std::stoul(argv[1])) : 0;
    const int listener = wire_listen(&port);
    if (listener < 0) {
        std::perror("cannot listen");
        return 1;
    }
    sigset_t ends; /* blocked before there are threads, so that all inherit it */
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, nullptr);

    const otel_status started = otel_start(nullptr); /* everything from OTEL_* */
    if (started != OTEL_OK)
        std::fprintf(stderr, "telemetry is off: %s\n", otel_status_string(started));
    tracer = otel::tracer("example.relay", "1.0");

    std::vector<std::thread> threads(8);
    for (std::thread &thread : threads)
        thread = std::thread([listener] {
            const auto request = std::make_unique<wire_request>();
            int connection;
            while ((connection = wire_accept(listener, request.get())) >= 0)
                serve(connection, *request);
        });
    std::fprintf(stderr, "listening on http://127.0.0.1:%u/relay\n", port);

    int signal_number;
    sigwait(&ends, &signal_number);
    wire_stop(listener);
    for (std::thread &thread : threads)
        thread.join();
    if (otel_shutdown(5000 /* ms */) != OTEL_OK) /* sends what is left */
        std::fprintf(stderr, "not all spans were delivered\n");
}

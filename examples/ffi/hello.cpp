// SPDX-License-Identifier: Apache-2.0
// examples/ffi/hello.cpp - examples/hello.c in C++17, with otel/otel.hpp.
//
//     c++ -std=c++17 hello.cpp -o hello-cpp $(pkg-config --cflags --libs otel)
//     OTEL_TRACES_EXPORTER=console ./hello-cpp
#include <cstdio>
#include <otel/otel.hpp>

static otel_tracer *tracer;

static int charge(int cents)
{
    otel::scoped_span span(tracer, "charge"); // ends on every way out
    span.set("payment.cents", cents);
    if (cents <= 0) {
        span.fail("nothing to charge");
        return -1;
    }
    return 0;
}

int main()
{
    const otel_status status = otel_start(nullptr); // everything from OTEL_*
    if (status != OTEL_OK)
        std::fprintf(stderr, "telemetry is off: %s\n", otel_status_string(status));
    tracer = otel::tracer("example.shop", "1.0");
    charge(1299);
    if (otel_shutdown(5000 /* ms */) != OTEL_OK) // sends what is left
        std::fprintf(stderr, "not all spans were delivered\n");
}

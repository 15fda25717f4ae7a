/* SPDX-License-Identifier: Apache-2.0 */
/* examples/threadless_libuv.c - tracing in a libuv loop, without a thread for it.
 *
 *     cc threadless_libuv.c -o threadless_libuv $(pkg-config --cflags --libs otel libuv)
 *     OTEL_TRACES_EXPORTER=console ./threadless_libuv 5
 *
 * The SDK is one handle more in the loop: when its descriptor is readable, there is something
 * to do for otel_poll(0), which does not wait for anybody. The work of this program is a timer
 * that goes off some times. */
#include <otel/otel.h>

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

static otel_tracer *tracer;
static uv_poll_t telemetry;
static bool has_telemetry;
static long ticks_left;

static void on_telemetry(uv_poll_t *handle, int status, int events)
{
    (void)handle;
    (void)status;
    (void)events;
    otel_poll(0);
}

static void measure(void)
{
    OTEL_FUNCTION_SPAN(tracer);
    double load[3];
    uv_loadavg(load);
    otel_span_set_double(otel_current_span(), "load", load[0]);
}

static void on_tick(uv_timer_t *timer)
{
    OTEL_SCOPED(span, tracer, "tick");
    otel_span_set_int(span, "ticks.left", --ticks_left);
    measure();
    if (ticks_left > 0)
        return;
    uv_close((uv_handle_t *)timer, NULL);
    if (has_telemetry)
        uv_close((uv_handle_t *)&telemetry, NULL); /* the loop ends when nothing is in it */
}

int main(int argc, char **argv)
{
    uv_timer_t timer;
    uv_loop_t *loop = uv_default_loop();
    ticks_left = argc > 1 ? strtol(argv[1], NULL, 10) : 10;

    const otel_status status =
        otel_start(OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.service_name = "libuv"),
                                    .threadless = true));
    if (status != OTEL_OK)
        fprintf(stderr, "telemetry is off: %s\n", otel_status_string(status));
    tracer = otel_tracer_get("example.threadless_libuv", "1.0");
    if (otel_poll_fd() >= 0) { /* there is none if OTEL_SDK_DISABLED says so, for example */
        has_telemetry = uv_poll_init(loop, &telemetry, otel_poll_fd()) == 0;
        if (has_telemetry)
            uv_poll_start(&telemetry, UV_READABLE, on_telemetry);
    }

    uv_timer_init(loop, &timer);
    uv_timer_start(&timer, on_tick, 10, 10);
    uv_run(loop, UV_RUN_DEFAULT);
    uv_loop_close(loop);

    /* What is left is sent now; only this takes its time. */
    return otel_shutdown(5000) == OTEL_OK ? 0 : 1;
}

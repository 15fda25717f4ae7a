/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/console.c - the exporter that draws traces on a stream.
 *
 * Spans wait until the local root of their trace has arrived: it ends last, so everything below
 * it is here then. At the end of the batch that brought it the trace is drawn. What has no root
 * here is drawn by a flush, or when too much is waiting.
 *
 * Runs on the exporter thread, or on the thread that ends a span where `simple` was chosen;
 * the constructor on the caller's. Owns its state; the stream is the caller's.
 *
 * In a forked child the stream may be locked by a thread that is not there, and it may hold
 * what the parent has yet to write. So there the text goes to the descriptor below it. */
#include <otel/console.h>

#include "common/config/configuration.h"
#include "common/log.h"
#include "common/os/quiet_write.h"
#include "common/text/text.h"
#include "exporters/console/render.h"
#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <unistd.h>

struct console {
    FILE *stream;   /* NULL: in a forked child */
    int descriptor; /* of the stream; -1: it has none */
    bool is_terminal;
    bool colour;
    struct oteli_trace_buffer waiting;
};

/* ---- drawing -------------------------------------------------------------------------- */

static bool put(const struct console *console, const struct oteli_text *text)
{
    if (console->stream == NULL)
        return oteli_quiet_write_all(console->descriptor, text->data, text->length, -1) ==
               text->length;
    struct oteli_signal_guard guard;
    oteli_signal_guard_begin(&guard);
    const bool is_written = fwrite(text->data, 1, text->length, console->stream) == text->length &&
                            fflush(console->stream) == 0;
    const int error = is_written ? 0 : errno;
    oteli_signal_guard_end(&guard, error);
    if (error == EPIPE) /* or exit would write it again, and raise the signal */
        __fpurge(console->stream);
    return is_written;
}

static bool draw(void *state, const struct oteli_waiting_trace *trace)
{
    const struct console *console = state;
    struct oteli_text text = {0};
    const struct oteli_render_options options = {
        .width = oteli_render_width(console->is_terminal ? console->descriptor : -1),
        .colour = console->colour};
    const bool is_drawn = oteli_render_trace(&text, trace, &options) && put(console, &text);
    if (!is_drawn)
        OTELI_LOG_LOST(OTEL_LOG_ERROR, trace->count,
                       "console exporter: %zu span%s could not be written", trace->count,
                       oteli_plural(trace->count));
    oteli_text_fini(&text);
    return is_drawn;
}

static size_t draw_traces(void *state, bool all)
{
    struct console *console = state;
    return oteli_trace_buffer_write(&console->waiting, all, draw, console);
}

/* ---- what the SDK calls --------------------------------------------------------------- */

static otel_export_result export_batch(void *state, otel_export *call)
{
    struct console *console = state;
    return oteli_trace_buffer_export(&console->waiting, call, draw_traces, console);
}

static otel_status flush(void *state, int64_t timeout_ms)
{
    (void)timeout_ms;
    return draw_traces(state, true) == 0 ? OTEL_OK : OTEL_ERROR_EXPORT_FAILED;
}

static void console_free(void *state)
{
    struct console *console = state;
    oteli_trace_buffer_fini(&console->waiting);
    free(console);
}

static otel_status renew(const void *state, otel_exporter *renewed);

static otel_status hand_out(const struct console *settings, otel_exporter *exporter)
{
    struct console *console = malloc(sizeof *console);
    if (console == NULL)
        return OTEL_ERROR_NO_MEMORY;
    *console = *settings;
    *exporter =
        OTEL_EXPORTER(.name = "console_exporter", .state = console, .export_batch = export_batch,
                      .flush = flush, .free = console_free, .renew = renew,
                      .destination = console->descriptor == STDERR_FILENO   ? "stderr"
                                     : console->descriptor == STDOUT_FILENO ? "stdout"
                                                                            : NULL);
    return OTEL_OK;
}

/* A stream without a descriptor is the program's own code, or its memory, and the child's
 * copy of that may be in any state. */
static otel_status renew(const void *state, otel_exporter *renewed)
{
    const struct console *parents = state;
    if (parents->descriptor < 0)
        return OTEL_ERROR_UNSUPPORTED;
    const struct console settings = {.descriptor = parents->descriptor,
                                     .is_terminal = parents->is_terminal,
                                     .colour = parents->colour};
    return hand_out(&settings, renewed);
}

otel_status otel_console_exporter_new(FILE *stream, otel_exporter *exporter)
{
    if (exporter == NULL)
        return OTEL_ERROR_INVALID_ARGUMENT;
    struct console settings = {.stream = stream != NULL ? stream : stdout};
    settings.descriptor = fileno(settings.stream);
    settings.is_terminal = settings.descriptor >= 0 && isatty(settings.descriptor) != 0;
    settings.colour = settings.is_terminal && oteli_env_get("NO_COLOR") == NULL;
    return hand_out(&settings, exporter);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/console.c - the exporter that draws traces on a stream.
 *
 * Spans wait in a gather until the local root of their trace has arrived: it ends last, so
 * everything below it is here then. At the end of the batch that brought it the trace is
 * drawn. What has no root here is drawn by a flush, or when too much is waiting.
 *
 * Runs on the exporter thread, or on the thread that ends a span where `simple` was chosen;
 * the constructor on the caller's. Owns its state; the stream is the caller's.
 *
 * In a forked child the stream may be locked by a thread that is not there, and it may hold
 * what the parent has yet to write. So there the text goes to the descriptor below it. */
#include <otel/console.h>

#include "common/config/configuration.h"
#include "common/log.h"
#include "common/os/signal_guard.h"
#include "common/text/text.h"
#include "exporters/console/gather.h"
#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <unistd.h>

/* Beyond either, the trace that was silent longest is drawn as it is. */
enum { SPANS_HELD_MAX = 10000, BYTES_HELD_MAX = 16 << 20 };

struct console {
    FILE *stream;   /* NULL: in a forked child */
    int descriptor; /* of the stream; -1: it has none */
    bool is_terminal;
    bool colour;
    struct oteli_gather gather;
};

/* The bit of a span's flags that says that its parent is another process's span. */
#define PARENT_IS_REMOTE 0x200u

/* ---- drawing -------------------------------------------------------------------------- */

static bool write_whole(int fd, const char *data, size_t length)
{
    while (length != 0) {
        struct oteli_signal_guard guard;
        oteli_signal_guard_begin(&guard);
        const ssize_t written = write(fd, data, length);
        oteli_signal_guard_end(&guard, written < 0 ? errno : 0);
        if (written < 0 && errno != EINTR)
            return false;
        data += written > 0 ? written : 0;
        length -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static bool put(const struct console *console, const struct oteli_text *text)
{
    if (console->stream == NULL)
        return write_whole(console->descriptor, text->data, text->length);
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

static bool draw(struct console *console, struct oteli_gather_trace *trace)
{
    struct oteli_text text = {0};
    const struct oteli_render_options options = {
        .width = oteli_render_width(console->is_terminal ? console->descriptor : -1),
        .colour = console->colour};
    const bool drawn =
        oteli_render_trace(&text, trace->spans, trace->span_count, &options) && put(console, &text);
    if (!drawn)
        OTELI_LOG_LOST(OTEL_LOG_ERROR, trace->span_count,
                       "console exporter: %zu span%s could not be written", trace->span_count,
                       trace->span_count == 1 ? "" : "s");
    oteli_text_fini(&text);
    oteli_gather_remove(&console->gather, trace);
    return drawn;
}

/* ---- what the SDK calls --------------------------------------------------------------- */

static otel_export_result export_batch(void *state, otel_export *call)
{
    struct console *console = state;
    const otel_slice service = oteli_gather_service(otel_batch_resource(call->batch));
    const size_t count = otel_batch_size(call->batch);
    size_t kept = 0;
    size_t lost = 0;
    for (size_t i = 0; i < count; i++) {
        otel_span_view view;
        otel_batch_span(call->batch, i, &view);
        struct oteli_gather_trace *trace = oteli_gather_keep(&console->gather, &view, service);
        kept += trace != NULL;
        if (trace == NULL)
            otel_export_drop(call, OTEL_DROP_NO_MEMORY, 1);
        else if (view.parent_span_id == NULL || (view.flags & PARENT_IS_REMOTE) != 0)
            trace->is_ready = true;
    }
    /* Only now: within a batch a child may come behind its root. */
    struct oteli_gather_trace *newer;
    for (struct oteli_gather_trace *trace = console->gather.oldest; trace != NULL; trace = newer) {
        newer = trace->newer;
        const size_t spans = trace->span_count;
        if (trace->is_ready || console->gather.span_count > SPANS_HELD_MAX ||
            console->gather.bytes > BYTES_HELD_MAX)
            lost += draw(console, trace) ? 0 : spans;
    }
    /* Those of earlier batches have been counted as delivered. */
    if (lost != 0)
        otel_export_drop(call, OTEL_DROP_PERMANENT_ERROR, lost < kept ? lost : kept);
    return OTEL_EXPORT_DONE;
}

static otel_status flush(void *state, int64_t timeout_ms)
{
    struct console *console = state;
    (void)timeout_ms;
    bool drawn = true;
    while (console->gather.oldest != NULL)
        drawn &= draw(console, console->gather.oldest);
    return drawn ? OTEL_OK : OTEL_ERROR_EXPORT_FAILED;
}

static void console_free(void *state)
{
    struct console *console = state;
    oteli_gather_fini(&console->gather);
    free(console);
}

static otel_status renew(const void *state, otel_exporter *renewed);

static otel_status hand_out(const struct console *settings, otel_exporter *exporter)
{
    struct console *console = malloc(sizeof *console);
    if (console == NULL)
        return OTEL_ERROR_NO_MEMORY;
    *console = *settings;
    oteli_gather_init(&console->gather);
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

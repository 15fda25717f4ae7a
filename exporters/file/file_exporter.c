/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/file/file_exporter.c - the exporters otlp/file and otlp/stdout: one line of OTLP/JSON a
 * batch.
 *
 * A regular file takes each line at once. What may have no room now, a pipe for example, gets
 * it in pieces, and the export is pending meanwhile:
 *
 *     text  │ end of a line that was given up │ line of this export │
 *            sent ─▶                           line ─▶
 *
 * A line of which a part has gone is finished before the next one begins, however late that is,
 * so that a reader never sees a torn one. So at most one line is kept.
 *
 * Runs on the exporter thread, or on the thread that ends a span where `simple` was chosen; the
 * constructor on the caller's. Owns its state and the sink. */
#include <otel/file.h>

#include "common/clock/clock.h"
#include "common/log.h"
#include "common/text/error_text.h"
#include "exporters/file/file_sink.h"
#include "exporters/json/otlp_json.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { TURN_MS = 100 }; /* the longest wait for room at a time */

struct file_exporter {
    struct oteli_sink sink;
    struct oteli_text text;
    size_t sent; /* of the text */
    size_t line; /* where this export's begins in it */
};

/* ---- a regular file ------------------------------------------------------------------- */

/* Append the batch as a line to what the text has. */
static bool add_line(struct file_exporter *file, otel_export *call)
{
    file->line = file->text.length;
    (void)oteli_otlp_json_add(&file->text, call->batch, 0, otel_batch_size(call->batch), SIZE_MAX);
    OTELI_JSON_ADD(&file->text, "\n");
    if (!file->text.failed)
        return true;
    file->text.length = file->line;
    file->text.failed = false;
    otel_export_drop(call, OTEL_DROP_NO_MEMORY, otel_batch_size(call->batch));
    return false;
}

static void forget_text(struct file_exporter *file)
{
    file->sent = 0;
    file->line = 0;
    oteli_text_reset(&file->text);
}

static void drop_unwritten(const struct file_exporter *file, otel_export *call)
{
    const size_t count = otel_batch_size(call->batch);
    struct oteli_error_text text;
    OTELI_LOG_LOST(OTEL_LOG_ERROR, count,
                   "file exporter: %zu span%s could not be written to %s: %s", count,
                   count == 1 ? "" : "s", file->sink.path != NULL ? file->sink.path : "stdout",
                   oteli_error_text(errno, &text));
    otel_export_drop(call, OTEL_DROP_PERMANENT_ERROR, count);
}

static otel_export_result export_to_file(void *state, otel_export *call)
{
    struct file_exporter *file = state;
    if (add_line(file, call) && !oteli_sink_append(&file->sink, file->text.data, file->text.length))
        drop_unwritten(file, call);
    forget_text(file);
    return OTEL_EXPORT_DONE;
}

/* ---- what may have no room now -------------------------------------------------------- */

/* Send what there is room for. False: there will be none, and errno says why. */
static bool push(struct file_exporter *file)
{
    const struct oteli_text *text = &file->text;
    while (file->sent < text->length) {
        const ssize_t sent =
            oteli_sink_push(&file->sink, text->data + file->sent, text->length - file->sent);
        if (sent < 0)
            return false;
        if (sent == 0)
            return true;
        file->sent += (size_t)sent;
    }
    forget_text(file);
    return true;
}

/* Writing has failed. A line that was begun is ended by a newline, so that a reader finds the next
 * line whole. */
static void fail(struct file_exporter *file, otel_export *call)
{
    const bool is_torn = errno != EPIPE && file->sent != file->line;
    drop_unwritten(file, call);
    forget_text(file);
    if (is_torn)
        OTELI_JSON_ADD(&file->text, "\n");
}

/* There is no time left. */
static void give_up(struct file_exporter *file, otel_export *call)
{
    const bool is_begun = file->sent > file->line;
    otel_export_drop(call, is_begun ? OTEL_DROP_UNCONFIRMED : OTEL_DROP_EXPORT_TIMEOUT,
                     otel_batch_size(call->batch));
    if (!is_begun)
        file->text.length = file->line;
}

static otel_export_result go_on(struct file_exporter *file, otel_export *call)
{
    if (!push(file)) {
        fail(file, call);
        return OTEL_EXPORT_DONE;
    }
    return file->text.length == 0 ? OTEL_EXPORT_DONE : OTEL_EXPORT_PENDING;
}

static otel_export_result export_to_stream(void *state, otel_export *call)
{
    struct file_exporter *file = state;
    struct oteli_text *text = &file->text;
    if (file->sent != 0) {
        memmove(text->data, text->data + file->sent, text->length - file->sent);
        text->length -= file->sent;
        file->sent = 0;
    }
    return add_line(file, call) ? go_on(file, call) : OTEL_EXPORT_DONE;
}

/* For a moment: the exporter thread may be asked for something else meanwhile. */
static void wait_for_room(const struct file_exporter *file, uint64_t timeout_ms)
{
    struct pollfd wanted = {.fd = file->sink.held.fd, .events = POLLOUT};
    (void)poll(&wanted, 1, timeout_ms < TURN_MS ? (int)timeout_ms : TURN_MS);
}

static otel_export_result poll_stream(void *state, otel_export *call, int timeout_ms, bool abandon)
{
    struct file_exporter *file = state;
    if (!abandon && timeout_ms > 0)
        wait_for_room(file, (uint64_t)timeout_ms);
    const otel_export_result result = go_on(file, call);
    if (result == OTEL_EXPORT_DONE || !abandon)
        return result;
    give_up(file, call);
    return OTEL_EXPORT_DONE;
}

/* Finish a line that was begun in an export that was given up. */
static otel_status flush_stream(void *state, int64_t timeout_ms)
{
    struct file_exporter *file = state;
    const uint64_t ns = timeout_ms > 0 ? (uint64_t)timeout_ms * 1000000 : 0;
    const uint64_t deadline_ns = oteli_monotonic_ns() + ns;
    while (push(file) && file->text.length != 0) {
        const uint64_t now_ns = oteli_monotonic_ns();
        if (now_ns >= deadline_ns)
            return OTEL_ERROR_TIMEOUT;
        wait_for_room(file, (deadline_ns - now_ns) / 1000000 + 1);
    }
    if (file->text.length == 0)
        return OTEL_OK;
    forget_text(file);
    return OTEL_ERROR_EXPORT_FAILED;
}

/* ---- birth and death ------------------------------------------------------------------ */

static void file_free(void *state)
{
    struct file_exporter *file = state;
    if (file->text.length != 0)
        (void)push(file);
    oteli_sink_close(&file->sink);
    oteli_text_fini(&file->text);
    free(file);
}

static otel_status renew(const void *state, otel_exporter *renewed);

/* The exporter of an open sink, which becomes its own, also when there is none. */
static otel_status hand_out(struct oteli_sink *sink, otel_exporter *exporter)
{
    struct file_exporter *file = calloc(1, sizeof *file);
    if (file == NULL) {
        oteli_sink_close(sink);
        return OTEL_ERROR_NO_MEMORY;
    }
    file->sink = *sink;
    *exporter =
        OTEL_EXPORTER(.name = sink->path != NULL ? "otlp_file_exporter" : "otlp_stdout_exporter",
                      .state = file, .export_batch = export_to_file, .free = file_free,
                      .renew = renew,
                      .destination = file->sink.path != NULL ? file->sink.path : "stdout");
    if (sink->kind != OTELI_SINK_FILE) {
        exporter->export_batch = export_to_stream;
        exporter->poll = poll_stream;
        exporter->flush = flush_stream;
    }
    return OTEL_OK;
}

static otel_status renew(const void *state, otel_exporter *renewed)
{
    const struct file_exporter *parents = state;
    struct oteli_sink sink;
    const otel_status status = oteli_sink_reopen(&sink, &parents->sink);
    return status == OTEL_OK ? hand_out(&sink, renewed) : status;
}

otel_status otel_file_exporter_new(const otel_file_options *options, otel_exporter *exporter)
{
    otel_file_options given = {.size = sizeof given};
    if (exporter == NULL || (options != NULL && options->size == 0))
        return OTEL_ERROR_INVALID_ARGUMENT;
    if (options != NULL)
        memcpy(&given, options, options->size < sizeof given ? options->size : sizeof given);
    if (given.max_bytes < 0 || given.max_files < 0)
        return OTEL_ERROR_INVALID_ARGUMENT;
    struct oteli_sink sink;
    const otel_status status = oteli_sink_open(&sink, given.path, given.max_bytes, given.max_files);
    return status == OTEL_OK ? hand_out(&sink, exporter) : status;
}

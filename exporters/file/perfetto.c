/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/file/perfetto.c - the exporter of trace events, for ui.perfetto.dev.
 *
 * Spans wait until the local root of their trace has arrived: it ends last, so everything below
 * it is here then, and only then is it known which of them lie within each other. At the end of
 * the batch that brought it the trace is written. What has no root here is written by a flush,
 * at the end, or when too much is waiting.
 *
 *     {…,"traceEvents":[ … │ ]}        the tail is overwritten by what comes next,
 *                       end              which brings a tail of its own
 *
 * Runs on the exporter thread, or on the thread that ends a span where `simple` was chosen; the
 * constructor on the caller's. Owns its state and the file. */
#include <otel/file.h>

#include "common/log.h"
#include "common/os/descriptor.h"
#include "common/os/quiet_write.h"
#include "common/text/error_text.h"
#include "common/text/text.h"
#include "exporters/file/file_sink.h"
#include "exporters/file/lanes.h"
#include "exporters/file/trace_events.h"
#include "exporters/trace/trace_tree.h"
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

enum {
    RECENT = 8192, /* spans that were written and that an arrow can begin at; a power of two */
    SECONDS_A_DAY = 86400
};

static const char tail[] = "\n]}\n";

struct perfetto {
    struct oteli_owned_fd held;
    off_t end; /* where the tail stands */
    struct oteli_trace_events events;
    struct oteli_lanes lanes;
    struct said {
        uint32_t lanes; /* that have a name */
        bool process;   /* has a name */
        bool events;    /* there are some */
    } said, written;    /* with what is in the text, and without */
    uint64_t arrows;
    struct oteli_trace_buffer waiting;
    size_t unwritten; /* spans whose events are in the text */
    struct recent {
        uint8_t span_id[8];
        uint32_t track; /* 0: none */
        uint64_t start_ns;
    } recent[RECENT];
};

/* ---- the file ------------------------------------------------------------------------- */

/* Write the events that are in the text. False: they are lost, the file is as it was. */
static bool write_events(struct perfetto *perfetto)
{
    struct oteli_text *text = &perfetto->events.text;
    const size_t length = text->length;
    if (length == 0 && !text->failed)
        return true;
    oteli_text_add(text, tail, sizeof tail - 1);
    const int fd = oteli_owned_fd_is_ours(&perfetto->held) ? perfetto->held.fd : -1;
    const bool is_written = !text->failed && oteli_quiet_write_all(fd, text->data, text->length,
                                                                   perfetto->end) == text->length;
    if (is_written) {
        perfetto->end += (off_t)length;
        perfetto->said.events = perfetto->events.has_events;
        perfetto->written = perfetto->said;
    } else {
        const int error = text->failed ? ENOMEM : errno;
        struct oteli_error_text why;
        OTELI_LOG(OTEL_LOG_ERROR, "perfetto exporter: a trace could not be written: %s",
                  oteli_error_text(error, &why));
        (void)oteli_quiet_write_all(fd, tail, sizeof tail - 1, perfetto->end);
        (void)!ftruncate(fd, perfetto->end + (off_t)sizeof tail - 1);
        perfetto->said = perfetto->written;
        perfetto->events.has_events = perfetto->said.events;
        errno = error;
    }
    oteli_text_reset(text);
    return is_written;
}

/* ---- arrows --------------------------------------------------------------------------- */

static struct recent *recent_of(struct perfetto *perfetto, const uint8_t *span_id)
{
    uint64_t id;
    memcpy(&id, span_id, sizeof id);
    return &perfetto->recent[(id * UINT64_C(0x9e3779b97f4a7c15)) >> 51 & (RECENT - 1)];
}

static void remember(struct perfetto *perfetto, const otel_span_view *span, uint32_t track)
{
    struct recent *recent = recent_of(perfetto, span->span_id);
    memcpy(recent->span_id, span->span_id, sizeof recent->span_id);
    recent->track = track;
    recent->start_ns = span->start_ns;
}

/* An arrow from a span that has been written to this one. */
static void point_from(struct perfetto *perfetto, const char *name, const uint8_t *span_id,
                       const otel_span_view *to, uint32_t track)
{
    if (span_id == NULL)
        return;
    const struct recent *from = recent_of(perfetto, span_id);
    if (from->track == 0 || memcmp(from->span_id, span_id, sizeof from->span_id) != 0)
        return;
    const uint64_t number = ++perfetto->arrows;
    oteli_trace_arrow(&perfetto->events, name, number, false, from->track, from->start_ns);
    oteli_trace_arrow(&perfetto->events, name, number, true, track, to->start_ns);
}

/* ---- a trace -------------------------------------------------------------------------- */

static void write_span(struct perfetto *perfetto, const otel_span_view *span, uint32_t track,
                       bool is_on_parents)
{
    oteli_trace_span(&perfetto->events, span, track);
    remember(perfetto, span, track);
    if (!is_on_parents)
        point_from(perfetto, "parent", span->parent_span_id, span, track);
    otel_slice rest = span->links;
    otel_link_view link;
    while (otel_link_next(&rest, &link))
        point_from(perfetto, "link", link.span_id, span, track);
    oteli_trace_instants(&perfetto->events, span, track);
}

static bool write_trace(void *state, const struct oteli_waiting_trace *trace)
{
    struct perfetto *perfetto = state;
    struct oteli_tree tree;
    if (!oteli_tree_init(&tree, trace))
        return false;
    struct oteli_lane_span *places = malloc(tree.count * sizeof *places);
    for (uint32_t i = 0; i < tree.count && places != NULL; i++) {
        const struct oteli_tree_node *node = &tree.nodes[i];
        places[i] = (struct oteli_lane_span){.start_ns = node->view->start_ns,
                                             .end_ns = oteli_span_end_ns(node->view),
                                             .parent = node->parent,
                                             .lane = OTELI_LANE_NONE,
                                             .below = OTELI_LANE_NONE};
    }
    const bool is_placed =
        places != NULL && oteli_lanes_assign(&perfetto->lanes, places, tree.count);
    while (is_placed && perfetto->said.lanes < perfetto->lanes.count)
        oteli_trace_track(&perfetto->events, ++perfetto->said.lanes);
    for (uint32_t i = 0; i < tree.count && is_placed; i++) {
        const uint32_t parent = places[i].parent;
        const bool is_on_parents = parent < i && places[parent].lane == places[i].lane &&
                                   places[i].end_ns <= places[parent].end_ns;
        write_span(perfetto, tree.nodes[i].view, places[i].lane + 1, is_on_parents);
    }
    free(places);
    oteli_tree_fini(&tree);
    if (is_placed)
        perfetto->unwritten += trace->count;
    return is_placed;
}

/* Write the traces whose root is here, or all, with one write. Gives how many spans were lost. */
static size_t write_traces(void *state, bool all)
{
    struct perfetto *perfetto = state;
    if (perfetto->waiting.count == 0)
        return 0;
    perfetto->unwritten = 0;
    const size_t lost = oteli_trace_buffer_write(&perfetto->waiting, all, write_trace, perfetto);
    return write_events(perfetto) ? lost : lost + perfetto->unwritten;
}

/* ---- what the SDK calls --------------------------------------------------------------- */

static void name_process(struct perfetto *perfetto, otel_slice resource)
{
    otel_slice rest = resource;
    const otel_slice service = oteli_service_of(resource);
    otel_attribute_view attribute;
    perfetto->events.pid = getpid();
    while (otel_attribute_next(&rest, OTEL_FIELD_RESOURCE_ATTRIBUTE, &attribute)) {
        if (attribute.value.type == OTEL_VALUE_INT && oteli_is_text(attribute.key, "process.pid"))
            perfetto->events.pid = attribute.value.integer;
    }
    oteli_trace_process(&perfetto->events,
                        service.data != NULL ? service : oteli_slice_of("unknown_service"),
                        resource);
    perfetto->said.process = true;
}

static otel_export_result export_batch(void *state, otel_export *call)
{
    struct perfetto *perfetto = state;
    if (!perfetto->said.process)
        name_process(perfetto, otel_batch_resource(call->batch));
    return oteli_trace_buffer_export(&perfetto->waiting, call, write_traces, perfetto);
}

static otel_status flush(void *state, int64_t timeout_ms)
{
    (void)timeout_ms;
    return write_traces(state, true) == 0 ? OTEL_OK : OTEL_ERROR_EXPORT_FAILED;
}

static void perfetto_free(void *state)
{
    struct perfetto *perfetto = state;
    (void)write_traces(perfetto, true);
    oteli_trace_buffer_fini(&perfetto->waiting);
    oteli_lanes_fini(&perfetto->lanes);
    oteli_text_fini(&perfetto->events.text);
    oteli_owned_fd_close(&perfetto->held);
    free(perfetto);
}

/* ---- birth ---------------------------------------------------------------------------- */

/* Midnight before now, so that times are those of the day, in UTC. */
static uint64_t last_midnight_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t seconds = now.tv_sec > 0 ? (uint64_t)now.tv_sec : 0;
    return (seconds - seconds % SECONDS_A_DAY) * UINT64_C(1000000000);
}

static bool write_head(struct perfetto *perfetto)
{
    struct oteli_text *text = &perfetto->events.text;
    OTELI_JSON_ADD(text, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"zero_unix_nano\":\"");
    oteli_json_add_unsigned(text, perfetto->events.zero_ns);
    OTELI_JSON_ADD(text, "\"},\"traceEvents\":[");
    return write_events(perfetto);
}

/* What is written is overwritten later, which a device or a pipe cannot take. */
static struct oteli_owned_fd open_regular(const char *path)
{
    struct stat status;
    const int fd = oteli_descriptor_lift(
        open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644));
    if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)))
        return oteli_owned_fd_of(fd);
    close(fd);
    errno = EINVAL;
    return oteli_owned_fd_of(-1);
}

otel_status otel_perfetto_exporter_new(const char *path, otel_exporter *exporter)
{
    if (path == NULL || exporter == NULL)
        return OTEL_ERROR_INVALID_ARGUMENT;
    struct perfetto *perfetto = calloc(1, sizeof *perfetto);
    if (perfetto == NULL)
        return OTEL_ERROR_NO_MEMORY;
    perfetto->events.zero_ns = last_midnight_ns();
    perfetto->held = open_regular(path);
    if (perfetto->held.fd < 0 || !write_head(perfetto)) {
        const int error = errno;
        oteli_owned_fd_close(&perfetto->held);
        oteli_text_fini(&perfetto->events.text);
        free(perfetto);
        errno = error;
        return error == ENOMEM ? OTEL_ERROR_NO_MEMORY : OTEL_ERROR_SYSTEM;
    }
    *exporter = OTEL_EXPORTER(.name = "perfetto_exporter", .state = perfetto,
                              .export_batch = export_batch, .flush = flush, .free = perfetto_free);
    return OTEL_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/exporter.c - the OTLP exporter, put together: what otel_exporter asks of it, and
 * how it is made and freed. Exporter thread, but for making; owns the slots, their requests and
 * the spool. What happens to a batch is in batch_export.c, to one request in request_call.c. */
#include "common/clock/time_units.h"
#include "exporters/otlp/batch_export.h"
#include "exporters/otlp/otlp_options.h"

#include <stdlib.h>
#include <string.h>

#define FOREVER UINT64_MAX

struct otlp_exporter {
    struct oteli_receiver receiver;
    struct oteli_batch_export batch_export;
    otel_otlp_compression compression;
    char *name; /* of the receiver */
    void (*free_add_headers_state)(void *state);
};

static otel_export_result export_batch(void *state, otel_export *call)
{
    struct otlp_exporter *exporter = state;
    return oteli_batch_export_begin(&exporter->batch_export, call);
}

static otel_export_result poll_export(void *state, otel_export *call, int timeout_ms, bool abandon)
{
    struct otlp_exporter *exporter = state;
    return oteli_batch_export_go_on(&exporter->batch_export, call, timeout_ms, abandon);
}

static int descriptor(void *state, int *timeout_ms)
{
    struct otlp_exporter *exporter = state;
    struct oteli_batch_export *batch_export = &exporter->batch_export;
    if (batch_export->call != NULL)
        return oteli_batch_export_descriptor(batch_export, timeout_ms);
    *timeout_ms = -1;
    return batch_export->spool_sender != NULL
               ? oteli_spool_sender_descriptor(batch_export->spool_sender)
               : -1;
}

/* Send what is on disk. Only with a spool. */
static int attend(void *state)
{
    struct otlp_exporter *exporter = state;
    return oteli_spool_sender_attend(exporter->batch_export.spool_sender);
}

static int finish(void *state)
{
    struct otlp_exporter *exporter = state;
    return oteli_spool_sender_finish(exporter->batch_export.spool_sender);
}

static void wake(void *state)
{
    struct otlp_exporter *exporter = state;
    for (size_t i = 0; i < exporter->batch_export.slot_count; i++)
        oteli_request_call_wake(&exporter->batch_export.slots[i].request_call);
}

/* All of it but what the program gave. */
static void dismantle(struct otlp_exporter *exporter)
{
    struct oteli_batch_export *batch_export = &exporter->batch_export;
    oteli_spool_sender_free(batch_export->spool_sender);
    for (size_t i = 0; batch_export->slots != NULL && i < batch_export->slot_count; i++) {
        oteli_request_call_fini(&batch_export->slots[i].request_call);
        oteli_request_fini(&batch_export->slots[i].request);
    }
    free(batch_export->slots);
    free(exporter->name);
    free(exporter);
}

static void free_exporter(void *state)
{
    struct otlp_exporter *exporter = state;
    if (exporter == NULL)
        return;
    if (exporter->free_add_headers_state != NULL)
        exporter->free_add_headers_state(exporter->receiver.add_headers_state);
    dismantle(exporter);
}

static otel_status renew(const void *state, otel_exporter *renewed);

static void hand_out(struct otlp_exporter *made, otel_exporter *exporter)
{
    static const char *const names[] = {
        [OTEL_OTLP_HTTP_PROTOBUF] = "otlp_http_span_exporter",
        [OTEL_OTLP_HTTP_JSON] = "otlp_http_json_span_exporter",
        [OTEL_OTLP_GRPC] = "otlp_grpc_span_exporter",
    };
    const bool has_spool = made->batch_export.spool_sender != NULL;
    *exporter = OTEL_EXPORTER(.name = names[made->receiver.protocol], .state = made,
                              .export_batch = export_batch, .poll = poll_export, .wake = wake,
                              .free = free_exporter, .descriptor = descriptor, .renew = renew,
                              .destination = made->name, .attend = has_spool ? attend : NULL,
                              .finish = has_spool ? finish : NULL);
}

static struct oteli_spool_sender *new_spool_sender(const struct otlp_exporter *made,
                                                   const struct oteli_options *options)
{
    const struct oteli_spool_sender_options chosen = {
        .directory = options->given.spool_directory,
        .endpoint = made->name,
        .max_bytes = options->given.spool_max_bytes,
        .max_age_ms = options->given.spool_max_age_ms,
        .compression = options->given.compression,
        .max_request_bytes = options->given.max_request_bytes,
        .timeout_ns = made->batch_export.timeout_ns,
    };
    return oteli_spool_sender_new(&chosen, &made->receiver, oteli_options_transport(options));
}

/* Of what is constant in `like`: by the options, or (NULL) in a forked child like its parent's. */
static otel_status make(const struct otlp_exporter *like, const struct oteli_options *options,
                        otel_exporter *exporter)
{
    const struct oteli_batch_export *model = &like->batch_export;
    struct otlp_exporter *made = calloc(1, sizeof *made);
    if (made == NULL)
        return OTEL_ERROR_NO_MEMORY;
    struct oteli_batch_export *batch_export = &made->batch_export;
    made->receiver = like->receiver;
    made->name = strdup(like->receiver.name);
    made->receiver.name = made->name;
    made->compression = like->compression;
    batch_export->receiver = &made->receiver;
    batch_export->timeout_ns = model->timeout_ns;
    batch_export->max_request_bytes = model->max_request_bytes;
    batch_export->slot_count = model->slot_count;
    batch_export->slots = calloc(model->slot_count, sizeof *batch_export->slots);
    bool is_whole = made->name != NULL && batch_export->slots != NULL;
    for (size_t i = 0; is_whole && i < model->slot_count; i++) {
        struct oteli_request_slot *slot = &batch_export->slots[i];
        is_whole =
            oteli_request_call_init(
                &slot->request_call, &made->receiver,
                options != NULL ? oteli_options_transport(options)
                                : oteli_transport_renew(model->slots[i].request_call.transport)) &&
            oteli_request_init(&slot->request, made->receiver.protocol, made->compression,
                               model->max_request_bytes);
    }
    const bool has_spool =
        options != NULL ? options->given.spool_directory != NULL : model->spool_sender != NULL;
    if (is_whole && has_spool) {
        batch_export->spool_sender =
            options != NULL ? new_spool_sender(made, options)
                            : oteli_spool_sender_renew(model->spool_sender, &made->receiver);
        is_whole = batch_export->spool_sender != NULL;
    }
    if (!is_whole) {
        dismantle(made);
        return OTEL_ERROR_NO_MEMORY;
    }
    made->free_add_headers_state = like->free_add_headers_state;
    hand_out(made, exporter);
    return OTEL_OK;
}

static otel_status renew(const void *state, otel_exporter *renewed)
{
    return make(state, NULL, renewed);
}

otel_status otel_otlp_exporter_new(const otel_otlp_options *given, otel_exporter *exporter)
{
    struct oteli_options options;
    otel_status status = oteli_options_init(&options, OTELI_SIGNAL_TRACES, given);
    if (status != OTEL_OK)
        return status;
    const otel_otlp_options *chosen = &options.given;
    const struct otlp_exporter like = {
        .receiver = {.name = options.endpoint.name,
                     .protocol = chosen->protocol,
                     .add_headers = chosen->add_headers,
                     .add_headers_state = chosen->add_headers_state},
        .batch_export = {.timeout_ns = chosen->timeout_ms < 0
                                           ? FOREVER
                                           : oteli_ns_after(0, (uint64_t)chosen->timeout_ms),
                         .max_request_bytes = chosen->max_request_bytes,
                         .slot_count = chosen->concurrency},
        .compression = chosen->compression,
        .free_add_headers_state = chosen->free_add_headers_state};
    status = make(&like, &options, exporter);
    if (status == OTEL_OK)
        exporter->destination_is_default = options.endpoint_is_default;
    oteli_options_fini(&options);
    return status;
}

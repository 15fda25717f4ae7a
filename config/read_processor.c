/* SPDX-License-Identifier: Apache-2.0 */
/* config/read_processor.c - span processors and their exporters; see settings.h. Start/stop
 * only.
 *
 * All batch processors share one queue here, so they must agree on its settings. */
#include "common/config/configuration.h"
#include "config/settings.h"

#include <inttypes.h>
#include <string.h>

static void read_headers(const struct oteli_node *list, struct oteli_pool *pool,
                         struct oteli_faults *faults, struct oteli_exporter_setting *exporter)
{
    if (list == NULL)
        return;
    otel_otlp_header *headers = oteli_pool_array(pool, list->count, sizeof *headers);
    if (headers == NULL) {
        oteli_fault_no_memory(faults);
        return;
    }
    for (const struct oteli_item *item = list->items; item != NULL; item = item->next) {
        const char *value = oteli_read_text(item->value, "value");
        if (value != NULL)
            headers[exporter->header_count++] =
                (otel_otlp_header){oteli_read_text(item->value, "name"), value};
    }
    exporter->headers = headers;
}

static bool is_word(const struct oteli_node *mapping, const char *key, const char *word)
{
    const char *text = oteli_read_text(mapping, key);
    return text != NULL && strcmp(text, word) == 0;
}

static void read_otlp(const struct oteli_node *body, struct oteli_pool *pool,
                      struct oteli_faults *faults, struct oteli_exporter_setting *exporter)
{
    const struct oteli_node *tls = oteli_node_value(body, "tls");
    exporter->kind = OTELI_EXPORTER_OTLP;
    exporter->endpoint = oteli_read_text(body, "endpoint");
    exporter->headers_list = oteli_read_text(body, "headers_list");
    exporter->timeout_ms = oteli_read_number(body, "timeout");
    exporter->max_request_bytes = oteli_read_number(body, "max_request_size");
    exporter->max_response_bytes = oteli_read_number(body, "max_response_size");
    if (is_word(body, "compression", "gzip"))
        exporter->compression = OTEL_OTLP_COMPRESSION_GZIP;
    else if (is_word(body, "compression", "zstd"))
        exporter->compression = OTEL_OTLP_COMPRESSION_ZSTD;
    exporter->ca_file = oteli_read_text(tls, "ca_file");
    exporter->key_file = oteli_read_text(tls, "key_file");
    exporter->certificate_file = oteli_read_text(tls, "cert_file");
    exporter->insecure = oteli_read_bool(tls, "insecure", false);
    read_headers(oteli_node_value(body, "headers"), pool, faults, exporter);
}

static void read_exporter(const struct oteli_node *node, struct oteli_pool *pool,
                          struct oteli_faults *faults, struct oteli_exporter_setting *exporter)
{
    static const char scheme[] = "file://";
    const struct oteli_item *item = node->items;
    const struct oteli_node *body = item->value;
    exporter->place = item->key_place;
    if (strcmp(item->key, "otlp_http") == 0) {
        read_otlp(body, pool, faults, exporter);
        if (is_word(body, "encoding", "json"))
            exporter->protocol = OTEL_OTLP_HTTP_JSON;
    } else if (strcmp(item->key, "otlp_grpc") == 0) {
        read_otlp(body, pool, faults, exporter);
        exporter->protocol = OTEL_OTLP_GRPC;
    } else if (strcmp(item->key, "otlp_file/development") == 0) {
        const char *stream = oteli_read_text(body, "output_stream");
        exporter->kind = OTELI_EXPORTER_OTLP_FILE;
        if (stream != NULL && strncmp(stream, scheme, sizeof scheme - 1) == 0)
            exporter->path = stream + sizeof scheme - 1;
    } else if (strcmp(item->key, "console") == 0) {
        exporter->kind = OTELI_EXPORTER_CONSOLE;
    } else {
        exporter->kind = OTELI_EXPORTER_REGISTERED;
        exporter->component = oteli_component_read(OTEL_COMPONENT_EXPORTER, item);
    }
}

/* A default that is not said and one that is are the same. */
static int64_t number_or(const struct oteli_node *mapping, const char *key, int64_t otherwise)
{
    const int64_t number = oteli_read_number(mapping, key);
    return number != 0 ? number : otherwise;
}

static bool is_same_batch(const otel_sdk_options *a, const otel_sdk_options *b)
{
    return a->bsp_schedule_delay == b->bsp_schedule_delay &&
           a->bsp_export_timeout == b->bsp_export_timeout &&
           a->bsp_max_queue_size == b->bsp_max_queue_size &&
           a->bsp_max_export_batch_size == b->bsp_max_export_batch_size;
}

static void read_batch(const struct oteli_item *item, struct oteli_faults *faults,
                       struct oteli_settings *settings, bool is_first, size_t index)
{
    const int64_t queue = number_or(item->value, "max_queue_size", 2048);
    const int64_t size = number_or(item->value, "max_export_batch_size", 512);
    const otel_sdk_options batch = {
        .bsp_schedule_delay = number_or(item->value, "schedule_delay", 5000),
        .bsp_export_timeout = number_or(item->value, "export_timeout", 30000),
        .bsp_max_queue_size = queue,
        .bsp_max_export_batch_size = size < queue ? size : queue,
    };
    if (is_first && size > queue)
        oteli_doubt(faults, item->key_place,
                    "tracer_provider.processors[%zu].batch has batches of %" PRId64
                    " spans, which do not fit in its queue of %" PRId64
                    "; using batches of %" PRId64,
                    index, size, queue, queue);
    if (is_first)
        oteli_config_put_over(&settings->options, &batch);
    else if (!is_same_batch(&batch, &settings->options))
        oteli_fault(faults, item->key_place,
                    "tracer_provider.processors[%zu].batch has other settings than the batch "
                    "processor before it, and all of them share one queue in this build",
                    index);
}

static void read_processor(const struct oteli_item *item, struct oteli_pool *pool,
                           struct oteli_faults *faults, struct oteli_processor_setting *processor)
{
    processor->place = item->key_place;
    if (strcmp(item->key, "batch") == 0) {
        processor->kind = OTELI_PROCESSOR_BATCH;
    } else if (strcmp(item->key, "simple") == 0) {
        processor->kind = OTELI_PROCESSOR_SIMPLE;
    } else {
        processor->kind = OTELI_PROCESSOR_REGISTERED;
        processor->component = oteli_component_read(OTEL_COMPONENT_PROCESSOR, item);
        return;
    }
    read_exporter(oteli_node_value(item->value, "exporter"), pool, faults, &processor->exporter);
}

void oteli_processors_read(const struct oteli_node *processors, struct oteli_pool *pool,
                           struct oteli_faults *faults, struct oteli_settings *settings)
{
    if (processors == NULL)
        return;
    struct oteli_processor_setting *list = oteli_pool_array(pool, processors->count, sizeof *list);
    if (list == NULL) {
        oteli_fault_no_memory(faults);
        return;
    }
    size_t batches = 0;
    size_t count = 0;
    for (const struct oteli_item *item = processors->items; item != NULL; item = item->next) {
        const struct oteli_item *kind = item->value->items;
        read_processor(kind, pool, faults, &list[count]);
        if (list[count].kind == OTELI_PROCESSOR_BATCH)
            read_batch(kind, faults, settings, batches++ == 0, count);
        count++;
    }
    settings->processors = list;
    settings->processor_count = count;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* config/read_processor.c - span processors and their exporters; see settings.h. Start/stop
 * only.
 *
 * All batch processors share one queue here, so they must agree on its settings. */
#include "common/config/configuration.h"
#include "common/text/text.h"
#include "config/settings.h"
#include "exporters/otlp/endpoint.h"

#include <inttypes.h>
#include <string.h>

static bool has_header(const otel_otlp_options *otlp, const char *name)
{
    for (size_t i = 0; i < otlp->header_count; i++)
        if (oteli_is_word(oteli_slice_of(otlp->headers[i].name), name))
            return true;
    return false;
}

static const char *copy(struct oteli_pool *pool, struct oteli_faults *faults, const char *text)
{
    const char *copied = oteli_pool_text(pool, text, strlen(text));
    if (copied == NULL)
        oteli_fault_no_memory(faults);
    return copied;
}

/* Those of `headers`, and those of `headers_list` that are not among them. */
static void read_headers(const struct oteli_node *body, struct oteli_pool *pool,
                         struct oteli_faults *faults, otel_otlp_options *otlp)
{
    const struct oteli_node *own = oteli_node_value(body, "headers");
    const char *list = oteli_read_text(body, "headers_list");
    otel_otlp_header *listed = NULL;
    size_t listed_count = 0;
    otel_otlp_header *headers = NULL;
    if (list == NULL || oteli_otlp_headers_parse("headers_list", list, &listed, &listed_count))
        headers =
            oteli_pool_array(pool, (own != NULL ? own->count : 0) + listed_count, sizeof *headers);
    if (headers == NULL)
        oteli_fault_no_memory(faults);
    otlp->headers = headers;
    const struct oteli_item *item = own != NULL && headers != NULL ? own->items : NULL;
    for (; item != NULL; item = item->next) {
        const char *value = oteli_read_text(item->value, "value");
        if (value != NULL)
            headers[otlp->header_count++] =
                (otel_otlp_header){oteli_read_text(item->value, "name"), value};
    }
    for (size_t i = 0; i < listed_count && headers != NULL; i++)
        if (!has_header(otlp, listed[i].name))
            headers[otlp->header_count++] = (otel_otlp_header){copy(pool, faults, listed[i].name),
                                                               copy(pool, faults, listed[i].value)};
    oteli_otlp_headers_free(listed, listed_count);
}

static bool is_word(const struct oteli_node *mapping, const char *key, const char *word)
{
    const char *text = oteli_read_text(mapping, key);
    return text != NULL && strcmp(text, word) == 0;
}

static void read_otlp(const struct oteli_node *body, otel_otlp_protocol protocol,
                      struct oteli_pool *pool, struct oteli_faults *faults,
                      struct oteli_exporter_setting *exporter)
{
    const struct oteli_node *tls = oteli_node_value(body, "tls");
    const int64_t most = oteli_read_number(body, "max_request_size");
    exporter->kind = OTELI_EXPORTER_OTLP;
    exporter->otlp = (otel_otlp_options){
        .size = sizeof exporter->otlp,
        .endpoint = oteli_read_text(body, "endpoint"),
        .timeout_ms = oteli_read_number(body, "timeout"),
        .max_request_bytes = most == OTEL_ZERO ? SIZE_MAX : (size_t)most,
        .max_response_bytes = (size_t)oteli_read_number(body, "max_response_size"),
        .protocol = protocol,
        .compression = is_word(body, "compression", "gzip")   ? OTEL_OTLP_COMPRESSION_GZIP
                       : is_word(body, "compression", "zstd") ? OTEL_OTLP_COMPRESSION_ZSTD
                                                              : OTEL_OTLP_COMPRESSION_NONE,
        .ca_file = oteli_read_text(tls, "ca_file"),
        .key_file = oteli_read_text(tls, "key_file"),
        .certificate_file = oteli_read_text(tls, "cert_file"),
        .insecure = oteli_read_bool(tls, "insecure", false),
    };
    read_headers(body, pool, faults, &exporter->otlp);
}

static void read_exporter(const struct oteli_node *node, struct oteli_pool *pool,
                          struct oteli_faults *faults, struct oteli_exporter_setting *exporter)
{
    static const char scheme[] = "file://";
    const struct oteli_item *item = node->items;
    const struct oteli_node *body = item->value;
    exporter->item = item;
    if (strcmp(item->key, "otlp_http") == 0) {
        const bool is_json = is_word(body, "encoding", "json");
        read_otlp(body, is_json ? OTEL_OTLP_HTTP_JSON : OTEL_OTLP_HTTP_PROTOBUF, pool, faults,
                  exporter);
    } else if (strcmp(item->key, "otlp_grpc") == 0) {
        read_otlp(body, OTEL_OTLP_GRPC, pool, faults, exporter);
    } else if (strcmp(item->key, "otlp_file/development") == 0) {
        const char *stream = oteli_read_text(body, "output_stream");
        exporter->kind = OTELI_EXPORTER_OTLP_FILE;
        if (stream != NULL && strncmp(stream, scheme, sizeof scheme - 1) == 0)
            exporter->path = stream + sizeof scheme - 1;
    } else if (strcmp(item->key, "console") == 0) {
        exporter->kind = OTELI_EXPORTER_CONSOLE;
    } else {
        exporter->kind = OTELI_EXPORTER_REGISTERED;
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
    processor->item = item;
    if (strcmp(item->key, "batch") == 0) {
        processor->kind = OTELI_PROCESSOR_BATCH;
    } else if (strcmp(item->key, "simple") == 0) {
        processor->kind = OTELI_PROCESSOR_SIMPLE;
    } else {
        processor->kind = OTELI_PROCESSOR_REGISTERED;
        return;
    }
    read_exporter(oteli_node_value(item->value, "exporter"), pool, faults, &processor->exporter);
}

void oteli_processors_read(const struct oteli_node *processors, struct oteli_pool *pool,
                           struct oteli_faults *faults, struct oteli_settings *settings)
{
    if (processors == NULL)
        return;
    struct oteli_processor_setting *list =
        oteli_read_array(pool, faults, processors->count, sizeof *list);
    if (list == NULL)
        return;
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

/* SPDX-License-Identifier: Apache-2.0 */
/* config/make_processor.c - make the span processors of a file, and their exporters; the contracts
 * are in settings.h. Start/stop only; what is made is the caller's.
 *
 * The schema has been checked: each processor, and each exporter, is a mapping with one key. */
#include "common/text/error_text.h"
#include "common/text/text.h"
#include "config/read/registry.h"
#include "config/settings.h"
#include "exporters/otlp/endpoint.h"

#include <errno.h>
#include <otel/console.h>
#include <otel/file.h>
#include <string.h>

/* --- Exporters --- */

static bool has_header(const otel_otlp_options *otlp, const char *name)
{
    for (size_t i = 0; i < otlp->header_count; i++)
        if (oteli_is_word(oteli_slice_of(otlp->headers[i].name), name))
            return true;
    return false;
}

/* Those of `headers`, and those of `headers_list` that are not among them. */
static void read_headers(const struct oteli_node *body, struct oteli_file *file,
                         otel_otlp_options *otlp)
{
    const char *list = oteli_read_text(body, "headers_list");
    otel_otlp_header *listed = NULL;
    size_t listed_count = 0;
    size_t own_count;
    const struct oteli_item *item = oteli_read_list(body, "headers", &own_count);
    if (list != NULL && !oteli_otlp_headers_parse("headers_list", list, &listed, &listed_count))
        oteli_fault_no_memory(file);
    otel_otlp_header *headers = oteli_file_take(file, own_count + listed_count, sizeof *headers);
    otlp->headers = headers;
    for (; item != NULL && headers != NULL; item = item->next) {
        const char *value = oteli_read_text(item->value, "value");
        if (value != NULL)
            headers[otlp->header_count++] =
                (otel_otlp_header){oteli_read_text(item->value, "name"), value};
    }
    for (size_t i = 0; i < listed_count && headers != NULL; i++)
        if (!has_header(otlp, listed[i].name))
            headers[otlp->header_count++] =
                (otel_otlp_header){oteli_file_copy(file, oteli_slice_of(listed[i].name)),
                                   oteli_file_copy(file, oteli_slice_of(listed[i].value))};
    oteli_otlp_headers_free(listed, listed_count);
}

static bool is_text(const struct oteli_node *mapping, const char *key, const char *word)
{
    const char *text = oteli_read_text(mapping, key);
    return text != NULL && strcmp(text, word) == 0;
}

bool oteli_read_otlp(const struct oteli_item *exporter, struct oteli_file *file,
                     otel_otlp_options *otlp)
{
    const struct oteli_node *body = exporter->value;
    const struct oteli_node *tls = oteli_node_value(body, "tls");
    const int64_t most = oteli_read_number(body, "max_request_size");
    const bool is_grpc = strcmp(exporter->key, "otlp_grpc") == 0;
    if (!is_grpc && strcmp(exporter->key, "otlp_http") != 0)
        return false;
    *otlp = (otel_otlp_options){
        .size = sizeof *otlp,
        .endpoint = oteli_read_text(body, "endpoint"),
        .timeout_ms = oteli_read_number(body, "timeout"),
        .max_request_bytes = most == OTEL_ZERO ? SIZE_MAX : (size_t)most,
        .max_response_bytes = (size_t)oteli_read_number(body, "max_response_size"),
        .protocol = is_grpc                             ? OTEL_OTLP_GRPC
                    : is_text(body, "encoding", "json") ? OTEL_OTLP_HTTP_JSON
                                                        : OTEL_OTLP_HTTP_PROTOBUF,
        .compression = is_text(body, "compression", "gzip")   ? OTEL_OTLP_COMPRESSION_GZIP
                       : is_text(body, "compression", "zstd") ? OTEL_OTLP_COMPRESSION_ZSTD
                                                              : OTEL_OTLP_COMPRESSION_NONE,
        .ca_file = oteli_read_text(tls, "ca_file"),
        .key_file = oteli_read_text(tls, "key_file"),
        .certificate_file = oteli_read_text(tls, "cert_file"),
        .insecure = oteli_read_bool(tls, "insecure", false),
    };
    read_headers(body, file, otlp);
    return true;
}

/* The path of an URL; NULL: the exporter writes to stdout. */
static const char *path_of(const struct oteli_item *exporter)
{
    static const char scheme[] = "file://";
    const char *stream = oteli_read_text(exporter->value, "output_stream");
    const bool is_file = stream != NULL && strncmp(stream, scheme, sizeof scheme - 1) == 0;
    return is_file ? stream + sizeof scheme - 1 : NULL;
}

static otel_status make_exporter(const struct oteli_item *item, struct oteli_file *file,
                                 otel_exporter *exporter)
{
    const char *path = NULL;
    otel_otlp_options otlp;
    otel_status status;
    if (oteli_read_otlp(item, file, &otlp)) {
        status =
            file->has_no_memory ? OTEL_ERROR_NO_MEMORY : otel_otlp_exporter_new(&otlp, exporter);
    } else if (strcmp(item->key, "otlp_file/development") == 0) {
        path = path_of(item);
        status = otel_file_exporter_new(OTEL_FILE_OPTIONS(.path = path), exporter);
    } else if (strcmp(item->key, "console") == 0) {
        status = otel_console_exporter_new(NULL, exporter);
    } else {
        status = oteli_registry_create(OTEL_COMPONENT_EXPORTER, item, exporter);
    }
    if (status == OTEL_ERROR_SYSTEM && path != NULL) {
        struct oteli_error_text text;
        oteli_fault(file, item->key_place, "this exporter cannot be made: %.240s: %s", path,
                    oteli_error_text(errno, &text));
    } else if (status != OTEL_OK) {
        oteli_fault(file, item->key_place, "this exporter cannot be made: %s",
                    otel_status_string(status));
    }
    return status;
}

/* --- Processors --- */

const struct oteli_item *oteli_exporter_of(const struct oteli_node *processor)
{
    const struct oteli_item *item = processor->items;
    if (strcmp(item->key, "batch") != 0 && strcmp(item->key, "simple") != 0)
        return NULL;
    return oteli_node_value(item->value, "exporter")->items;
}

otel_status oteli_make_processor(const struct oteli_node *processor, struct oteli_file *file,
                                 bool *is_batch, otel_exporter *exporter, otel_processor *made)
{
    const struct oteli_item *item = processor->items;
    const struct oteli_item *exporter_item = oteli_exporter_of(processor);
    *is_batch = strcmp(item->key, "batch") == 0;
    otel_status status = OTEL_OK;
    if (exporter_item != NULL)
        status = make_exporter(exporter_item, file, exporter);
    if (status != OTEL_OK || *is_batch)
        return status;
    status = exporter_item != NULL ? otel_simple_processor_new(*exporter, made)
                                   : oteli_registry_create(OTEL_COMPONENT_PROCESSOR, item, made);
    if (status != OTEL_OK)
        oteli_fault(file, item->key_place, "this processor cannot be made: %s",
                    otel_status_string(status));
    return status;
}

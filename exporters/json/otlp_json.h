/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/json/otlp_json.h - a batch as an ExportTraceServiceRequest in OTLP's JSON encoding,
 * which is a TracesData as well.
 *
 * One line, made of what any exporter sees: spans by scope, in the order in which each scope
 * comes first. Fields that have their default value are left out.
 *
 *     struct oteli_otlp_json encoder = {0};
 *     if (oteli_otlp_json_add(&encoder, batch))
 *         write(fd, encoder.text.data, encoder.text.length);
 *     oteli_otlp_json_fini(&encoder);
 *
 * Threads:  one thread at a time.
 * Source:   opentelemetry-proto docs/specification.md "JSON Protobuf Encoding". */
#ifndef OTELI_OTLP_JSON_H
#define OTELI_OTLP_JSON_H

#include "common/base/internal_api.h"
#include "exporters/json/json_text.h"

struct oteli_otlp_json {
    struct oteli_text text;
    struct oteli_json_group {
        const otel_scope_view *scope;
        size_t first, last; /* of its spans; `next` leads from one to the other */
    } * groups;
    size_t group_count, group_room;
    struct oteli_json_span {
        size_t next; /* of the same scope; SIZE_MAX: none */
        size_t end;  /* of its text in `parts` */
    } * spans;       /* by number, counted from the first */
    size_t span_room;
    struct oteli_text parts; /* the spans of a request, before they are sorted by scope */
    size_t recent;           /* the longest request of late; it fades */
};

OTELI_LENT void oteli_otlp_json_fini(struct oteli_otlp_json *encoder);

/* Append the batch to `text`, without a newline. False: no memory, and what was appended is
 * of no use. */
bool oteli_otlp_json_add(struct oteli_otlp_json *encoder, const otel_batch *batch);

/* Make `text` anew, of the spans from number `first` on: of as many as a request of `max_bytes` may
 * hold, and of `max_spans` at most. Gives how many; 0: the first alone is too much, or there is no
 * memory, and text.failed. Memory that one huge request took is given back some time after it. */
OTELI_LENT size_t oteli_otlp_json_request(struct oteli_otlp_json *encoder, const otel_batch *batch,
                                          size_t first, size_t max_spans, size_t max_bytes);

#endif

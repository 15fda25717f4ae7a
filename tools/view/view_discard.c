/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_discard.c - count what comes and keep nothing of it.
 *
 * Runs on otel-view's only thread; owns nothing. */
#include "tools/view/view_discard.h"

#include "common/clock/time_units.h"
#include "exporters/otlp/protocol/protobuf_reader.h"
#include <inttypes.h>

/* From the request down to its spans: ResourceSpans, ScopeSpans, Span. The numbers of their fields
 * in opentelemetry-proto's trace_service.proto and trace.proto. */
enum { LEVELS = 3 };
static const uint32_t field_numbers[LEVELS] = {1, 2, 2};

/* The spans in the bytes. False: they end inside a field, or have one that cannot be. */
static bool count_spans(const uint8_t *bytes, size_t length, uint64_t *spans)
{
    struct oteli_protobuf_reader levels[LEVELS] = {{.at = bytes, .end = bytes + length}};
    struct oteli_field field;
    unsigned depth = 0;
    for (;;) {
        struct oteli_protobuf_reader *reader = &levels[depth];
        const bool is_there = oteli_protobuf_next(reader, &field);
        if (reader->fault != OTELI_PROTOBUF_GOOD)
            return false;
        if (!is_there && depth == 0)
            return true;
        if (!is_there)
            depth--;
        else if (field.number != field_numbers[depth] || field.wire_type != OTELI_WIRE_BYTES)
            continue;
        else if (depth == LEVELS - 1)
            ++*spans;
        else
            levels[++depth] = oteli_protobuf_into(&field);
    }
}

static void add(struct view_counts *counts, uint64_t spans, size_t length)
{
    counts->requests++;
    counts->spans += spans;
    counts->bytes += length;
}

bool view_discard_count(struct view_discard *discard, const uint8_t *bytes, size_t length,
                        uint64_t now_ns)
{
    uint64_t spans = 0;
    if (!count_spans(bytes, length, &spans))
        return false;
    if (discard->line.requests == 0 && now_ns - discard->line_ns > OTELI_NS_PER_S)
        discard->line_ns = now_ns;
    add(&discard->all, spans, length);
    add(&discard->line, spans, length);
    return true;
}

bool view_discard_print(struct view_discard *discard, FILE *out, uint64_t now_ns, bool at_end)
{
    const struct view_counts *line = &discard->line;
    if (line->requests == 0 || (!at_end && now_ns - discard->line_ns < OTELI_NS_PER_S))
        return true;
    const bool is_printed =
        fprintf(out, "%" PRIu64 " spans in %" PRIu64 " requests of %" PRIu64 " bytes\n",
                line->spans, line->requests, line->bytes) > 0;
    discard->line = (struct view_counts){0};
    discard->line_ns = now_ns;
    return is_printed && fflush(out) == 0;
}

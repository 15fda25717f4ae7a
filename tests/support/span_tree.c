/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/span_tree.c - see span_tree.h. For tens of spans: it compares each with
 * each. */
#include "tests/support/span_tree.h"

#include <stdio.h>
#include <string.h>

struct writer {
    const otel_memory *memory;
    char *at;
    size_t left;
};

static void put(struct writer *writer, const char *text, size_t length)
{
    const int written = snprintf(writer->at, writer->left, "%.*s", (int)length, text);
    const size_t moved = (size_t)written < writer->left ? (size_t)written : writer->left - 1;
    writer->at += moved;
    writer->left -= moved;
}

static bool is_child(const otel_span_view *span, const otel_span_view *parent)
{
    return span->parent_span_id != NULL && memcmp(span->trace_id, parent->trace_id, 16) == 0 &&
           memcmp(span->parent_span_id, parent->span_id, 8) == 0;
}

static bool has_parent(const struct writer *writer, const otel_span_view *span)
{
    otel_span_view parent;
    for (size_t i = 0; otel_memory_span(writer->memory, i, &parent); i++)
        if (is_child(span, &parent))
            return true;
    return false;
}

static void put_span(struct writer *writer, const otel_span_view *span)
{
    put(writer, span->name.data, span->name.length);
    size_t children = 0;
    otel_span_view child;
    for (size_t i = 0; otel_memory_span(writer->memory, i, &child); i++) {
        if (!is_child(&child, span))
            continue;
        put(writer, children++ == 0 ? "(" : " ", 1);
        put_span(writer, &child);
    }
    if (children != 0)
        put(writer, ")", 1);
}

void span_tree_text(const otel_memory *memory, char *text, size_t size)
{
    struct writer writer = {memory, text, size};
    text[0] = '\0';
    otel_span_view span;
    for (size_t i = 0; otel_memory_span(memory, i, &span); i++) {
        if (has_parent(&writer, &span))
            continue;
        if (writer.at != text)
            put(&writer, " ", 1);
        if (span.parent_span_id != NULL)
            put(&writer, "?", 1);
        put_span(&writer, &span);
    }
}

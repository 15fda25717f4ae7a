/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/resolved_sample.c - the contracts are in resolved_sample.h. */
#include "tests/support/resolved_sample.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

void made_sample_begin(struct made_sample *made)
{
    memset(made, 0, sizeof *made);
    made->sample.thread = getpid();
    made->sample.periods = 1;
    made->resolved.sample = &made->sample;
}

void made_sample_frame(struct made_sample *made, const void *address)
{
    made->resolved.frames[made->resolved.depth++] = (uintptr_t)address;
}

static void append(struct oteli_label *label, const char *text)
{
    const size_t length = strlen(text) + 1;
    if (length > sizeof label->text - label->text_length)
        return;
    memcpy(label->text + label->text_length, text, length);
    label->text_length = (uint16_t)(label->text_length + length);
}

void made_sample_label(struct made_sample *made, ...)
{
    struct oteli_label *label = &made->resolved.labels[made->resolved.label_count++];
    va_list texts;
    va_start(texts, made);
    for (const char *text; (text = va_arg(texts, const char *)) != NULL;)
        append(label, text);
    va_end(texts);
}

static void put_id(uint8_t id[8], uint64_t number)
{
    for (unsigned i = 0; i < 8; i++)
        id[i] = (uint8_t)(number >> (56 - 8 * i));
}

void made_sample_span(struct made_sample *made, uint64_t trace, uint64_t span, uint64_t root)
{
    made->resolved.has_span = true;
    put_id(made->resolved.span.trace_id + 8, trace);
    put_id(made->resolved.span.span_id, span);
    put_id(made->resolved.span.root_id, root);
}

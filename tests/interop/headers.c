/* SPDX-License-Identifier: Apache-2.0 */
/* tests/interop/headers.c - inject and extract what the other side of a test asks for.
 *
 *     inject FORMAT TRACE SPAN FLAGS TRACESTATE [NAME VALUE METADATA]...
 *         -> [NAME VALUE]...            the headers
 *     extract FORMAT [NAME VALUE]...
 *         -> TRACE SPAN FLAGS TRACESTATE [NAME VALUE METADATA]...
 *
 * One line each, words with a blank between them, every word but the first two in hexadecimal;
 * `-` is an empty one. TRACE is 16 bytes, SPAN 8, FLAGS 1; the rest is text, baggage at the
 * end. */
#include <otel/baggage.h>
#include <otel/otel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORDS = 1024 };

struct headers {
    char **words; /* name, value, name, … */
    size_t count;
};

static int digit(char c)
{
    return c >= 'a' ? c - 'a' + 10 : c - '0';
}

/* In place, with a final NUL. Returns the length. */
static size_t decode(char *word)
{
    const size_t length = word[0] == '-' ? 0 : strlen(word) / 2;
    for (size_t i = 0; i < length; i++)
        word[i] = (char)(digit(word[2 * i]) << 4 | digit(word[2 * i + 1]));
    word[length] = '\0';
    return length;
}

static void put(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    if (length == 0)
        putchar('-');
    for (size_t i = 0; i < length; i++)
        printf("%02x", at[i]);
    putchar(' ');
}

static void put_text(const char *text)
{
    put(text, text != NULL ? strlen(text) : 0);
}

static void set_header(void *carrier, const char *name, const char *value, size_t length)
{
    (void)carrier;
    put_text(name);
    put(value, length);
}

static const char *get_header(void *carrier, const char *name, size_t index, size_t *length)
{
    const struct headers *headers = carrier;
    for (size_t i = 0; i + 1 < headers->count; i += 2)
        if (strcasecmp(headers->words[i], name) == 0 && index-- == 0) {
            *length = strlen(headers->words[i + 1]);
            return headers->words[i + 1];
        }
    return NULL;
}

static void list_headers(void *carrier, otel_visit_header *visit, void *state)
{
    const struct headers *headers = carrier;
    for (size_t i = 0; i + 1 < headers->count; i += 2)
        visit(state, headers->words[i], strlen(headers->words[i]));
}

static bool put_entry(void *state, const char *name, const char *value, const char *metadata)
{
    (void)state;
    put_text(name);
    put_text(value);
    put_text(metadata);
    return true;
}

static void inject(const otel_propagator *propagator, char **words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        decode(words[i]);
    otel_span_context span =
        otel_span_context_make((const uint8_t *)words[0], (const uint8_t *)words[1],
                               (uint8_t)words[2][0], false, words[3]);
    otel_baggage baggage = otel_baggage_none();
    for (size_t i = 4; i + 2 < count; i += 3)
        baggage = otel_baggage_set(baggage, words[i], words[i + 1],
                                   words[i + 2][0] != '\0' ? words[i + 2] : NULL);
    otel_context context = {.baggage = baggage.opaque};
    context.span = otel_span_wrap(&span);
    otel_propagator_inject(propagator, &context, set_header, NULL);
}

static void extract(const otel_propagator *propagator, char **words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        decode(words[i]);
    struct headers headers = {words, count};
    const otel_carrier_reader reader = {get_header, list_headers, &headers};
    const otel_context empty = {0};
    const otel_context context = otel_propagator_extract_from(propagator, &empty, &reader);
    const otel_span_context span = otel_span_get_context(context.span);
    char tracestate[OTEL_TRACESTATE_SIZE];
    otel_span_context_tracestate(&span, tracestate, sizeof tracestate);
    put(span.trace_id, sizeof span.trace_id);
    put(span.span_id, sizeof span.span_id);
    put(&span.flags, 1);
    put_text(tracestate);
    otel_baggage_each(otel_context_baggage(&context), put_entry, NULL);
}

static bool answer(char *line)
{
    char *words[WORDS];
    size_t count = 0;
    char *rest = line;
    for (char *word; count < WORDS && (word = strtok_r(rest, " \n", &rest)) != NULL;)
        words[count++] = word;
    const otel_propagator *propagator = count >= 2 ? otel_propagator_named(words[1]) : NULL;
    if (propagator == NULL)
        return false;
    if (strcmp(words[0], "inject") == 0 && count >= 6)
        inject(propagator, words + 2, count - 2);
    else if (strcmp(words[0], "extract") == 0)
        extract(propagator, words + 2, count - 2);
    else
        return false;
    putchar('\n');
    return true;
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;
    bool good = true;
    while (good && getline(&line, &size, stdin) > 0)
        good = answer(line);
    free(line);
    return good && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

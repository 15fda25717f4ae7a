/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/watcher.c - see watcher.h. */
#include "tests/support/watcher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct watcher first;
struct watcher second;
otel_span seen;

static char journal[1024];

static void note(const struct watcher *watcher, char what, otel_slice name)
{
    const size_t length = strlen(journal);
    snprintf(journal + length, sizeof journal - length, "%c%s%.*s ", what, watcher->name,
             (int)name.length, name.data);
}

static void on_start(void *state, otel_span span, const otel_context *parent)
{
    struct watcher *watcher = state;
    note(watcher, '+', (otel_slice){"", 0});
    seen = span;
    if (watcher->in_start != NULL)
        watcher->in_start(span, parent);
}

static void on_ending(void *state, otel_span span, uint64_t end_ns)
{
    struct watcher *watcher = state;
    note(watcher, '!', (otel_slice){"", 0});
    if (watcher->in_ending != NULL)
        watcher->in_ending(span, end_ns);
}

static void on_end(void *state, const otel_span_view *span)
{
    struct watcher *watcher = state;
    note(watcher, '-', span->name);
    if (watcher->in_end != NULL)
        watcher->in_end(span);
}

static otel_status on_flush(void *state, int64_t timeout_ms)
{
    struct watcher *watcher = state;
    watcher->flushes++;
    watcher->flush_timeout_ms = timeout_ms;
    return watcher->flush_status;
}

static void on_free(void *state)
{
    ((struct watcher *)state)->frees++;
}

otel_processor watcher_processor(struct watcher *watcher)
{
    return OTEL_PROCESSOR(.name = "watcher", .state = watcher, .on_start = on_start,
                          .on_ending = on_ending, .on_end = on_end, .flush = on_flush,
                          .free = on_free);
}

int watcher_setup(void **state)
{
    first = (struct watcher){.name = ""};
    second = (struct watcher){.name = "2"};
    journal[0] = '\0';
    return traced_setup_without_sdk(state);
}

void watcher_start(unsigned count, otel_sdk_options *options)
{
    const otel_processor processors[] = {watcher_processor(&first), watcher_processor(&second)};
    options->processors = processors;
    options->processor_count = count;
    traced_start(options);
}

const char *watcher_journal(void)
{
    static char taken[sizeof journal];
    memcpy(taken, journal, sizeof taken);
    journal[0] = '\0';
    return taken;
}

otel_span watcher_enter(const char *name)
{
    return otel_span_enter(traced.tracer, name, NULL);
}

otel_span watcher_begin(const char *name)
{
    return otel_span_start(traced.tracer, name, NULL);
}

bool watcher_has_attribute(const otel_span_view *span, const char *key)
{
    otel_slice rest = span->attributes;
    otel_attribute_view attribute;
    while (otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute))
        if (attribute.key.length == strlen(key) &&
            memcmp(attribute.key.data, key, attribute.key.length) == 0)
            return true;
    return false;
}

bool watcher_exported(size_t index, const char *key)
{
    otel_span_view span;
    assert_int_not_equal(otel_flush(60000), OTEL_ERROR_TIMEOUT);
    assert_true(otel_memory_span(traced.memory, index, &span));
    return watcher_has_attribute(&span, key);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/watcher.h - span processors that write down what they are told, for tests that
 * run the real SDK (support/traced.h).
 *
 *     watcher_start(1, &(otel_sdk_options){0});
 *     otel_span_end(watcher_enter("a"));
 *     assert_string_equal(watcher_journal(), "+ ! -a ");    start, ending, end of "a"
 *
 * Each case begins with watchers that have not been told anything.
 *
 * Threads:  the test's main thread, and one other at a time. */
#ifndef OTELI_TESTS_WATCHER_H
#define OTELI_TESTS_WATCHER_H

#include "tests/support/traced.h"

struct watcher {
    const char *name; /* in the journal, behind the sign */

    /* what it does besides, or NULL */
    void (*in_start)(otel_span span, const otel_context *parent);
    void (*in_ending)(otel_span span, uint64_t end_ns);
    void (*in_end)(const otel_span_view *span);
    otel_status flush_status;

    /* what it remembers */
    unsigned flushes;
    int64_t flush_timeout_ms;
    unsigned frees;
};
extern struct watcher first;  /* "" */
extern struct watcher second; /* "2" */
extern otel_span seen;        /* the newest span that has started */

otel_processor watcher_processor(struct watcher *watcher);

/* Start the SDK with the memory exporter, and one watcher or two. */
void watcher_start(unsigned count, otel_sdk_options *options);

/* What was written since the last time that this was asked. */
const char *watcher_journal(void);

otel_span watcher_enter(const char *name);
otel_span watcher_begin(const char *name); /* detached */

/* Whether a span, or the nth that was exported, has an attribute of this key. */
bool watcher_has_attribute(const otel_span_view *span, const char *key);
bool watcher_exported(size_t index, const char *key);

int watcher_setup(void **state);

#endif

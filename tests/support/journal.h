/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/journal.h - spans whose every call is written down.
 *
 * Each function calls otel-c and notes what it asked for, in words of its own: one line of
 * JSON a span, in which texts are bytes (a byte above 0x7E is \u00XX). What must arrive is
 * for the reader to work out (integration/journal.py); nothing of otel-c's encoding is used.
 *
 * Threads:  a journaled span belongs to one thread at a time, as the one who writes it. */
#ifndef OTELI_TESTS_JOURNAL_H
#define OTELI_TESTS_JOURNAL_H

#include <otel/otel.h>
#include <stdio.h>

struct journal_span {
    otel_span span;
    otel_span_context context;
    const char *tracestate; /* "" or static */
    bool is_local;          /* entered */
    bool is_sampled;
    FILE *text; /* in memory, until the end: */
    char *data;
    size_t length;
    size_t number_of_calls;
};

/* Whose child a span is. */
struct journal_parent {
    otel_context context;
    otel_span_context ids;
    const char *tracestate;
    bool is_local; /* an entered span of this thread */
    bool is_sampled;
};

struct journal_start {
    size_t tracer; /* for the reader: its place in the list of tracers */
    otel_tracer *handle;
    const char *name;
    bool is_local;
    const struct journal_parent *parent; /* NULL: none */
    bool parent_is_current;              /* and need not be named */
    bool says_root;                      /* though another span is current */
    otel_span_options options;           /* parent and root are filled in */
};

void journal_begin(struct journal_span *span, const struct journal_start *start);
void journal_set(struct journal_span *span, const char *key, otel_value value);
void journal_event(struct journal_span *span, const char *name, uint64_t time_ns,
                   const otel_attribute *attributes, size_t count);
void journal_exception(struct journal_span *span, const char *type, const char *message,
                       const char *stack, const otel_attribute *attributes, size_t count);
void journal_link(struct journal_span *span, const otel_link *link, const char *tracestate);
void journal_status(struct journal_span *span, otel_span_status status, const char *description);
void journal_rename(struct journal_span *span, const char *name);

/* End it (at 0: now) and write its line. */
void journal_end(struct journal_span *span, uint64_t end_ns, FILE *file);

/* Attributes as JSON, for what is no span: tracers and the resource. */
void journal_attributes(FILE *file, const otel_attribute *attributes, size_t count);
void journal_string(FILE *file, const char *string);

#endif

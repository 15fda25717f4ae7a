/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/fake_exporter.h - an exporter that does what it is told and remembers.
 *
 *     struct fake_exporter fake = {.reject = 1};
 *     const otel_exporter exporter = fake_exporter(&fake);
 *     ...
 *     assert_string_equal(fake.text, "a b|c|");     two batches: a and b, then c
 *     assert_string_equal(fake.calls, "EPooE");     an export, prepare, two polls, an export
 *
 * Threads:  those of an exporter (otel/exporter.h). What it remembers is read while
 *           nothing is exported; `wakes` and `frees` at any time. */
#ifndef OTELI_TESTS_FAKE_EXPORTER_H
#define OTELI_TESTS_FAKE_EXPORTER_H

#include <otel/exporter.h>

enum { FAKE_BATCHES = 512, FAKE_TEXT = 4096, FAKE_CALLS = 1024 };

struct fake_exporter {
    /* what it is told; zero: it delivers everything at once */
    const char *name;
    uint64_t pending;         /* so many polls of a batch answer "not yet" */
    bool ignores_abandon;     /* and goes on to do so when there is no time left */
    uint64_t poll_takes_ns;   /* of the fake clock */
    uint64_t export_takes_ns; /* likewise */
    size_t reject;            /* spans of each batch */
    size_t drop;              /* likewise, for drop_reason */
    otel_drop_reason drop_reason;
    otel_status flush_status;
    void (*during)(void *context, otel_export *call); /* called in the middle of an export */
    void *context;
    size_t spool; /* spans of each batch */
    bool attends; /* and answers this: */
    int attend_ms;
    bool has_descriptor; /* this one, and this time */
    int descriptor_fd;
    int descriptor_timeout_ms;

    /* what it remembers */
    size_t batches;
    size_t sizes[FAKE_BATCHES]; /* of the first of them */
    size_t spans;
    size_t largest;       /* batch */
    char text[FAKE_TEXT]; /* the names of the first spans */
    size_t text_length;
    uint64_t deadline_ns; /* of the newest call */
    uint64_t polls;
    uint64_t polls_left;
    uint64_t abandoned;
    uint64_t flushes;
    int64_t flush_timeout_ms;
    char calls[FAKE_CALLS]; /* E export, P prepare, o poll, A poll with abandon, F flush,
                               T attend */
    size_t call_count;
    size_t waits; /* polls that were allowed to wait */
    size_t prepares;
    const otel_batch *prepared; /* the newest that was */
    size_t prepared_size;
    char prepared_text[FAKE_TEXT]; /* its names */
    size_t overlaps;               /* exports that began before the last was done */
    size_t unprepared;             /* that were not of the batch that had been prepared */
    bool is_pending;
    bool is_prepared;
    uint32_t attended; /* atomic */
    uint32_t wakes;    /* atomic */
    uint32_t frees;    /* atomic */
};

/* The exporter; `fake` must stay until it is freed. */
otel_exporter fake_exporter(struct fake_exporter *fake);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/sampling.h - questions for samplers, and what they say of themselves. One thread
 * at a time; the texts live until the next call. */
#ifndef OTELI_TESTS_SAMPLING_H
#define OTELI_TESTS_SAMPLING_H

#include "common/text/text.h"
#include "tests/support/leaks.h"

#include <otel/sampler.h>
#include <otel/sdk.h>
#include <string.h>

enum { NO_PARENT = 0, LOCAL = 1, REMOTE = 2, SAMPLED = 4, RANDOM = 8 };

struct question {
    otel_sampling_query query;
    otel_span_context parent;
    uint8_t trace_id[16];
};

/* A span "GET /" below such a parent, with a trace id that ends in the 56 bits of `low`. */
static inline void ask(struct question *question, unsigned parent, const char *tracestate,
                       uint64_t low)
{
    memset(question, 0, sizeof *question);
    memset(question->trace_id, 0xab, sizeof question->trace_id);
    for (unsigned i = 15; i >= 9; i--, low >>= 8)
        question->trace_id[i] = (uint8_t)low;
    if ((parent & (LOCAL | REMOTE)) != 0) {
        memcpy(question->parent.trace_id, question->trace_id, 16);
        question->parent.span_id[0] = 7;
        question->parent.is_remote = (parent & REMOTE) != 0;
        question->parent.flags = (uint8_t)(((parent & SAMPLED) != 0 ? OTEL_TRACE_FLAG_SAMPLED : 0) |
                                           ((parent & RANDOM) != 0 ? OTEL_TRACE_FLAG_RANDOM : 0));
    }
    question->query.parent = &question->parent;
    question->query.parent_tracestate = tracestate;
    question->query.trace_id = question->trace_id;
    question->query.trace_id_is_random = (parent & RANDOM) != 0;
    question->query.name = oteli_slice_of("GET /");
    question->query.kind = OTEL_SPAN_KIND_SERVER;
}

static inline otel_sampling_result answer_of(const otel_sampler *sampler,
                                             const struct question *question)
{
    otel_sampling_result result;
    memset(&result, 0, sizeof result);
    sampler->sample(sampler->state, &question->query, &result);
    return result;
}

static inline const char *description_of(const otel_sampler *sampler)
{
    static char text[1024];
    sampler->describe(sampler->state, text, sizeof text);
    return text;
}

static inline void free_sampler(otel_sampler *sampler)
{
    if (sampler->free != NULL)
        sampler->free(sampler->state);
}

/* A sampler that counts how often it was freed, and says RECORD_ONLY. */
struct counted {
    unsigned freed;
    unsigned asked;
};

static inline void sample_counted(const void *state, const otel_sampling_query *query,
                                  otel_sampling_result *result)
{
    (void)query;
    ((struct counted *)(uintptr_t)state)->asked++;
    result->decision = OTEL_SAMPLING_RECORD_ONLY;
}

static inline void free_counted(void *state)
{
    ((struct counted *)state)->freed++;
}

static inline otel_sampler counted_sampler(struct counted *counted)
{
    return OTEL_SAMPLER(.state = counted, .sample = sample_counted, .free = free_counted);
}

/* Counts the lines of the log. */
struct lines {
    unsigned count;
    char last[512];
};

static inline void keep_line(void *state, otel_log_level level, const char *message)
{
    (void)level;
    struct lines *lines = state;
    lines->count++;
    lines->last[0] = '\0';
    strncat(lines->last, message, sizeof lines->last - 1);
}

/* A fixture: a sampler that is freed, the log's lines, and nothing that stays allocated. */
static struct {
    otel_sampler sampler;
    struct lines lines;
} sampling;

static inline int sampling_begin(void **state)
{
    (void)state;
    memset(&sampling, 0, sizeof sampling);
    oteli_leaks_begin();
    otel_log_set_handler(keep_line, &sampling.lines);
    return 0;
}

static inline int sampling_end(void **state)
{
    (void)state;
    free_sampler(&sampling.sampler);
    otel_log_set_handler(NULL, NULL);
    oteli_leaks_check();
    return 0;
}

/* Where the sampler that was there before is to be replaced. */
static inline otel_sampler *next_sampler(void)
{
    free_sampler(&sampling.sampler);
    memset(&sampling.sampler, 0, sizeof sampling.sampler);
    return &sampling.sampler;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* otel/sampler.h - decide at its start whether a span is recorded: samplers of your own, and
 * those of the specification.
 *
 * A sampler is a struct of functions, for otel_sdk_options.sampler. Of the samplers that
 * OTEL_TRACES_SAMPLER names, those that decide by the kind of a span's parent alone cost it
 * nothing, and parentbased_traceidratio only root spans; any other is asked for every span, on the
 * thread that starts it.
 *
 * Threads:  sample: any thread, concurrently, in the middle of starting a span: spans that it
 *           starts itself are refused (OTEL_DROP_REENTRANT). Everything else start/stop only.
 * Signals:  a span that a signal handler starts calls `sample` in that handler; constructors never
 *           in a handler: they allocate.
 * Errors:   constructors answer otel_status, and adopt the samplers they are given, also when
 *           they fail.
 * Source:   OpenTelemetry specification, trace/sdk.md "Sampling", trace/tracestate-handling.md
 *           and trace/tracestate-probability-sampling.md. */
#ifndef OTEL_SAMPLER_H
#define OTEL_SAMPLER_H

#include <otel/exporter.h>
#include <otel/tracestate.h>

OTEL_BEGIN_DECLS

typedef enum otel_sampling_decision {
    OTEL_SAMPLING_DROP = 0,
    OTEL_SAMPLING_RECORD_ONLY = 1, /* processors see it, exporters do not */
    OTEL_SAMPLING_RECORD_AND_SAMPLE = 2
} otel_sampling_decision;

/* The question: a span that is about to start. Everything is borrowed for the call. */
typedef struct otel_sampling_query {
    const otel_context *context;     /* the parent, in its context */
    const otel_span_context *parent; /* of its span; not valid: a root */
    const char *parent_tracestate;   /* its text, "" if none */
    const uint8_t *trace_id;         /* of the new span: 16 bytes */
    bool trace_id_is_random;         /* W3C level 2: its low 56 bits are */
    otel_span_kind kind;
    otel_slice name;
    const otel_attribute *attributes; /* those given at the start */
    size_t attribute_count;
    const otel_link *links;
    size_t link_count;
    uint64_t reserved[2]; /* zero */
} otel_sampling_query;

enum { OTEL_SAMPLING_ROOM = 16 };

/* The answer, which is DROP and nothing else before the call. */
typedef struct otel_sampling_result {
    otel_sampling_decision decision;
    const otel_attribute *attributes; /* more of them for the span; they must live until it has
                                         been started: static, or of the sampler, or in `room` */
    size_t attribute_count;
    bool has_tracestate; /* false, or not valid: the parent's goes on; "": none does */
    char tracestate[OTEL_TRACESTATE_SIZE];
    otel_attribute room[OTEL_SAMPLING_ROOM]; /* for attributes that are made for this span; what
                                                stands in it before the call means nothing */
    uint64_t reserved[2];                    /* zero */
} otel_sampling_result;

typedef struct otel_sampler {
    size_t size; /* sizeof(otel_sampler) */
    void *state;
    void (*sample)(const void *state, const otel_sampling_query *query,
                   otel_sampling_result *result);
    /* GetDescription: write up to `size` bytes with a final NUL, return the whole length. */
    size_t (*describe)(const void *state, char *text, size_t size);
    void (*free)(void *state); /* the last call, at otel_shutdown; or NULL */
    const void *reserved[2];   /* NULL */
} otel_sampler;

#define OTEL_SAMPLER(...) ((otel_sampler){.size = sizeof(otel_sampler), __VA_ARGS__})

/* AlwaysOnSampler, AlwaysOffSampler: every span, or none. */
OTEL_API otel_sampler otel_sampler_always_on(void);
OTEL_API otel_sampler otel_sampler_always_off(void);

/* TraceIdRatioBased: this share of the traces, as OTEL_TRACES_SAMPLER=traceidratio. `ratio` from
 * 0 to 1. */
OTEL_API OTEL_MUST_USE otel_status otel_sampler_trace_id_ratio(double ratio, otel_sampler *sampler);

/* ParentBased: as the parent was sampled; `root` decides for roots. Samplers that are zeroed have
 * the specification's defaults, but for the root, which has none: without it, or with NULL, it is
 * OTEL_ERROR_INVALID_ARGUMENT. */
typedef struct otel_parent_based_options {
    size_t size;       /* sizeof(otel_parent_based_options) */
    otel_sampler root; /* must be given */
    otel_sampler remote_parent_sampled;
    otel_sampler remote_parent_not_sampled;
    otel_sampler local_parent_sampled;
    otel_sampler local_parent_not_sampled;
} otel_parent_based_options;
OTEL_API OTEL_MUST_USE otel_status
otel_sampler_parent_based(const otel_parent_based_options *options, otel_sampler *sampler);

/* AlwaysRecord: what `root` drops is RECORD_ONLY. */
OTEL_API OTEL_MUST_USE otel_status otel_sampler_always_record(otel_sampler root,
                                                              otel_sampler *sampler);

/* ProbabilitySampler: keeps what has R >= T, writes ot=th, honours ot=rv. */
OTEL_API OTEL_MUST_USE otel_status otel_sampler_probability(double ratio, otel_sampler *sampler);

/* Composable samplers say a threshold, and one CompositeSampler at the top compares it. Never
 * sampling and nothing else is what stands here before the call. */
enum { OTEL_NEVER_SAMPLE = -1 };
typedef struct otel_sampling_intent {
    int64_t threshold;                /* 0 (all) to 2^56 - 1, or OTEL_NEVER_SAMPLE */
    bool threshold_is_reliable;       /* may be written as ot=th */
    const otel_attribute *attributes; /* of the span if it is sampled; as in the result */
    size_t attribute_count;
    otel_attribute *room; /* OTEL_SAMPLING_ROOM of them, as in the result */

    /* Change the tracestate of the parent in place, once the decision is known, or NULL. Its
     * member `ot` is put back as it was. */
    void (*edit_tracestate)(const void *state, const otel_sampling_query *query,
                            otel_sampling_decision decision, char tracestate[OTEL_TRACESTATE_SIZE]);
    const void *edit_state;
    uint64_t reserved[2]; /* zero */
} otel_sampling_intent;

typedef struct otel_composable {
    size_t size; /* sizeof(otel_composable) */
    void *state;
    void (*intend)(const void *state, const otel_sampling_query *query,
                   otel_sampling_intent *intent);
    size_t (*describe)(const void *state, char *text, size_t size);
    void (*free)(void *state);
    const void *reserved[2]; /* NULL */
} otel_composable;

#define OTEL_COMPOSABLE(...) ((otel_composable){.size = sizeof(otel_composable), __VA_ARGS__})

/* ComposableAlwaysOn, ComposableAlwaysOff: every span, or none. */
OTEL_API otel_composable otel_composable_always_on(void);
OTEL_API otel_composable otel_composable_always_off(void);

/* ComposableProbability: samples this share of the traces, `ratio` from 0 to 1. */
OTEL_API OTEL_MUST_USE otel_status otel_composable_probability(double ratio,
                                                               otel_composable *composable);

/* ComposableParentThreshold: the threshold of the parent; for spans without one `root` decides. */
OTEL_API OTEL_MUST_USE otel_status otel_composable_parent_threshold(otel_composable root,
                                                                    otel_composable *composable);

/* ComposableAnnotating: adds attributes to what `inner` samples; they are copied. With those that
 * `inner` adds they are at most OTEL_SAMPLING_ROOM. OTEL_ERROR_INVALID_ARGUMENT: a value of values,
 * or a map. */
OTEL_API OTEL_MUST_USE otel_status otel_composable_annotating(otel_composable inner,
                                                              const otel_attribute *attributes,
                                                              size_t count,
                                                              otel_composable *composable);

/* ComposableRuleBased: the first rule that matches decides; none: the span is not sampled. A rule
 * matches when all its conditions do; what is NULL or zero is no condition. Values that are not
 * text are compared by their text ("404", "true", "0.5"), and of an array one element has to match.
 * In patterns `?` stands for one character and `*` for any number of them. Strings are copied,
 * samplers adopted. */
enum { OTEL_RULE_KIND_ANY = 0 };
enum { OTEL_RULE_PARENT_NONE = 1, OTEL_RULE_PARENT_LOCAL = 2, OTEL_RULE_PARENT_REMOTE = 4 };
typedef struct otel_sampling_rule {
    const char *name_pattern;  /* of the span's name */
    const char *attribute_key; /* among those given at the start: it is there, and is … */
    const char *const *attribute_values; /* … one of these, if there are any … */
    size_t attribute_value_count;
    const char *const *attribute_patterns; /* … or like one of these */
    size_t attribute_pattern_count;
    unsigned kinds;   /* 1 << OTEL_SPAN_KIND_…, several or-ed; 0: any */
    unsigned parents; /* OTEL_RULE_PARENT_… or-ed; 0: any */
    bool (*predicate)(void *state, const otel_sampling_query *query); /* or NULL */
    void *predicate_state;
    otel_composable sampler;

    /* A second attribute, which is like one of the first, if there are any, and like none of
     * the second. */
    const char *pattern_key;
    const char *const *included;
    size_t included_count;
    const char *const *excluded;
    size_t excluded_count;
    const void *reserved[4]; /* NULL */
} otel_sampling_rule;
OTEL_API OTEL_MUST_USE otel_status otel_composable_rule_based(const otel_sampling_rule *rules,
                                                              size_t count,
                                                              otel_composable *composable);

/* CompositeSampler: a sampler made of a composable one. */
OTEL_API OTEL_MUST_USE otel_status otel_sampler_composite(otel_composable root,
                                                          otel_sampler *sampler);

OTEL_END_DECLS
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* otel/profiler.h - a sampling profiler inside the program: where the processor time of all of its
 * threads goes, and for which span.
 *
 *     otel_profiler *profiler;
 *     otel_profiler_options options = {
 *         .size = sizeof options,
 *         .exporter = otel_pprof_file_exporter("/var/tmp/profiles", OTEL_PPROF_OTEL)};
 *     if (otel_profiler_start(&options, &profiler) == OTEL_OK) {
 *         ...
 *         otel_profiler_stop(profiler, 1000);
 *     }
 *
 * or, without code, OTEL_C_PROFILER=on and otel_start. It is a library of its own, otel-profiling.
 *
 * Samples come from the kernel's perf events where it allows that, and otherwise from a timer of
 * each thread's processor time with a signal; otel_profiler_get_stats says which it is, and why.
 * Only time on a processor is seen: no sleeping and no waiting. Time in system calls is left out by
 * perf events; by the signal it counts for the function that made the call. Names of functions are
 * those of symbol tables, or are found by the reader of the profile, who has the programs and their
 * debug information.
 *
 * Threads:  start and stop start/stop only; flush and stats any thread.
 * Signals:  never in a handler: they take locks and wait.
 * Errors:   otel_status; otel_profiler_stats counts the samples that are lost.
 * Fork:     a child has no profiler; it may start its own.
 * Source:   perf_event_open(2), timer_create(2); Rockset 2024 (otel/profile.h). */
#ifndef OTEL_PROFILER_H
#define OTEL_PROFILER_H

#include <otel/base.h>
#include <otel/otlp.h>

OTEL_BEGIN_DECLS

typedef enum otel_profiler_source {
    OTEL_PROFILER_AUTO = 0, /* perf, or where that is refused the signal */
    OTEL_PROFILER_PERF,
    OTEL_PROFILER_SIGNAL
} otel_profiler_source;

/* A profile of one interval: given to exporters, and valid during that call. */
typedef struct otel_profile otel_profile;

/* Where profiles go. Called on the profiler's own thread, never two calls at once; `wake` from any
 * thread, to have an export_profile that waits come back. */
typedef struct otel_profile_exporter {
    void *state; /* NULL: there is no exporter (no memory) */
    otel_status (*export_profile)(void *state, const otel_profile *profile, int64_t timeout_ms);
    void (*wake)(void *state);
    void (*free)(void *state);
    bool wants_names; /* of functions, which the profiler's thread looks up before each export; true
                         for OTLP, false for pprof files: change it before the start */
    const void *reserved[2]; /* NULL */
} otel_profile_exporter;

/* Say in export_profile that so many more samples of this profile are lost, although others have
 * arrived, and the answer will be OTEL_OK. After any other answer all of them count as dropped. */
OTEL_API void otel_profile_drop(const otel_profile *profile, uint64_t samples);

/* Take in what has been sampled meanwhile: for export_profile to call while it waits. Without it
 * rings are full after some 200 ms, and what comes then is lost (kernel_lost). Gives in how many ms
 * it wants to be called again. The profile stays as it is. */
OTEL_API int otel_profile_meanwhile(const otel_profile *profile);

typedef struct otel_profiler_options {
    size_t size; /* sizeof(otel_profiler_options) */
    otel_profiler_source source;
    uint32_t frequency_hz;          /* a second of a thread's processor time; 0: 99 */
    uint32_t export_interval_ms;    /* 0: 10,000 */
    uint32_t ring_kib;              /* of each processor, a power of two; 0: 128 for perf, 64 for
                                       the signal */
    int32_t stack_scan_bytes;       /* perf: how much of a stack is looked through for labels where
                                       its frames do not show them; OTEL_ZERO: nothing; 0: 4,096
                                       where half a ring holds 50 ms of that (128 KiB: to 250 Hz),
                                       1,024 elsewhere */
    int signal_number;              /* 0: SIGPROF */
    uint32_t max_links;             /* distinct spans in a profile; the others count for their
                                       local root, or for none; 0: 4,096 */
    otel_profile_exporter exporter; /* adopted, also when the start fails */
} otel_profiler_options;

typedef struct otel_profiler otel_profiler;

/* Start a profiler: one at a time in a process (OTEL_ERROR_ALREADY_STARTED).
 * OTEL_ERROR_UNSUPPORTED: not on this machine; _SYSTEM: neither source is allowed, or there is no
 * thread (the log says which); _NO_MEMORY also for an exporter without state. Threads that are
 * there already and those that come later are sampled, but for those that block the signal, where
 * that is the source. */
OTEL_API OTEL_MUST_USE otel_status otel_profiler_start(const otel_profiler_options *options,
                                                       otel_profiler **profiler);

/* Export what has been sampled up to now, within `timeout_ms`. OTEL_ERROR_TIMEOUT: it goes on, but
 * the caller does not wait any longer; _EXPORT_FAILED: it has not arrived; _NOT_STARTED: no
 * profiler, or a forked child with its parent's. */
OTEL_API OTEL_MUST_USE otel_status otel_profiler_flush(otel_profiler *profiler, int64_t timeout_ms);

/* Take no more samples, flush, and free the profiler. Returns within `timeout_ms` and 50 ms. An
 * export that is under way has half of that time, the last one what is left of it; then they are
 * woken. OTEL_ERROR_TIMEOUT: the exporter does not come back; it is freed when it does. NULL:
 * nothing happens; a forked child with its parent's: nothing either, and OTEL_ERROR_NOT_STARTED. */
OTEL_API otel_status otel_profiler_stop(otel_profiler *profiler, int64_t timeout_ms);

/* A profiler in words: what OTEL_C_PROFILER and its like say, as docs/CONFIGURATION.md has them.
 * What is NULL or 0 is their default. */
typedef struct otel_profiler_words {
    size_t size;        /* sizeof(otel_profiler_words) */
    const char *source; /* OTEL_C_PROFILER */
    uint32_t frequency_hz;
    const char *out;               /* "otlp", or a directory */
    const char *label_style;       /* OTEL_C_PPROF_LABEL_STYLE */
    const char *names;             /* OTEL_C_PROFILER_NAMES */
    const otel_otlp_options *otlp; /* where out is "otlp"; NULL: OTEL_EXPORTER_OTLP_* */
    int signal_number;             /* OTEL_C_PROFILER_SIGNAL */
} otel_profiler_words;

/* Start a profiler by words: otel_start does, and otel_shutdown stops this one first, in half of
 * its time. A static program in which nothing else refers to this library calls it itself.
 * Start/stop only. Errors as above, and OTEL_ERROR_INVALID_ARGUMENT for a source that there is not,
 * as "off". */
OTEL_API OTEL_MUST_USE otel_status otel_profiler_start_by_words(const otel_profiler_words *words);

/* The profiler that was started by words; NULL: none. Until otel_shutdown. Any thread. */
OTEL_API otel_profiler *otel_profiler_of_environment(void);

/* Counted since the start; each sample is counted once in each of the two sums:
 *     samples = by_chain + by_scan + by_thread + unlabelled + no_history
 *     samples = exported + dropped + what is waiting for the next export */
typedef struct otel_profiler_stats {
    size_t size;         /* sizeof(otel_profiler_stats), set by the caller */
    uint64_t samples;    /* that were read; each stands for one period or more */
    uint64_t by_chain;   /* its label was on the chain of frames */
    uint64_t by_scan;    /* … found in the bytes of its stack */
    uint64_t by_thread;  /* … only a span, from what its thread publishes */
    uint64_t unlabelled; /* under no label */
    uint64_t no_history; /* under one that has been used again so often that nothing is known */
    uint64_t exported;
    uint64_t dropped;        /* no memory, or the exporter failed */
    uint64_t kernel_lost;    /* the ring or the buffer was full: never became samples */
    uint64_t missed_periods; /* of timers that are coarser than what was asked for; their time is
                                counted with the sample that follows */
    uint64_t links_over;     /* samples whose span was one above max_links */
    uint64_t labels_refused; /* all trampolines were in use */
    uint64_t labels_cut;     /* keys and values that did not fit */
    uint64_t profiles;       /* exported */
    otel_profiler_source source;
    int refused_errno;     /* of perf_event_open, where the source is the signal; 0: not tried */
    char why[120];         /* the same in words */
    uint64_t processor_ns; /* by the signal: processor time that all threads but the profiler's have
                              used. (samples + missed_periods + kernel_lost) periods of it were
                              seen; the rest is of threads that were too short, or block the
                              signal. By perf events: 0 */
} otel_profiler_stats;

/* Read the statistics of a profiler that has not been stopped. OTEL_ERROR_INVALID_ARGUMENT: a
 * pointer is NULL, or `stats` has no size; OTEL_ERROR_NOT_STARTED: a forked child with its
 * parent's profiler. Any thread. */
OTEL_API otel_status otel_profiler_get_stats(const otel_profiler *profiler,
                                             otel_profiler_stats *stats);

/* How labels are called in a pprof file (OTEL_C_PPROF_LABEL_STYLE). */
typedef enum otel_pprof_style {
    OTEL_PPROF_OTEL = 0, /* trace_id, span_id, local_root_span_id, http.route */
    OTEL_PPROF_DATADOG,  /* "span id", "local root span id" (numbers as text), "trace endpoint" */
    OTEL_PPROF_PYROSCOPE /* profile_id (the local root's span id), span_name */
} otel_pprof_style;

/* Make an exporter: each profile as a file, gzipped, in a directory that exists:
 * SERVICE-PID-NUMBER.pb.gz, complete from the moment it has that name. For `go tool pprof` and all
 * that reads its format. */
OTEL_API otel_profile_exporter otel_pprof_file_exporter(const char *directory,
                                                        otel_pprof_style style);

/* Encode a profile as pprof: the bytes of a file, for programs with I/O of their own. *bytes is
 * theirs, to free(). OTEL_ERROR_NO_MEMORY. */
OTEL_API OTEL_MUST_USE otel_status otel_profile_encode_pprof(const otel_profile *profile,
                                                             otel_pprof_style style, void **bytes,
                                                             size_t *length);

/* Make an exporter to an OTLP receiver that takes profiles: by HTTP to /v1development/profiles, or
 * gRPC. The signal is in development: it needs a receiver of OTLP 1.10 or newer, for instance
 * OpenTelemetry Collector 0.148 or newer with --feature-gates=service.profilesSupport. NULL: all
 * from OTEL_EXPORTER_OTLP_*. */
OTEL_API otel_profile_exporter otel_otlp_profile_exporter(const otel_otlp_options *options);

OTEL_END_DECLS
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profiler_options.c - what the options of a profiler come to, and errors in words.
 * Start/stop only. */
#include "profiling/profiler_inside.h"
#include "profiling/signal/signal_source.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

enum {
    DEFAULT_HZ = 99,
    MOST_HZ = 10000,
    DEFAULT_EXPORT_MS = 10000,
    PERF_RING_KIB = 128,
    SIGNAL_RING_KIB = 64,
    LEAST_RING_KIB = 4,
    MOST_RING_KIB = 1 << 20,
    WIDE_SCAN_BYTES = 4096, /* where half a ring has room for WIDE_DRAIN_MS of that */
    NARROW_SCAN_BYTES = 1024,
    MOST_SCAN_BYTES = 65528, /* what perf_event_open takes */
    WIDE_DRAIN_MS = 50,
    DEFAULT_LINKS = 4096,
    SAMPLE_BYTES = 1024 /* without a copy of the stack */
};

uint64_t oteli_profiler_half_full_ns(const struct oteli_source_options *source)
{
    return source->ring_bytes / source->sample_bytes * source->period_ns / 2;
}

static uint32_t or_default(uint32_t given, uint32_t otherwise)
{
    return given != 0 ? given : otherwise;
}

static uint32_t scan_bytes(struct oteli_source_options source, int32_t given)
{
    if (given == OTEL_ZERO)
        return 0;
    if (given != 0)
        return ((uint32_t)given + 7) / 8 * 8;
    source.sample_bytes = SAMPLE_BYTES + WIDE_SCAN_BYTES;
    const uint64_t wide_ns = (uint64_t)WIDE_DRAIN_MS * OTELI_NS_PER_MS;
    return oteli_profiler_half_full_ns(&source) >= wide_ns ? WIDE_SCAN_BYTES : NARROW_SCAN_BYTES;
}

otel_status oteli_profiler_plan(const otel_profiler_options *options,
                                struct oteli_profiler_plan *plan)
{
    const uint32_t hz = or_default(options->frequency_hz, DEFAULT_HZ);
    const uint32_t ring_kib = or_default(options->ring_kib, PERF_RING_KIB);
    const int signal_number = options->signal_number != 0 ? options->signal_number : SIGPROF;
    if ((unsigned)options->source > OTEL_PROFILER_SIGNAL || hz > MOST_HZ ||
        ring_kib < LEAST_RING_KIB || ring_kib > MOST_RING_KIB || (ring_kib & (ring_kib - 1)) != 0 ||
        options->stack_scan_bytes < OTEL_ZERO || options->stack_scan_bytes > MOST_SCAN_BYTES ||
        !oteli_signal_is_usable(signal_number))
        return OTEL_ERROR_INVALID_ARGUMENT;
    *plan = (struct oteli_profiler_plan){
        .wanted = options->source,
        .source = {.period_ns = OTELI_NS_PER_S / hz,
                   .ring_bytes = ring_kib * 1024,
                   .signal_bytes = or_default(options->ring_kib, SIGNAL_RING_KIB) * 1024,
                   .signal_number = signal_number},
        .max_links = or_default(options->max_links, DEFAULT_LINKS),
        .export_ns =
            (uint64_t)or_default(options->export_interval_ms, DEFAULT_EXPORT_MS) * OTELI_NS_PER_MS,
    };
    plan->source.stack_bytes = scan_bytes(plan->source, options->stack_scan_bytes);
    plan->source.sample_bytes = SAMPLE_BYTES + plan->source.stack_bytes;
    return OTEL_OK;
}

const char *oteli_profiler_reason(otel_profiler_source source, int error)
{
    switch (error) {
    case EPERM:
    case EACCES:
        return source == OTEL_PROFILER_PERF
                   ? "not permitted (kernel.perf_event_paranoid, or a container's seccomp filter)"
                   : "not permitted";
    case ESRCH:
        return "/proc is not that of this PID namespace";
    case ENOENT:
        return "there is no /proc";
    case ENOSYS:
    case EOPNOTSUPP:
        return "not in this kernel, or not on this machine";
    case EINVAL:
    case E2BIG:
        return source == OTEL_PROFILER_PERF ? "Linux 5.13 or newer is needed" : "refused";
    case EBUSY:
        return source == OTEL_PROFILER_SIGNAL ? "the program has a handler of that signal"
                                              : "in use";
    case EMFILE:
    case ENFILE:
        return "no more file descriptors";
    case ENOMEM:
        return "no memory";
    case EAGAIN:
        return "no more timers (RLIMIT_SIGPENDING)";
    default:
        return "refused";
    }
}

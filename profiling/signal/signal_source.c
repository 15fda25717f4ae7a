/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/signal/signal_source.c - see signal_source.h and, for the parts, sample_buffer.h,
 * frame_walk.h and thread_timers.h.
 *
 * The handler runs on any thread at any moment, so it takes no lock, allocates nothing, and reads
 * nothing but the session that is published, its own stack, and what its thread publishes. The
 * profiler's thread stops it by taking the session back, then waits until no handler is inside; a
 * handler that does not leave (its thread may have been stopped) keeps the session in memory for
 * ever.
 *
 * A signal that is still pending when the handler goes would end the program. So the signal is
 * ignored for a moment, which makes the kernel forget it for all threads, those that block it
 * included; the handler's code stays for those that are already on their way to it. */
#include "profiling/signal/signal_source.h"
#include "common/clock/clock.h"
#include "common/clock/thread_time.h"
#include "common/clock/time_units.h"
#include "common/log.h"
#include "common/os/fork.h"
#include "common/os/library.h"
#include "common/text/error_text.h"
#include "profiling/signal/sample_buffer.h"
#include "profiling/signal/thread_timers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/* Looking for threads takes one part in LOOK_SHARE of a processor, and while threads
 * come one in BUSY_SHARE, unless that would mean to look more seldom than once in LONGEST_PAUSE_MS.
 * Threads come until BUSY_LOOKS looks, one after the other, have found none. */
enum {
    LOOK_SHARE = 400,
    BUSY_SHARE = 100,
    BUSY_LOOKS = 32,
    SHORTEST_PAUSE_MS = 4,
    LONGEST_PAUSE_MS = 1000,
    LAST_WAITS = 200,
    LAST_WAIT_NS = 100000,
    LIBC_SIGNAL_LAST = 33,
    STACK_BYTES = 8 << 20 /* how far above the stack pointer callers are looked for */
};

struct session {
    struct oteli_sample_buffer buffer;
    struct oteli_thread_timers timers;
    uint64_t next_look_ns;
    uint64_t armed_before;
    uint32_t busy_looks;     /* to come, at least */
    uint64_t periods;        /* that samples stand for, */
    uint64_t missed_periods; /* of which there was no sample */
    uint64_t used_before_ns;
    bool has_warned_of_unseen;
    bool has_lost_signal; /* to a handler of the program's */
};

static struct session *active; /* what handlers work for */
static uint32_t inside;        /* handlers; full */
static uint32_t last_tag;
static struct session *kept; /* the last one that a handler stayed in; never looked at */

/* In a forked child, where they are never looked at. */
static struct {
    struct session *active;
    void *source;
} of_parent;

static struct {
    int number;
    struct sigaction before;
} taken;

/* In the handler. */
static void record(struct session *session, const siginfo_t *info, const void *ucontext)
{
    const otel_thread_context_record *context = otel_thread_ctx_v1;
    struct oteli_registers at;
    if (!oteli_registers_of(ucontext, &at))
        return;
    struct oteli_sample_slot *slot = oteli_sample_buffer_reserve(&session->buffer);
    if (slot == NULL)
        return;
    struct oteli_sample *sample = &slot->sample;
    oteli_stack_view_begin(&slot->view, at.sp, at.sp + STACK_BYTES);
    slot->frames[0] = at.pc;
    sample->time_ns = oteli_monotonic_ns();
    sample->periods = 1 + (info->si_overrun > 0 ? (uint64_t)info->si_overrun : 0);
    sample->thread = (pid_t)(uintptr_t)info->si_value.sival_ptr;
    sample->frames = slot->frames;
    sample->depth = 1 + oteli_frame_walk(&at, &slot->view, OTELI_FRAMES_MAX - 1, slot->frames + 1);
    const bool has_top = oteli_stack_view_word(&slot->view, at.sp, &slot->stack_top);
    sample->stack = has_top ? &slot->stack_top : NULL;
    sample->stack_size = has_top ? sizeof slot->stack_top : 0;
    sample->stack_address = at.sp;
    sample->has_context = context != NULL && context->valid == 1;
    if (sample->has_context)
        sample->context = *context;
    oteli_sample_buffer_publish(slot);
}

static void on_signal(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    const int saved_errno = errno;
    oteli_add_full_32(&inside, 1);
    struct session *session = OTELI_LOAD_ACQUIRE_PTR(&active);
    if (session != NULL && info->si_code == SI_TIMER &&
        (uint64_t)(uintptr_t)info->si_value.sival_ptr >> 32 == session->timers.tag)
        record(session, info, context);
    oteli_add_full_32(&inside, UINT32_MAX);
    errno = saved_errno;
}

/* A handler that is inside came before what has been published until now. */
static bool is_no_handler_inside(void)
{
    oteli_fence_full();
    return oteli_load_acquire_32(&inside) == 0;
}

bool oteli_signal_is_usable(int signal_number)
{
    static const int faults[] = {SIGILL,  SIGTRAP, SIGABRT, SIGBUS,  SIGFPE,
                                 SIGSEGV, SIGSYS,  SIGKILL, SIGSTOP, SIGCONT};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (signal_number == faults[i])
            return false;
    return signal_number >= 1 && signal_number <= SIGRTMAX &&
           (signal_number < 32 || signal_number > LIBC_SIGNAL_LAST);
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == on_signal;
}

static bool is_of_program(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

/* 0, or an errno: EBUSY if the program has a handler. */
static int take_signal(int signal_number)
{
    struct sigaction before;
    struct sigaction ours = {.sa_sigaction = on_signal,
                             .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    /* Every signal waits, also those that the C library keeps to itself, by which a thread could be
     * cancelled in the handler. */
    memset(&ours.sa_mask, 0xff, sizeof ours.sa_mask);
    if (sigaction(signal_number, NULL, &before) != 0)
        return errno;
    if (is_ours(&before) && taken.number == signal_number)
        return 0;
    if (is_of_program(&before))
        return EBUSY;
    if (sigaction(signal_number, &ours, &before) != 0)
        return errno;
    if (is_of_program(&before)) { /* it has come in between */
        sigaction(signal_number, &before, NULL);
        return EBUSY;
    }
    taken.number = signal_number;
    taken.before = before;
    return 0;
}

static bool has_signal(int signal_number)
{
    struct sigaction now;
    return sigaction(signal_number, NULL, &now) == 0 && is_ours(&now);
}

static void give_signal_back(int signal_number)
{
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    if (!has_signal(signal_number))
        return;
    sigaction(signal_number, &ignored, NULL);
    sigaction(signal_number, &taken.before, NULL);
}

static void free_session(struct session *session)
{
    oteli_thread_timers_fini(&session->timers);
    oteli_sample_buffer_fini(&session->buffer);
    free(session);
}

/* The threads that are new. */
static int look_around(struct session *session)
{
    const uint64_t start_ns = oteli_thread_time_ns();
    const int error = oteli_thread_timers_scan(&session->timers);
    const bool has_new = session->timers.armed != session->armed_before;
    session->armed_before = session->timers.armed;
    if (has_new)
        session->busy_looks = BUSY_LOOKS;
    else if (session->busy_looks != 0)
        session->busy_looks--;
    const bool is_busy = session->busy_looks != 0;
    uint64_t pause_ns =
        (oteli_thread_time_ns() - start_ns) * (uint64_t)(is_busy ? BUSY_SHARE : LOOK_SHARE);
    if (pause_ns < (uint64_t)SHORTEST_PAUSE_MS * OTELI_NS_PER_MS)
        pause_ns = (uint64_t)SHORTEST_PAUSE_MS * OTELI_NS_PER_MS;
    if (pause_ns > (uint64_t)LONGEST_PAUSE_MS * OTELI_NS_PER_MS)
        pause_ns = (uint64_t)LONGEST_PAUSE_MS * OTELI_NS_PER_MS;
    session->next_look_ns = oteli_monotonic_ns() + pause_ns;
    return error;
}

static void warn_of_missing(int error)
{
    struct oteli_error_text why;
    if (error != 0)
        OTELI_LOG(OTEL_LOG_WARN, "profiler: not all threads are sampled: no timers: %s",
                  oteli_error_text(error, &why));
}

static bool has_timers(const struct oteli_thread_timers *timers)
{
    for (size_t i = 0; i < timers->count; i++)
        if (timers->threads[i].has_timer)
            return true;
    return false;
}

static void warn_of_limits(const struct session *session)
{
    const int refused = oteli_stack_view_refused();
    if (refused != 0)
        OTELI_LOG(OTEL_LOG_WARN,
                  "profiler: the kernel refuses process_vm_readv (errno %d): of each stack no more "
                  "than a page is seen",
                  refused);
    if (session->timers.blocking != 0 && !has_timers(&session->timers))
        OTELI_LOG(OTEL_LOG_WARN, "profiler: all threads block signal %d: none of them is sampled",
                  session->timers.signal_number);
}

/* Processor time of all threads but the caller's. */
static uint64_t used_ns(void)
{
    struct timespec all;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &all) != 0)
        return 0;
    return oteli_timespec_ns(all) - oteli_thread_time_ns();
}

static uint64_t used_since_start(const struct session *session)
{
    const uint64_t now_ns = used_ns();
    return now_ns > session->used_before_ns ? now_ns - session->used_before_ns : 0;
}

/* Once, where the samples stand for less than half of the time that was used, and that is a lot. */
static void warn_of_unseen(struct session *session, uint64_t used)
{
    const uint64_t lost = oteli_load_relaxed_64(&session->buffer.lost);
    const uint64_t seen = (session->periods + lost) * session->timers.period_ns;
    if (session->has_warned_of_unseen || used < OTELI_NS_PER_S || seen >= used / 2)
        return;
    session->has_warned_of_unseen = true;
    OTELI_LOG(OTEL_LOG_WARN,
              "profiler: samples stand for %" PRIu64
              " %% of the processor time: threads that block "
              "signal %d (now %" PRIu64 ") and short ones are not seen",
              seen * 100 / used, session->timers.signal_number, session->timers.blocking);
}

/* What all need that sample for these options. False: no memory. */
static bool init_session(struct session *session, const struct oteli_source_options *options)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return oteli_thread_timers_init(&session->timers, options->period_ns, options->signal_number,
                                    ++last_tag) &&
           oteli_sample_buffer_init(&session->buffer,
                                    (size_t)options->ring_bytes *
                                        (size_t)(processors > 0 ? processors : 1));
}

static void stop(void *source)
{
    struct session *session = source;
    const int signal_number = session->timers.signal_number;
    if (session->timers.blocking != 0)
        OTELI_LOG(OTEL_LOG_INFO, "profiler: threads that block signal %d were not sampled",
                  signal_number);
    const bool was_active = OTELI_CAS_FULL_PTR(&active, session, (struct session *)NULL);
    oteli_thread_timers_fini(&session->timers);
    if (was_active)
        give_signal_back(signal_number);
    const struct timespec wait = {0, LAST_WAIT_NS};
    for (unsigned i = 0; i < LAST_WAITS && !is_no_handler_inside(); i++)
        nanosleep(&wait, NULL);
    if (is_no_handler_inside())
        free_session(session);
    else
        OTELI_STORE_RELEASE_PTR(&kept, session);
}

/* In a forked child, where no other thread is inside, and no timer; also where the parent has no
 * profiler any more, or is stopping it. How far it has come with its sessions cannot be known, so
 * they stay as they are. */
static void forget_sessions(void)
{
    of_parent.active = active;
    OTELI_STORE_RELEASE_PTR(&active, (struct session *)NULL);
    oteli_store_relaxed_32(&inside, 0);
}

static int start(const struct oteli_source_options *options, void **source)
{
    static bool is_pinned;
    struct oteli_registers unused;
    if (!oteli_registers_of(&(ucontext_t){0}, &unused))
        return ENOSYS;
    if (!oteli_signal_is_usable(options->signal_number))
        return EINVAL;
    oteli_fork_add(forget_sessions);
    struct session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return ENOMEM;
    if (!init_session(session, options)) {
        free_session(session);
        return ENOMEM;
    }
    const int refused = take_signal(options->signal_number);
    if (refused != 0) {
        free_session(session);
        return refused;
    }
    if (!is_pinned)
        oteli_stay_loaded((oteli_code *)start); /* and kept: signals may be under way for ever */
    is_pinned = true;
    session->used_before_ns = used_ns();
    OTELI_STORE_RELEASE_PTR(&active, session);
    int error = look_around(session);
    for (int i = 1; i < OTELI_TIMER_LOOKS && error == 0 && !has_timers(&session->timers); i++)
        error = look_around(session);
    if (error != 0 && !has_timers(&session->timers)) {
        stop(session);
        return error;
    }
    warn_of_missing(error);
    warn_of_limits(session);
    *source = session;
    return 0;
}

static void drain(void *source, oteli_take_sample *take, void *state,
                  struct oteli_source_counts *counts)
{
    struct session *session = source;
    for (const struct oteli_sample *sample;
         (sample = oteli_sample_buffer_oldest(&session->buffer)) != NULL;
         oteli_sample_buffer_give_back(&session->buffer)) {
        session->periods += sample->periods;
        session->missed_periods += sample->periods - 1;
        take(state, sample);
    }
    counts->lost = oteli_load_relaxed_64(&session->buffer.lost);
    counts->missed_periods = session->missed_periods;
    counts->processor_ns = used_since_start(session);
    if (session->has_lost_signal)
        return;
    if (!has_signal(session->timers.signal_number)) {
        session->has_lost_signal = true;
        oteli_thread_timers_fini(&session->timers);
        OTELI_LOG(
            OTEL_LOG_WARN,
            "profiler: the program has taken signal %d for itself; there are no samples any more",
            session->timers.signal_number);
    } else if (oteli_monotonic_ns() >= session->next_look_ns) {
        warn_of_missing(look_around(session));
    }
    if (session->busy_looks != 0) {
        const uint64_t now_ns = oteli_monotonic_ns();
        counts->soon_ns = session->next_look_ns > now_ns ? session->next_look_ns - now_ns : 1;
    }
    warn_of_unseen(session, counts->processor_ns);
}

/* Its session; those that there are besides are forgotten at any fork. */
static void forget(void *source)
{
    of_parent.source = source;
}

const struct oteli_source oteli_signal_source = {
    .start = start, .drain = drain, .stop = stop, .forget = forget};

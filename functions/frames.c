/* SPDX-License-Identifier: Apache-2.0 */
/* functions/frames.c - push, pop, and find out which frames are gone. App threads; frames.h has the
 * argument. */
#include "functions/frames.h"

#include "common/base/atomic.h"

static struct oteli_frame *top_of(struct oteli_frames *frames)
{
    return &frames->frame[frames->depth - 1];
}

static inline void pop(struct oteli_frames *frames, const struct oteli_frames_limits *limits)
{
    const otel_span span = top_of(frames)->span;
    frames->depth--;
    frames->deeper = 0;
    otel_span_end_unless_shorter(span, limits->min_ns);
}

static void pop_to(struct oteli_frames *frames, const struct oteli_frames_limits *limits,
                   uint32_t depth)
{
    while (frames->depth > depth)
        pop(frames, limits);
}

static inline void pop_lower(struct oteli_frames *frames, const struct oteli_frames_limits *limits,
                             uintptr_t at)
{
    while (OTELI_UNLIKELY(frames->depth != 0 && top_of(frames)->caller.at < at))
        pop(frames, limits);
}

/* Among frames at the caller's height: those that are another call than the caller's. */
static OTELI_COLD void pop_beside(struct oteli_frames *frames,
                                  const struct oteli_frames_limits *limits,
                                  const struct oteli_caller *caller)
{
    uint32_t keep = frames->depth;
    for (uint32_t i = frames->depth; i-- != 0 && frames->frame[i].caller.at == caller->at;)
        if (frames->frame[i].caller.site != caller->site ||
            frames->frame[i].caller.instruction == caller->instruction)
            keep = i;
    pop_to(frames, limits, keep);
}

void oteli_frames_enter(struct oteli_frames *frames, const struct oteli_frames_limits *limits,
                        otel_tracer *tracer, const struct oteli_caller *caller)
{
    pop_lower(frames, limits, caller->at);
    if (OTELI_UNLIKELY(frames->depth != 0 && top_of(frames)->caller.at == caller->at))
        pop_beside(frames, limits, caller);
    if (OTELI_UNLIKELY(frames->depth >= limits->max_depth)) {
        frames->deeper++;
        return;
    }
    struct oteli_frame *frame = &frames->frame[frames->depth];
    frame->caller = *caller;
    frame->span = otel_span_enter_address(tracer, caller->function);
    frames->depth++;
}

static bool is_of(const struct oteli_frame *frame, const struct oteli_caller *caller)
{
    return frame->caller.function == caller->function && frame->caller.site == caller->site;
}

void oteli_frames_exit(struct oteli_frames *frames, const struct oteli_frames_limits *limits,
                       const struct oteli_caller *caller, bool is_excluded)
{
    pop_lower(frames, limits, caller->at);
    if (frames->depth == 0)
        return;
    const struct oteli_frame *top = top_of(frames);
    if (OTELI_UNLIKELY(frames->deeper != 0) && caller->at < top->caller.at) {
        frames->deeper -= !is_excluded;
        return;
    }
    /* A function that has made room on its stack since is further down than it began. */
    if (OTELI_LIKELY(is_of(top, caller))) {
        pop(frames, limits);
        return;
    }
    for (uint32_t i = frames->depth; i-- != 0 && frames->frame[i].caller.at == caller->at;)
        if (is_of(&frames->frame[i], caller)) {
            pop_to(frames, limits, i);
            return;
        }
}

void oteli_frames_clear(struct oteli_frames *frames, const struct oteli_frames_limits *limits)
{
    pop_to(frames, limits, 0);
}

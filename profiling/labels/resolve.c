/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/labels/resolve.c - from a sample to its labels: which trampolines are on the stack,
 * and what they stood for at that time. The profiler's thread.
 *
 * Nothing is guessed. A trampoline counts when its exact marker is on the chain of frames, or its
 * whole record in the bytes of the stack; and where it is not known what an inner one stood for,
 * the outer ones say nothing either, because what they say may have been said otherwise further
 * in. */
#include "profiling/labels/resolve.h"
#include "profiling/labels/trampolines.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* --- frames --- */

/* Copy the frames, and find trampolines, innermost first. One of them is up to three frames: where
 * it is itself, where the function returns to, and its marker; they become one, the same for all
 * trampolines. Only the marker proves that one is in use, or that the leaf is in it: an old return
 * address may be met where a function uses the frame pointer for something else. */
static size_t copy_frames(const struct oteli_sample *sample, struct oteli_resolved *resolved,
                          int found[OTELI_LABELS_NESTED])
{
    size_t count = 0;
    int last = OTELI_NO_TRAMPOLINE;
    bool is_proven = false;
    for (size_t i = 0; i < sample->depth && resolved->depth < OTELI_FRAMES_MAX; i++) {
        const uint64_t frame = sample->frames[i];
        const int trampoline = oteli_trampoline_of(frame);
        const bool is_marker = oteli_trampoline_of_marker(frame) != OTELI_NO_TRAMPOLINE;
        if (trampoline == OTELI_NO_TRAMPOLINE || trampoline != last) {
            resolved->frames[resolved->depth++] =
                trampoline == OTELI_NO_TRAMPOLINE ? frame : oteli_trampoline_unify(frame);
            is_proven = false;
        } else if (is_marker && !is_proven) {
            resolved->frames[resolved->depth - 1] = oteli_trampoline_unify(frame);
        }
        if (trampoline != OTELI_NO_TRAMPOLINE && (i == 0 || is_marker) && !is_proven) {
            is_proven = true;
            if (count < OTELI_LABELS_NESTED)
                found[count++] = trampoline;
        }
        last = trampoline;
    }
    return count;
}

/* --- the caller that a chain of frame pointers skips --- */

/* A function that has made no frame (a leaf that compilers give none, or the first instructions of
 * any) has its return address right at the stack pointer, and the chain goes on with its caller's
 * caller. What is at the stack pointer may be anything, so it counts only when it follows a direct
 * call whose target is a little below the leaf's address: that is the function which the leaf is
 * in. Code is read by a system call, because it may have been unmapped since. */

#if defined(__x86_64__)

enum { CALL_BYTES = 5, CALL = 0xE8, FUNCTION_BYTES = 64 * 1024 };

/* Where the direct call leads to that returns to this address, which may be anything; 0: there is
 * none. */
static uint64_t target_of_call(uint64_t returns_to)
{
    uint8_t code[CALL_BYTES];
    int32_t distance;
    const uintptr_t address = (uintptr_t)returns_to - CALL_BYTES;
    struct iovec here = {code, sizeof code};
    struct iovec there = {(void *)address, sizeof code}; /* NOLINT(performance-no-int-to-ptr) */
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != (ssize_t)sizeof code ||
        code[0] != CALL)
        return 0;
    memcpy(&distance, code + 1, sizeof distance);
    return returns_to + (uint64_t)(int64_t)distance;
}

/* Whether a function that begins there may have this address in it. */
static bool may_hold(uint64_t function, uint64_t address)
{
    return function <= address && address - function <= FUNCTION_BYTES;
}

/* Where it can be seen what the next frame called: that is the missing one, and not the leaf. An
 * old return address in a local variable of the leaf would look right otherwise. */
static bool is_called_by(uint64_t next, uint64_t caller, uint64_t function, uint64_t leaf)
{
    const uint64_t called = target_of_call(next);
    return called == 0 ||
           (may_hold(called, caller) && !(may_hold(called, leaf) && called >= function));
}

static bool find_leaf_return_address(const struct oteli_sample *sample, uint64_t *caller)
{
    if (sample->stack_size < sizeof *caller || sample->depth == 0)
        return false;
    memcpy(caller, sample->stack, sizeof *caller);
    const uint64_t leaf = sample->frames[0];
    if (sample->depth > 1 && sample->frames[1] == *caller)
        return false;
    const uint64_t function = target_of_call(*caller);
    return function != 0 && may_hold(function, leaf) &&
           (sample->depth == 1 || is_called_by(sample->frames[1], *caller, function, leaf));
}

static void add_missing_caller(const struct oteli_sample *sample, struct oteli_resolved *resolved)
{
    uint64_t caller;
    if (resolved->depth == OTELI_FRAMES_MAX || !find_leaf_return_address(sample, &caller))
        return;
    memmove(&resolved->frames[2], &resolved->frames[1],
            (resolved->depth - 1) * sizeof resolved->frames[0]);
    resolved->frames[1] = caller;
    resolved->depth++;
}

#else

static void add_missing_caller(const struct oteli_sample *sample, struct oteli_resolved *resolved)
{
    (void)sample;
    (void)resolved;
}

#endif

/* --- labels --- */

/* Look up what they stood for, as far as that is known. False: not even of the innermost. */
static bool add_labels(struct oteli_resolved *resolved, const int *found, size_t count)
{
    const uint64_t time_ns = resolved->sample->time_ns;
    while (resolved->label_count < count &&
           oteli_labels_find((unsigned)found[resolved->label_count], time_ns,
                             &resolved->labels[resolved->label_count]))
        resolved->label_count++;
    return resolved->label_count != 0;
}

/* The innermost label that has a span; NULL: none. */
static const struct oteli_label *take_span_of_labels(struct oteli_resolved *resolved)
{
    for (size_t i = 0; i < resolved->label_count; i++) {
        const struct oteli_label *label = &resolved->labels[i];
        if (oteli_is_no_id(label->span.span_id))
            continue;
        resolved->span = label->span;
        resolved->has_span = true;
        return label;
    }
    return NULL;
}

/* Whether what the thread publishes is a span that the label was made under: the one that was
 * current then, or its local root. Any other was entered inside of it. */
static bool is_around(const struct oteli_label *label, const otel_thread_context_record *context)
{
    return memcmp(context->span_id, label->around_id, sizeof label->around_id) == 0 ||
           (memcmp(context->trace_id, label->span.trace_id, sizeof label->span.trace_id) == 0 &&
            memcmp(context->span_id, label->span.root_id, sizeof label->span.root_id) == 0);
}

/* `label`: the one that has given the span up to now, or NULL. True: the thread publishes one. */
static bool take_span_of_thread(struct oteli_resolved *resolved, const struct oteli_label *label)
{
    const otel_thread_context_record *context = &resolved->sample->context;
    if (!resolved->sample->has_context || context->valid == 0)
        return false;
    if (label != NULL && is_around(label, context))
        return true;
    if (label == NULL ||
        memcmp(context->trace_id, label->span.trace_id, sizeof label->span.trace_id) != 0)
        memset(resolved->span.root_id, 0, sizeof resolved->span.root_id);
    memcpy(resolved->span.trace_id, context->trace_id, sizeof resolved->span.trace_id);
    memcpy(resolved->span.span_id, context->span_id, sizeof resolved->span.span_id);
    resolved->has_span = true;
    return true;
}

/* The span is known, and what else was said of it is written down, if a label was made for it. */
static void add_label_of_span(struct oteli_resolved *resolved)
{
    struct oteli_label *label = &resolved->labels[0];
    if (!oteli_labels_find_span(resolved->span.span_id, resolved->sample->time_ns, label))
        return;
    resolved->label_count = 1;
    memcpy(resolved->span.root_id, label->span.root_id, sizeof resolved->span.root_id);
}

void oteli_resolve(const struct oteli_sample *sample, struct oteli_resolved *resolved)
{
    int trampolines[OTELI_LABELS_NESTED];
    resolved->sample = sample;
    resolved->depth = 0;
    resolved->has_span = false;
    resolved->label_count = 0;
    memset(resolved->span.root_id, 0, sizeof resolved->span.root_id);
    size_t count = copy_frames(sample, resolved, trampolines);
    add_missing_caller(sample, resolved);
    resolved->found = OTELI_FOUND_BY_CHAIN;
    if (count == 0 && sample->stack_size != 0) {
        count = oteli_trampolines_scan(sample->stack, sample->stack_size, sample->stack_address,
                                       trampolines, OTELI_LABELS_NESTED);
        if (count > OTELI_LABELS_NESTED)
            count = OTELI_LABELS_NESTED;
        resolved->found = OTELI_FOUND_BY_SCAN;
    }
    const bool is_labelled = add_labels(resolved, trampolines, count);
    const struct oteli_label *label = take_span_of_labels(resolved);
    const bool is_known = take_span_of_thread(resolved, label);
    if (!is_labelled && is_known)
        add_label_of_span(resolved);
    if (!is_labelled)
        resolved->found = is_known     ? OTELI_FOUND_BY_THREAD
                          : count != 0 ? OTELI_NO_HISTORY
                                       : OTELI_UNLABELLED;
}

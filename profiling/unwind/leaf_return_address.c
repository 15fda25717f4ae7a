/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/unwind/leaf_return_address.c - is it an address behind a call to where the leaf is? The
 * profiler's thread. */
#include "profiling/unwind/leaf_return_address.h"

#if defined(__x86_64__)

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CALL_BYTES = 5, CALL = 0xE8, FUNCTION_BYTES = 64 * 1024 };
enum { LEAST_CODE = 4096 };

/* No program has code at the addresses of the kernel. */
static const uint64_t code_end = UINT64_C(1) << 56;

/* After that code is read again: it may be other code by then. */
static const uint64_t remembered_ns = 1000000000;

/* Where the direct call leads to that returns to this address; 0: there is none. */
static uint64_t read_call(uint64_t returns_to)
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

static bool target_of_call(struct oteli_calls *calls, uint64_t returns_to, uint64_t *target)
{
    if (returns_to < LEAST_CODE || returns_to >= code_end)
        return false;
    const uint64_t hash = (returns_to * UINT64_C(0x9E3779B97F4A7C15)) >> 32;
    struct oteli_call *call = &calls->known[hash % OTELI_CALLS];
    if (call->returns_to != returns_to)
        *call = (struct oteli_call){returns_to, read_call(returns_to)};
    *target = call->target;
    return call->target != 0;
}

/* Samples of several processors come in turns, and each in order. */
static void forget_old(struct oteli_calls *calls, uint64_t time_ns)
{
    if (time_ns >= calls->since_ns && time_ns - calls->since_ns < remembered_ns)
        return;
    memset(calls, 0, sizeof *calls);
    calls->since_ns = time_ns;
}

/* Whether a function that begins there may have this address in it. */
static bool may_hold(uint64_t function, uint64_t address)
{
    return function <= address && address - function <= FUNCTION_BYTES;
}

/* Where it can be seen what the next frame called: that is the missing one, and not the leaf. An
 * old return address in a local variable of the leaf would look right otherwise. */
static bool is_called_by(struct oteli_calls *calls, uint64_t next, uint64_t caller,
                         uint64_t function, uint64_t leaf)
{
    uint64_t called;
    if (!target_of_call(calls, next, &called))
        return true;
    return may_hold(called, caller) && !(may_hold(called, leaf) && called >= function);
}

bool oteli_missing_caller(struct oteli_calls *calls, const struct oteli_sample *sample,
                          uint64_t *caller)
{
    uint64_t function;
    if (sample->stack_size < sizeof *caller || sample->depth == 0)
        return false;
    memcpy(caller, sample->stack, sizeof *caller);
    const uint64_t leaf = sample->frames[0];
    if (sample->depth > 1 && sample->frames[1] == *caller)
        return false;
    forget_old(calls, sample->time_ns);
    return target_of_call(calls, *caller, &function) && may_hold(function, leaf) &&
           (sample->depth == 1 || is_called_by(calls, sample->frames[1], *caller, function, leaf));
}

#else

bool oteli_missing_caller(struct oteli_calls *calls, const struct oteli_sample *sample,
                          uint64_t *caller)
{
    (void)calls;
    (void)sample;
    (void)caller;
    return false;
}

#endif

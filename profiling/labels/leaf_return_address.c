/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/labels/leaf_return_address.c - is it an address behind a call to where the leaf is? The
 * profiler's thread. */
#include "profiling/labels/leaf_return_address.h"

#if defined(__x86_64__)

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

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

bool oteli_leaf_return_address(const struct oteli_sample *sample, uint64_t *caller)
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

#else

bool oteli_leaf_return_address(const struct oteli_sample *sample, uint64_t *caller)
{
    (void)sample;
    (void)caller;
    return false;
}

#endif

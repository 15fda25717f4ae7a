/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/asan_fork.c - fork for programs with gcc's AddressSanitizer.
 *
 * A thread that allocates, starts or ends now and then holds one of the runtime's locks. If another
 * one forks then, nobody opens it in the child, which waits for ever the next time that it
 * allocates (seen once in about seventy runs of examples/prefork.c). libc opens its own locks
 * after a fork; gcc's runtime has not done that, LLVM's does since version 18. So all of them
 * are taken before a fork, in the runtime's own order, and given back after it on both sides.
 *
 * Linked with every program where the functions are to be had (cmake/OtelSanitize.cmake). */
#include <pthread.h>

/* Of the runtime, whose interface is C++: __lsan::LockThreadRegistry() and so on. */
void lock_threads(void) __asm__("_ZN6__lsan18LockThreadRegistryEv");
void unlock_threads(void) __asm__("_ZN6__lsan20UnlockThreadRegistryEv");
void lock_allocator(void) __asm__("_ZN6__lsan13LockAllocatorEv");
void unlock_allocator(void) __asm__("_ZN6__lsan15UnlockAllocatorEv");
void lock_stacks(void) __asm__("_ZN11__sanitizer17StackDepotLockAllEv");
void unlock_stacks(void) __asm__("_ZN11__sanitizer19StackDepotUnlockAllEv");

static void before_fork(void)
{
    lock_threads();
    lock_allocator();
    lock_stacks();
}

static void after_fork(void)
{
    unlock_stacks();
    unlock_allocator();
    unlock_threads();
}

/* Before the constructors of all libraries, so that whatever they do at a fork is done outside of
 * the locks: the first handlers are the last before a fork, and the first after it. */
static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}
__attribute__((section(".preinit_array"), used)) static void (*const at_start)(void) = watch_forks;

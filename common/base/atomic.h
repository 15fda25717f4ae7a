/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/atomic.h - the door to Concurrency Kit: atomics with their order in their name.
 *
 * The order is part of every name so that grep finds each release and the acquire it
 * pairs with. CK's operations are inline assembly, which ThreadSanitizer cannot see;
 * under it the same names are the compiler's builtins, so that it sees every ordering
 * and reports what is missing (tests/stress/seeded_race.c proves that it does).
 *
 *   relaxed   no ordering: single-writer counters that others may read
 *   acquire   pairs with a release: sees everything written before it
 *   release   publishes everything written before it
 *   full      sequentially consistent: also orders an earlier store before a later load
 */
#ifndef OTELI_ATOMIC_H
#define OTELI_ATOMIC_H

#include <ck_md.h>
#include <ck_pr.h>
#include <stdbool.h>
#include <stdint.h>

#define OTELI_CACHELINE CK_MD_CACHELINE
#define OTELI_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define OTELI_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define OTELI_COLD __attribute__((noinline, cold))
/* What every span calls: together, so that it takes few pages and cache lines. */
#define OTELI_HOT __attribute__((section(".text.hot.otel"), aligned(64)))
#define OTELI_NOINLINE __attribute__((noinline))
/* Of the thread; few bytes, because libraries that are loaded late share little room for them. */
#if defined(__GLIBC__)
#define OTELI_TLS __thread __attribute__((tls_model("initial-exec")))
#else
#define OTELI_TLS __thread
#endif
#define OTELI_INLINE inline __attribute__((always_inline))
/* A value that the compiler knows nothing of: it keeps it, and does not make it up again. */
#define OTELI_OPAQUE(value) __asm__("" : "+r"(value))

#if defined(__SANITIZE_THREAD__)
#define OTELI_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define OTELI_TSAN 1
#endif
#endif

#ifdef OTELI_TSAN

#define OTELI_LOAD_RELAXED(kind, at) __atomic_load_n(at, __ATOMIC_RELAXED)
#define OTELI_LOAD_ACQUIRE(kind, at) __atomic_load_n(at, __ATOMIC_ACQUIRE)
#define OTELI_STORE_RELAXED(kind, at, value) __atomic_store_n(at, value, __ATOMIC_RELAXED)
#define OTELI_STORE_RELEASE(kind, at, value) __atomic_store_n(at, value, __ATOMIC_RELEASE)
#define OTELI_CAS_FULL(kind, at, expected, desired) \
    __atomic_compare_exchange_n(at, &(expected), desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#define OTELI_EXCHANGE_FULL(kind, at, value) __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST)
#define OTELI_ADD_FULL(kind, at, value) __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST)
#define OTELI_BEFORE_ATOMIC() ((void)0)
#define OTELI_AFTER_ATOMIC() ((void)0)

/* TSan does not model fences; a read-modify-write of one place orders as well. */
static inline void oteli_fence_full(void)
{
    static uint32_t place;
    __atomic_fetch_add(&place, 0, __ATOMIC_SEQ_CST);
}

#else

/* Relaxed accesses are the compiler's in both cases: CK's would also be barriers for it. */
#define OTELI_LOAD_RELAXED(kind, at) __atomic_load_n(at, __ATOMIC_RELAXED)
#define OTELI_LOAD_ACQUIRE(kind, at) ck_pr_load_##kind(at) /* and the fence below */
#define OTELI_STORE_RELAXED(kind, at, value) __atomic_store_n(at, value, __ATOMIC_RELAXED)
#define OTELI_STORE_RELEASE(kind, at, value) (ck_pr_fence_release(), ck_pr_store_##kind(at, value))
#define OTELI_CAS_FULL(kind, at, expected, desired) ck_pr_cas_##kind(at, expected, desired)
#define OTELI_EXCHANGE_FULL(kind, at, value) ck_pr_fas_##kind(at, value)
#define OTELI_ADD_FULL(kind, at, value) ck_pr_faa_##kind(at, value)
#define OTELI_BEFORE_ATOMIC() (ck_pr_fence_load_atomic(), ck_pr_fence_store_atomic())
#define OTELI_AFTER_ATOMIC() (ck_pr_fence_atomic_load(), ck_pr_fence_atomic_store())

static inline void oteli_fence_full(void)
{
    ck_pr_fence_memory();
}

#endif

static inline void oteli_fence_after_load(void)
{
#ifndef OTELI_TSAN
    ck_pr_fence_acquire();
#endif
}

/* What is stored behind it, relaxed or not, is seen after what was stored before it. */
static inline void oteli_fence_before_stores(void)
{
#ifndef OTELI_TSAN
    ck_pr_fence_release();
#endif
}

#define OTELI_DEFINE_ATOMICS(kind, type)                                            \
    static inline type oteli_load_relaxed_##kind(const type *at)                    \
    {                                                                               \
        return OTELI_LOAD_RELAXED(kind, at);                                        \
    }                                                                               \
    static inline type oteli_load_acquire_##kind(const type *at)                    \
    {                                                                               \
        type value = OTELI_LOAD_ACQUIRE(kind, at);                                  \
        oteli_fence_after_load();                                                   \
        return value;                                                               \
    }                                                                               \
    static inline void oteli_store_relaxed_##kind(type *at, type value)             \
    {                                                                               \
        OTELI_STORE_RELAXED(kind, at, value);                                       \
    }                                                                               \
    static inline void oteli_store_release_##kind(type *at, type value)             \
    {                                                                               \
        OTELI_STORE_RELEASE(kind, at, value);                                       \
    }                                                                               \
    static inline bool oteli_cas_full_##kind(type *at, type expected, type desired) \
    {                                                                               \
        OTELI_BEFORE_ATOMIC();                                                      \
        bool done = OTELI_CAS_FULL(kind, at, expected, desired);                    \
        OTELI_AFTER_ATOMIC();                                                       \
        return done;                                                                \
    }                                                                               \
    static inline type oteli_exchange_full_##kind(type *at, type value)             \
    {                                                                               \
        OTELI_BEFORE_ATOMIC();                                                      \
        type before = OTELI_EXCHANGE_FULL(kind, at, value);                         \
        OTELI_AFTER_ATOMIC();                                                       \
        return before;                                                              \
    }

#define OTELI_DEFINE_ADD(kind, type)                               \
    static inline type oteli_add_full_##kind(type *at, type value) \
    {                                                              \
        OTELI_BEFORE_ATOMIC();                                     \
        type before = OTELI_ADD_FULL(kind, at, value);             \
        OTELI_AFTER_ATOMIC();                                      \
        return before;                                             \
    }

/* `at` is the address of a pointer variable of any type. */
#define OTELI_LOAD_RELAXED_PTR(at) \
    ((__typeof__(*(at)))oteli_load_relaxed_ptr((const oteli_pointer *)(const void *)(at)))
#define OTELI_LOAD_ACQUIRE_PTR(at) \
    ((__typeof__(*(at)))oteli_load_acquire_ptr((const oteli_pointer *)(const void *)(at)))
#define OTELI_STORE_RELEASE_PTR(at, value) \
    oteli_store_release_ptr((oteli_pointer *)(void *)(at), (void *)(uintptr_t)(value))
#define OTELI_CAS_FULL_PTR(at, expected, desired) \
    oteli_cas_full_ptr((oteli_pointer *)(void *)(at), (void *)(expected), (void *)(desired))

typedef void *oteli_pointer;
OTELI_DEFINE_ATOMICS(ptr, oteli_pointer)
OTELI_DEFINE_ATOMICS(32, uint32_t)
OTELI_DEFINE_ATOMICS(64, uint64_t)

/* Subtract, unless that is below zero: after a fork, what is given back may have been counted
 * before it. */
static inline void oteli_sub_counted_64(uint64_t *at, uint64_t less)
{
    uint64_t before;
    do {
        before = oteli_load_relaxed_64(at);
    } while (before >= less && !oteli_cas_full_64(at, before, before - less));
}
OTELI_DEFINE_ADD(32, uint32_t)
OTELI_DEFINE_ADD(64, uint64_t)

/* Whether it is this value at the moment; relaxed. */
static OTELI_INLINE bool oteli_is_relaxed_64(const uint64_t *at, uint64_t value)
{
#if defined(__x86_64__) && !defined(OTELI_TSAN)
    bool is_same; /* in one instruction: compilers load what is atomic first */
    __asm__ __volatile__("cmpq %1, %2" : "=@cce"(is_same) : "re"(value), "m"(*at));
    return is_same;
#else
    return oteli_load_relaxed_64(at) == value;
#endif
}

/* Add to a counter that only this thread writes and others may read. */
static inline void oteli_count(uint64_t *counter, uint64_t more)
{
#if defined(__x86_64__) && !defined(OTELI_TSAN)
    __asm__("addq %1, %0" : "+m"(*counter) : "er"(more) : "cc"); /* one instruction, no lock */
#else
    oteli_store_relaxed_64(counter, oteli_load_relaxed_64(counter) + more);
#endif
}

/* Fetch the cache line of an address that will be written soon, to own it by then. */
static inline void oteli_fetch_to_write(const void *at)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)at)); /* a no-op where unknown */
#else
    __builtin_prefetch(at, 1);
#endif
}

/* Tell the processor that this is a loop that waits. */
static inline void oteli_stall(void)
{
    ck_pr_stall();
}

#endif

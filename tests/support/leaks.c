/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/leaks.c - the wrapped allocator behind leaks.h.
 *
 * Live pieces stand in an open-addressing table of its own (real malloc), keyed by
 * address: memory that is freed here but was allocated elsewhere, before begin or inside
 * libc, is simply not in it. One mutex guards everything, because any thread allocates. */
#include "tests/support/leaks.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t number, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **out, size_t alignment, size_t size);
void __real_free(void *memory);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t number, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length);
void __wrap_free(void *memory);

struct piece {
    uintptr_t address; /* 0: empty, GONE: was taken out */
    size_t size;
    size_t number; /* the how-manieth allocation since begin */
};

enum { GONE = 1, SLOTS_AT_FIRST = 1024, PIECES_SHOWN = 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct piece *pieces;
static size_t slots;   /* of the table, a power of two */
static size_t used;    /* slots that are not empty, the gone ones included */
static size_t live;    /* pieces in the table */
static size_t count;   /* allocations since begin */
static size_t fail_in; /* allocations until the one that fails; 0: none */
static bool counting;
static bool failed;

static size_t slot_of(uintptr_t address)
{
    return (size_t)((uint64_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (slots - 1);
}

static void put(struct piece piece)
{
    size_t i = slot_of(piece.address);
    while (pieces[i].address > GONE)
        i = (i + 1) & (slots - 1);
    if (pieces[i].address == 0)
        used++;
    pieces[i] = piece;
}

static void make_room(void)
{
    if (used + 1 <= slots / 2)
        return;
    struct piece *const before = pieces;
    const size_t slots_before = slots;
    slots = live * 4 < SLOTS_AT_FIRST ? SLOTS_AT_FIRST : slots * 2;
    pieces = __real_calloc(slots, sizeof *pieces);
    if (pieces == NULL)
        abort();
    used = 0;
    for (size_t i = 0; i < slots_before; i++) {
        if (before[i].address > GONE)
            put(before[i]);
    }
    __real_free(before);
}

static void lock_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* A child of a fork while another thread is in here would wait for it for ever. Before all handlers of
 * ours, which may free something: the first ones are the last before a fork, and the first after it. */
__attribute__((constructor(101))) static void watch_forks(void)
{
    if (pthread_atfork(lock_before_fork, unlock_after_fork, unlock_after_fork) != 0)
        abort();
}

/* Whether the allocation that begins now must fail. */
static bool must_fail(void)
{
    pthread_mutex_lock(&lock);
    const bool now = fail_in != 0 && --fail_in == 0;
    failed = failed || now;
    pthread_mutex_unlock(&lock);
    return now;
}

static void add(const void *memory, size_t size)
{
    pthread_mutex_lock(&lock);
    if (counting && memory != NULL) {
        make_room();
        put((struct piece){(uintptr_t)memory, size, ++count});
        live++;
    }
    pthread_mutex_unlock(&lock);
}

/* Before the memory goes back: afterwards another thread may get the same address.
 * Returns whether it was counted. */
static bool take_out(const void *memory)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    if (slots != 0 && memory != NULL) {
        size_t i = slot_of((uintptr_t)memory);
        while (pieces[i].address != 0 && pieces[i].address != (uintptr_t)memory)
            i = (i + 1) & (slots - 1);
        if (pieces[i].address != 0) {
            pieces[i].address = GONE;
            live--;
            found = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *__wrap_malloc(size_t size)
{
    if (must_fail())
        return no_memory();
    void *const memory = __real_malloc(size);
    add(memory, size);
    return memory;
}

void *__wrap_calloc(size_t number, size_t size)
{
    if (must_fail())
        return no_memory();
    void *const memory = __real_calloc(number, size);
    add(memory, number * size); /* cannot overflow: calloc would have refused */
    return memory;
}

void *__wrap_realloc(void *old, size_t size)
{
    if (must_fail())
        return no_memory();
    const bool counted = take_out(old);
    void *const memory = __real_realloc(old, size);
    if (memory != NULL)
        add(memory, size);
    else if (counted && size != 0)
        add(old, 0); /* refused: what was there still is */
    return memory;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    if (must_fail())
        return no_memory();
    void *const memory = __real_aligned_alloc(alignment, size);
    add(memory, size);
    return memory;
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size)
{
    if (must_fail())
        return ENOMEM;
    const int error = __real_posix_memalign(out, alignment, size);
    if (error == 0)
        add(*out, size);
    return error;
}

char *__wrap_strndup(const char *text, size_t length)
{
    const size_t copied = strnlen(text, length);
    char *const copy = __wrap_malloc(copied + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, text, copied);
    copy[copied] = '\0';
    return copy;
}

char *__wrap_strdup(const char *text)
{
    return __wrap_strndup(text, strlen(text));
}

void __wrap_free(void *memory)
{
    (void)take_out(memory);
    __real_free(memory);
}

void oteli_leaks_begin(void)
{
    pthread_mutex_lock(&lock);
    __real_free(pieces);
    pieces = NULL;
    slots = used = live = count = fail_in = 0;
    failed = false;
    counting = true;
    pthread_mutex_unlock(&lock);
}

void oteli_leaks_check_at(const char *file, int line)
{
    pthread_mutex_lock(&lock);
    const size_t left = live;
    struct piece *const table = pieces;
    const size_t size = slots;
    pieces = NULL;
    slots = used = live = fail_in = 0;
    counting = false;
    pthread_mutex_unlock(&lock);

    size_t shown = 0;
    for (size_t i = 0; i < size && shown < PIECES_SHOWN; i++) {
        if (table[i].address > GONE) {
            print_error("still allocated: %zu bytes (allocation %zu since begin)\n", table[i].size,
                        table[i].number);
            shown++;
        }
    }
    __real_free(table);
    if (left != 0) {
        print_error("%zu live allocations at the end of the test\n", left);
        _fail(file, line);
    }
}

void oteli_leaks_fail_at(size_t nth)
{
    pthread_mutex_lock(&lock);
    fail_in = nth;
    failed = false;
    pthread_mutex_unlock(&lock);
}

bool oteli_leaks_failed(void)
{
    pthread_mutex_lock(&lock);
    const bool result = failed;
    pthread_mutex_unlock(&lock);
    return result;
}

size_t oteli_leaks_live(void)
{
    pthread_mutex_lock(&lock);
    const size_t result = live;
    pthread_mutex_unlock(&lock);
    return result;
}

size_t oteli_leaks_count(void)
{
    pthread_mutex_lock(&lock);
    const size_t result = count;
    pthread_mutex_unlock(&lock);
    return result;
}

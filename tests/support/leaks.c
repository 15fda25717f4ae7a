/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/leaks.c - the wrapped allocator behind leaks.h.
 *
 * Live pieces stand in a tree of the C library's (search.h, whose allocations do not come here),
 * by address: memory that is freed here but was allocated elsewhere, before begin or inside
 * libc, is simply not in it. One mutex guards everything, because any thread allocates. */
#include "tests/support/leaks.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
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
    uintptr_t address;
    size_t size;
    size_t number; /* the how-manieth allocation since begin */
};

enum { PIECES_SHOWN = 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *pieces;   /* the tree */
static size_t live;    /* pieces in it */
static size_t count;   /* allocations since begin */
static size_t fail_in; /* allocations until the one that fails; 0: none */
static bool counting;
static bool failed;
static size_t shown;

static int compare(const void *left, const void *right)
{
    const uintptr_t a = ((const struct piece *)left)->address;
    const uintptr_t b = ((const struct piece *)right)->address;
    return (a > b) - (a < b);
}

static void lock_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* A child of a fork while another thread is in here would wait for it for ever. Before all handlers
 * of ours, which may free something: the first ones are the last before a fork, and the first after
 * it. */
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
        struct piece *piece = __real_malloc(sizeof *piece);
        if (piece == NULL)
            abort();
        *piece = (struct piece){(uintptr_t)memory, size, ++count};
        if (tsearch(piece, &pieces, compare) == NULL)
            abort();
        live++;
    }
    pthread_mutex_unlock(&lock);
}

/* Before the memory goes back: afterwards another thread may get the same address.
 * Returns whether it was counted. */
static bool take_out(const void *memory)
{
    const struct piece wanted = {.address = (uintptr_t)memory};
    struct piece *piece = NULL;
    pthread_mutex_lock(&lock);
    struct piece *const *found = tfind(&wanted, &pieces, compare);
    if (found != NULL) {
        piece = *found;
        (void)tdelete(&wanted, &pieces, compare);
        live--;
    }
    pthread_mutex_unlock(&lock);
    __real_free(piece);
    return piece != NULL;
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

static void forget(void)
{
    tdestroy(pieces, __real_free);
    pieces = NULL;
    live = fail_in = 0;
}

void oteli_leaks_begin(void)
{
    pthread_mutex_lock(&lock);
    forget();
    count = 0;
    failed = false;
    counting = true;
    pthread_mutex_unlock(&lock);
}

static void show(const void *node, VISIT visit, int depth)
{
    const struct piece *piece = *(struct piece *const *)node;
    (void)depth;
    if ((visit == postorder || visit == leaf) && shown++ < PIECES_SHOWN)
        print_error("still allocated: %zu bytes (allocation %zu since begin)\n", piece->size,
                    piece->number);
}

void oteli_leaks_check_at(const char *file, int line)
{
    pthread_mutex_lock(&lock);
    const size_t left = live;
    shown = 0;
    counting = false;
    twalk(pieces, show);
    forget();
    pthread_mutex_unlock(&lock);
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

static size_t locked(const size_t *value)
{
    pthread_mutex_lock(&lock);
    const size_t result = *value;
    pthread_mutex_unlock(&lock);
    return result;
}

bool oteli_leaks_failed(void)
{
    pthread_mutex_lock(&lock);
    const bool result = failed;
    fail_in = 0;
    pthread_mutex_unlock(&lock);
    return result;
}

size_t oteli_leaks_live(void)
{
    return locked(&live);
}

size_t oteli_leaks_count(void)
{
    return locked(&count);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/functions_traced.c - see functions_traced.h. */
#include "tests/support/functions_traced.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>

#define KEPT __attribute__((noinline))

static jmp_buf jump_target;

KEPT static void third(void)
{
    traced_take_us(1000);
}

KEPT static void second(void)
{
    third();
}

KEPT static void first(void)
{
    traced_take_us(1000);
}

void traced_tree(void)
{
    first();
    second();
}

KEPT int traced_countdown(int n)
{
    traced_take_us(1000);
    return n == 0 ? 0 : 1 + traced_countdown(n - 1);
}

KEPT static void jumper(int depth)
{
    traced_take_us(1000);
    if (depth > 1)
        jumper(depth - 1);
    else if (depth == 1)
        longjmp(jump_target, 1);
    traced_take_us(1); /* so that the call above is one */
}

KEPT static void landed(void)
{
    traced_take_us(1000);
}

void traced_jump(int depth)
{
    if (setjmp(jump_target) == 0)
        jumper(depth);
    landed();
}

KEPT static void brief(void)
{
    traced_take_us(1);
}

KEPT static void lengthy(void)
{
    traced_take_us(1000);
}

void traced_durations(void)
{
    brief();
    lengthy();
    brief();
}

KEPT void traced_inside_noise(void)
{
    traced_take_us(1000);
}

KEPT void traced_noise(void)
{
    traced_inside_noise();
}

KEPT void traced_on_signal(int number)
{
    (void)number;
    lengthy();
}

void traced_exits_thread(void)
{
    lengthy();
    pthread_exit(NULL);
}

void traced_calls(void (*callee)(void))
{
    callee();
}

KEPT void traced_sends(otel_set_header *set, void *carrier)
{
    otel_inject(NULL, set, carrier);
}

int traced_errno(void)
{
    errno = ERANGE;
    lengthy();
    return errno;
}

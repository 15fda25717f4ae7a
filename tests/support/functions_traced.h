/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/functions_traced.h - a program's functions, compiled with
 * -finstrument-functions, for functions_hooks_test.c.
 *
 * Threads:  any. */
#ifndef OTELI_TESTS_FUNCTIONS_TRACED_H
#define OTELI_TESTS_FUNCTIONS_TRACED_H

#include <otel/propagate.h>

/* What the functions call to take some of the fake clock's time. Not instrumented. */
void traced_take_us(unsigned us);

void traced_tree(void);      /* tree(first second(third)) */
int traced_countdown(int n); /* calls itself n times */
void traced_jump(int depth); /* longjmp over `depth` functions, and then another */
void traced_durations(void); /* functions of 1 us and of 1 ms */
void traced_noise(void);     /* excluded, and it calls traced_inside_noise */
void traced_inside_noise(void);
void traced_on_signal(int number);                      /* a signal handler */
void traced_exits_thread(void);                         /* never returns */
void traced_calls(void (*callee)(void));                /* calls it */
void traced_sends(otel_set_header *set, void *carrier); /* puts its own span into headers */
int traced_errno(void); /* sets errno, calls a function, and answers errno */

#endif

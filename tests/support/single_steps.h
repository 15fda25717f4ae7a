/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/single_steps.h - calls that a signal handler interrupts, after any instruction. The
 * processor takes each step alone, and says so by a signal. x86-64.
 *
 * Threads:  the test's. */
#ifndef OTELI_TESTS_SINGLE_STEPS_H
#define OTELI_TESTS_SINGLE_STEPS_H

#include <otel/trace.h>
#include <stdbool.h>

/* What is interrupted, and what comes before and after it, each time. */
struct single_steps {
    void (*prepare)(void);
    void (*act)(void);
    void (*finish)(void);
};

/* Something was not as it should be: said when nobody steps any more. */
extern bool single_steps_are_wrong;
void single_steps_check(bool is_right);

/* This span is the current one. */
void single_steps_check_current(otel_span span);

/* Do it again and again, and let the handler have its turn after some of its steps, the more of them the
 * earlier; with OTEL_TEST_LONG=1 after each, but for later ones of calls with many steps, as sanitizers
 * make them. */
void single_steps_interrupt(const struct single_steps *steps, void (*handle)(void));

#endif

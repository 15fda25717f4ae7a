/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/single_steps.c - the contract is in single_steps.h. */
#include "tests/support/single_steps.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

bool single_steps_are_wrong;

#if defined(__x86_64__)

enum { TRAP_FLAG = 0x100, RED_ZONE = 128, MANY_STEPS = 200, FEW_OF_THEM = 8, MOST_STEPS = 100000 };

static void (*handle_step)(void);
static unsigned step;
static unsigned chosen; /* after which the handler has its turn */
static volatile sig_atomic_t is_stepping;

void single_steps_check(bool is_right)
{
    single_steps_are_wrong |= !is_right;
}

void single_steps_check_current(otel_span span)
{
    const otel_span now = otel_current_span();
    single_steps_check(memcmp(now.opaque, span.opaque, 3 * sizeof now.opaque[0]) == 0);
}

static void on_step(int number, siginfo_t *info, void *context)
{
    ucontext_t *const interrupted = context;
    (void)number;
    (void)info;
    if (++step == chosen) {
        handle_step();
        is_stepping = 0;
    }
    if (is_stepping == 0)
        interrupted->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static __attribute__((noinline)) void begin_to_step(void)
{
    is_stepping = 1;
    __asm__ volatile("leaq -%c0(%%rsp), %%rsp\n\tpushfq\n\torq %1, (%%rsp)\n\tpopfq\n\t"
                     "leaq %c0(%%rsp), %%rsp"
                     :
                     : "i"(RED_ZONE), "i"(TRAP_FLAG)
                     : "memory", "cc");
}

void single_steps_interrupt(const struct single_steps *steps, void (*handle)(void))
{
    const struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    struct sigaction before;
    assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
    handle_step = handle;
    single_steps_are_wrong = false;
    chosen = step = 0;
    const bool is_long_form = getenv("OTEL_TEST_LONG") != NULL;
    do {
        steps->prepare();
        chosen += !is_long_form ? 1 + chosen / 2 : chosen < MANY_STEPS ? 1 : chosen / FEW_OF_THEM;
        step = 0;
        begin_to_step();
        steps->act();
        is_stepping = 0;
        steps->finish();
    } while (step == chosen && !single_steps_are_wrong && chosen < MOST_STEPS);
    assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
    if (single_steps_are_wrong)
        print_error("after step %u\n", chosen);
    assert_false(single_steps_are_wrong);
    assert_true(chosen > 5 && chosen < MOST_STEPS);
}

#endif

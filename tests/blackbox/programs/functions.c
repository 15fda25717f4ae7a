/* SPDX-License-Identifier: Apache-2.0 */
/* Three functions in one another and one that takes 20 ms, compiled so that each call of them is a
 * span. */
#include <otel/functions.h>
#include <otel/otel.h>
#include <time.h>

static volatile int calls;

__attribute__((noinline)) void innermost(void)
{
    calls++;
}

__attribute__((noinline)) void middle(void)
{
    innermost();
    calls++;
}

__attribute__((noinline)) void outermost(void)
{
    middle();
    calls++;
}

__attribute__((noinline)) void slow(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    calls++;
}

OTEL_NO_FUNCTION_SPAN int main(void)
{
    const otel_status status = otel_start(NULL);
    outermost();
    slow();
    (void)!otel_shutdown(10000);
    return status != OTEL_OK;
}

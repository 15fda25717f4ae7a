/* SPDX-License-Identifier: Apache-2.0 */
/* Three functions in one another, compiled so that each call of them is a span. */
#include <otel/functions.h>
#include <otel/otel.h>

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

OTEL_NO_FUNCTION_SPAN int main(void)
{
    const otel_status status = otel_start(NULL);
    outermost();
    (void)!otel_shutdown(10000);
    return status != OTEL_OK;
}

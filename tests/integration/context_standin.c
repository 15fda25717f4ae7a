/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/context_standin.c - defines the variable that readers look for as others than
 * otel-c might: compiled in several ways, and beside other thread-local memory.
 *
 * Threads:  any. */
#include "tests/integration/context_standin.h"

#include <string.h>

#ifndef CONTEXT_BESIDE
#define CONTEXT_BESIDE 8
#endif
#ifndef CONTEXT_ALIGNED
#define CONTEXT_ALIGNED 8
#endif

__thread const void *otel_thread_ctx_v1 CONTEXT_MODEL;
static __thread char beside[CONTEXT_BESIDE] __attribute__((aligned(CONTEXT_ALIGNED)));

void context_standin_set(const void *record)
{
    memset(beside, 1, sizeof beside);
    otel_thread_ctx_v1 = record;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/process_context/thread_context_check.c - otel_thread_context_selftest: look at what is
 * published as a reader outside would. Any thread. */
#include "api/thread/context_record.h"
#include "common/base/atomic.h"
#include "common/os/library.h"
#include "sdk/engine/current_engine.h"
#include "sdk/process_context/process_context.h"

#include <otel/thread_context.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static otel_status say(otel_status status, char *why, size_t size, const char *sentence)
{
    if (why != NULL && size != 0)
        snprintf(why, size, "%s", sentence);
    return status;
}

/* Whether the kernel shows a mapping of that name that begins at this address. */
static bool is_listed(const void *mapping)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    bool is_found = false;
    while (maps != NULL && !is_found && fgets(line, sizeof line, maps) != NULL) {
        is_found = strstr(line, OTELI_PROCESS_CONTEXT_NAME) != NULL &&
                   strtoull(line, NULL, 16) == (uintptr_t)mapping;
    }
    if (maps != NULL)
        fclose(maps);
    return is_found;
}

static const char *wrong_in(const struct oteli_process_context *context)
{
    if (!is_listed(context))
        return "the kernel lists no mapping of the process's context";
    if (memcmp(context->signature, OTELI_PROCESS_CONTEXT_NAME, sizeof context->signature) != 0 ||
        context->version != OTELI_PROCESS_CONTEXT_VERSION ||
        oteli_load_relaxed_64(&context->published_at) == 0)
        return "the header of the process's context is not what readers look for";
    return NULL;
}

/* Of the SDK that runs, if it is to publish one. */
static const char *wrong_in_process(void)
{
    const char *why = NULL;
    oteli_current_lock();
    const struct oteli_process_context *context = oteli_process_context_published();
    if (context != NULL)
        why = wrong_in(context);
    else if (oteli_process_context_was_refused())
        why = "the system refused the memory for the process's context";
    oteli_current_unlock();
    return why;
}

/* How the variable is reached needs no look: its declaration makes that initial-exec. */
static const char *wrong_in_symbols(void)
{
#if !defined(__x86_64__) && !defined(__aarch64__)
    return "readers know thread-local memory of x86-64 and AArch64 only";
#endif
    if (oteli_is_named("otel_thread_ctx_v1", oteli_thread_ctx_address(),
                       (oteli_code *)otel_thread_context_selftest))
        return NULL;
    return "otel_thread_ctx_v1 is not in the dynamic symbol table of what defines it: link with "
           "-Wl,--export-dynamic-symbol=otel_thread_ctx_v1, and not with -static";
}

otel_status otel_thread_context_selftest(char *why, size_t size)
{
    const char *wrong = wrong_in_symbols();
    if (wrong != NULL)
        return say(OTEL_ERROR_UNSUPPORTED, why, size, wrong);
    wrong = wrong_in_process();
    if (wrong != NULL)
        return say(OTEL_ERROR_SYSTEM, why, size, wrong);
    return say(OTEL_OK, why, size, "");
}

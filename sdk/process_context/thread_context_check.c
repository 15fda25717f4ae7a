/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/process_context/thread_context_check.c - otel_thread_context_selftest: look at what is
 * published as a reader outside would. Any thread. */
#include "sdk/process_context/thread_context_check.h"
#include "common/base/atomic.h"
#include "sdk/lifecycle/lifecycle.h"
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

/* A field's tag and what of it can be wrong in a payload; false: it is. Values of other kinds
 * than bytes are not in one. */
static bool next_bytes(const uint8_t **at, const uint8_t *end, uint64_t *field,
                       const uint8_t **bytes, size_t *length)
{
    uint64_t numbers[2] = {0, 0};
    for (unsigned i = 0; i < 2; i++) {
        unsigned shift = 0;
        do {
            if (*at == end || shift > 28)
                return false;
            numbers[i] |= (uint64_t)(**at & 0x7f) << shift;
            shift += 7;
        } while ((*(*at)++ & 0x80) != 0);
    }
    if ((numbers[0] & 7) != 2 || numbers[1] > (uint64_t)(end - *at))
        return false;
    *field = numbers[0] >> 3;
    *bytes = *at;
    *length = (size_t)numbers[1];
    *at += *length;
    return true;
}

static bool is_key(const uint8_t *pair, size_t length, const char *key)
{
    const uint8_t *at = pair;
    uint64_t field;
    const uint8_t *bytes;
    size_t size;
    return next_bytes(&at, pair + length, &field, &bytes, &size) && field == 1 &&
           size == strlen(key) && memcmp(bytes, key, size) == 0;
}

/* The resource, and the two attributes without which records cannot be read, each once. */
static bool decodes(const uint8_t *payload, size_t size)
{
    const uint8_t *at = payload;
    const uint8_t *const end = payload + size;
    unsigned resources = 0;
    unsigned schemas = 0;
    unsigned maps = 0;
    while (at != end) {
        uint64_t field;
        const uint8_t *bytes;
        size_t length;
        if (!next_bytes(&at, end, &field, &bytes, &length))
            return false;
        resources += field == 1;
        schemas += field == 2 && is_key(bytes, length, "threadlocal.schema_version");
        maps += field == 2 && is_key(bytes, length, "threadlocal.attribute_key_map");
    }
    return resources == 1 && schemas == 1 && maps == 1;
}

static const char *wrong_in(const struct oteli_process_context *context)
{
    if (!is_listed(context))
        return "the kernel lists no mapping of the process's context";
    if (memcmp(context->signature, OTELI_PROCESS_CONTEXT_NAME, sizeof context->signature) != 0 ||
        context->version != OTELI_PROCESS_CONTEXT_VERSION ||
        oteli_load_relaxed_64(&context->published_at) == 0)
        return "the header of the process's context is not what readers look for";
    if (context->payload_size > OTELI_PROCESS_CONTEXT_MAX ||
        !decodes((const uint8_t *)(uintptr_t)context->payload, context->payload_size))
        return "the process's context does not say how the records of threads are to be read";
    return NULL;
}

/* Of the SDK that runs, if it is to publish one. */
static const char *wrong_in_process(void)
{
    const char *why = NULL;
    oteli_lifecycle_lock();
    const struct oteli_process_context *context = oteli_process_context_published();
    if (context != NULL)
        why = wrong_in(context);
    else if (oteli_process_context_was_refused())
        why = "the system refused the memory for the process's context";
    oteli_lifecycle_unlock();
    return why;
}

otel_status otel_thread_context_selftest(char *why, size_t size)
{
    const char *wrong = oteli_thread_context_elf();
    if (wrong != NULL)
        return say(OTEL_ERROR_UNSUPPORTED, why, size, wrong);
    wrong = wrong_in_process();
    if (wrong != NULL)
        return say(OTEL_ERROR_SYSTEM, why, size, wrong);
    return say(OTEL_OK, why, size, "");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* api/publish.c - the pointer that readers look for, and the memory of the records. App threads. */
#include "api/publish.h"

#include <stdlib.h>

OTEL_THREAD_CONTEXT_TLS_ const otel_thread_context_record *otel_thread_ctx_v1;

/* The static library shows programs this name of it as otel_thread_ctx_v1, and reaches it by one that
 * is not exported (cmake/OneObject.cmake): a linker then knows the distance from the thread pointer,
 * where a static-pie would otherwise end before main, in a relocation that glibc cannot do there. */
extern OTEL_API OTEL_THREAD_CONTEXT_TLS_ const otel_thread_context_record *oteli_thread_ctx_exported
    __attribute__((alias("otel_thread_ctx_v1")));

const void *oteli_thread_ctx_address(void)
{
    return &otel_thread_ctx_v1;
}

/* Two to a cache line. */
union space {
    otel_thread_context_record record;
    uint8_t bytes[32];
};

bool oteli_records_make(struct oteli_open *places, uint32_t count)
{
    const size_t size = (count + (count & 1)) * sizeof(union space);
    union space *spaces = aligned_alloc(OTELI_CACHELINE, size);
    if (spaces == NULL)
        return false;
    memset(spaces, 0, size);
    for (uint32_t i = 0; i < count; i++)
        places[i].shown = places[i].record = &spaces[i].record;
    places[0].owns_records = true;
    return true;
}

void oteli_records_free(struct oteli_open *place)
{
    if (place->owns_records)
        free(place->record);
    place->owns_records = false;
}

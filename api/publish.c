/* SPDX-License-Identifier: Apache-2.0 */
/* api/publish.c - the pointer that readers look for, and the memory of the records. App threads. */
#include "api/publish.h"

#include <stdlib.h>

OTEL_THREAD_CONTEXT_TLS_ const otel_thread_context_record *otel_thread_ctx_v1;

bool oteli_publish_make(struct oteli_open *places, uint32_t count)
{
    const size_t size = count * sizeof(union oteli_published);
    union oteli_published *records = aligned_alloc(OTELI_CACHELINE, size);
    if (records == NULL)
        return false;
    memset(records, 0, size);
    for (uint32_t i = 0; i < count; i++)
        places[i].published = &records[i].record;
    places[0].owns_published = true;
    return true;
}

void oteli_publish_free(struct oteli_open *place)
{
    if (place->owns_published)
        free((void *)(uintptr_t)place->published);
    place->owns_published = false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/inspect.h - what is known by now of a span that is open: for http.h, and lent to
 * profiles, whose labels say it.
 *
 * Threads:  app threads; an entered span's own. Nothing is kept, nothing allocates. */
#ifndef OTELI_INSPECT_H
#define OTELI_INSPECT_H

#include "common/base/internal_api.h"
#include <otel/context.h>

struct oteli_peek {
    const char *key; /* asked for: an attribute that is a string; its bytes go to `value` */
    size_t key_length;
    char *value;
    size_t size;

    size_t length;     /* of the attribute as it is, which may be more than `size`; 0: none */
    uint64_t root_id;  /* the span in this process that all others of its trace on this thread come
                         from, itself perhaps; 0: not known */
    uint8_t status;    /* enum otel_span_status, so far */
    bool is_collected; /* its ids are of no trace (otel/lines.h) */
};

/* Nothing is known of a span that has ended, is only ids, or is local to another thread. */
OTELI_INTERNAL_API void oteli_span_peek(const otel_span *span, struct oteli_peek *peek);

#endif

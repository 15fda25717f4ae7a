/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/context_attributes.h - attributes of a context, for the spans that are started in it.
 *
 * They are values of the context under a key of their own. While the current context has some,
 * the thread's state says so (oteli_thread_scope), and no span takes the fast path: here its
 * options get them, before the sampler is asked.
 *
 * Threads:  any thread. */
#ifndef OTELI_CONTEXT_ATTRIBUTES_H
#define OTELI_CONTEXT_ATTRIBUTES_H

#include "api/thread/thread_state.h"
#include <otel/trace.h>

/* Options with the attributes of a context among their own. */
struct oteli_scoped {
    otel_span_options options;
    otel_attribute *attributes; /* allocated; NULL: they are in `few` */
    otel_attribute few[16];
};

/* `current`: the values of the current context; options may be NULL, and may say another. */
void oteli_scoped_begin(struct oteli_scoped *scoped, const otel_context_value *current,
                        const otel_span_options *options);
void oteli_scoped_end(struct oteli_scoped *scoped);

/* Whether a span with these options is started in a context that has some. */
static inline bool oteli_scoped_applies(const struct oteli_thread *thread,
                                        const otel_span_options *options)
{
    if (options != NULL && options->parent != NULL)
        return oteli_scoped_has(options->parent->values);
    return thread->is_scoped;
}

#endif

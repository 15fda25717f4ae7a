/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/span_run.c - a function that runs for a span. App threads. */
#include <otel/profile.h>

void *otel_span_run(otel_span span, void *(*function)(void *), void *argument)
{
    const otel_context_token token =
        otel_context_attach(otel_context_with_span(otel_current_context(), span));
    otel_profile_label label = otel_profile_label_for_span(&span);
    void *result = otel_profile_apply(&label, function, argument);
    otel_profile_label_release(&label);
    (void)otel_context_detach(token);
    return result;
}

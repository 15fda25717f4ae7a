/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/labels/span_run.c - a function that runs for a span. App threads.
 *
 * Compiled with -fexceptions: a C++ exception, and the end of the thread, that leave the function
 * take the context and the label back on their way. */
#include <otel/profile.h>

struct run {
    otel_context_token token;
    otel_profile_label label;
};

static void take_back(struct run *run)
{
    otel_profile_label_release(&run->label);
    (void)otel_context_detach(run->token);
}

void *otel_span_run(otel_span span, void *(*function)(void *), void *argument)
{
    __attribute__((cleanup(take_back))) struct run run = {
        .token = otel_context_attach(otel_context_with_span(otel_current_context(), span)),
        .label = otel_profile_label_for_span(&span)};
    return otel_profile_apply(&run.label, function, argument);
}

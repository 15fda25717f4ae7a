/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/call/culprit.h - whether to look for the span for which a request was refused.
 *
 * A receiver that cannot read one span refuses the whole request. Sent again in halves, and the
 * half that is refused in halves again, the request shows the span after log2(n) requests, and only
 * that span is lost. What that may cost is limited in each minute, and a receiver that refuses
 * every span is left in peace for the rest of it.
 *
 * Pure functions over a struct of the caller's, zero at first. */
#ifndef OTELI_CULPRIT_H
#define OTELI_CULPRIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oteli_culprit {
    uint64_t period_end_ns;
    unsigned halvings;  /* that are left in this period */
    unsigned fruitless; /* spans refused alone, since something was accepted */
    bool is_looking;    /* something was halved, and nothing was accepted since */
};

/* A request of so many spans was refused for its content. True: send it in halves. */
bool oteli_culprit_halve(struct oteli_culprit *culprit, size_t spans, uint64_t now_ns);

/* A request was accepted. */
void oteli_culprit_accepted(struct oteli_culprit *culprit);

#endif

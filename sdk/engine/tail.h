/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/engine/tail.h - the decision at the end of a local root: is its trace kept?
 * Asked by app threads; immutable once set. */
#ifndef OTELI_TAIL_H
#define OTELI_TAIL_H

#include "common/config/configuration.h"

struct oteli_tail_rules {
    uint64_t slower_than_ns; /* kept if the root took as long as this; UINT64_MAX: no such rule */
    bool errors;             /* kept if a span has failed */
    bool (*ask)(void *state, const otel_tail *tail); /* kept if it says so; or NULL */
    void *state;
};

void oteli_tail_init(struct oteli_tail_rules *rules, const struct oteli_config *config);

/* Whether there is anything to decide: without a rule every trace is kept. */
bool oteli_tail_has_rules(const struct oteli_tail_rules *rules);

/* One rule that says so is enough; the program is asked last, when no other does. */
bool oteli_tail_keeps(const struct oteli_tail_rules *rules, const otel_tail *tail);

#endif

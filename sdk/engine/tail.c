/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/engine/tail.c - the contracts are in sdk/engine/tail.h. App threads, but for the
 * start. */
#include "sdk/engine/tail.h"
#include "common/clock/time_units.h"

void oteli_tail_init(struct oteli_tail_rules *rules, const struct oteli_config *config)
{
    const int64_t slower_than_ms = config->tail_keep_slower_than;
    *rules = (struct oteli_tail_rules){
        .slower_than_ns = slower_than_ms == OTELI_UNLIMITED
                              ? UINT64_MAX
                              : (uint64_t)slower_than_ms * OTELI_NS_PER_MS,
        .errors = config->tail_keep_errors,
        .ask = config->tail_keep,
        .state = config->tail_keep_state,
    };
}

bool oteli_tail_has_rules(const struct oteli_tail_rules *rules)
{
    return rules->slower_than_ns != UINT64_MAX || rules->errors || rules->ask != NULL;
}

bool oteli_tail_keeps(const struct oteli_tail_rules *rules, const otel_tail *tail)
{
    if (rules->slower_than_ns != UINT64_MAX && tail->duration_ns >= rules->slower_than_ns)
        return true;
    if (rules->errors && tail->has_error)
        return true;
    return rules->ask != NULL && rules->ask(rules->state, tail);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/composable/rule.h - one rule of ComposableRuleBased: its conditions, and whether a span
 * meets them.
 *
 * Threads:  matching any thread; making and freeing start/stop only. */
#ifndef OTELI_RULE_H
#define OTELI_RULE_H

#include "common/base/pool.h"
#include <otel/sampler.h>

/* A rule whose texts are copies in the pool; its sampler is left out. False: no memory. */
bool oteli_rule_init(otel_sampling_rule *rule, struct oteli_pool *pool,
                     const otel_sampling_rule *from);

bool oteli_rule_matches(const otel_sampling_rule *rule, const otel_sampling_query *query);

#endif

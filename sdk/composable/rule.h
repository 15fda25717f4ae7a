/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/composable/rule.h - one rule of ComposableRuleBased: its conditions, and whether a span
 * meets them.
 *
 * Threads:  matching any thread; making and freeing start/stop only. */
#ifndef OTELI_RULE_H
#define OTELI_RULE_H

#include <otel/sampler.h>

/* A rule whose texts are copies of its own; its sampler is left out. After an error there is
 * nothing to free. OTEL_ERROR_NO_MEMORY. */
otel_status oteli_rule_init(otel_sampling_rule *rule, const otel_sampling_rule *from);
void oteli_rule_fini(otel_sampling_rule *rule);

bool oteli_rule_matches(const otel_sampling_rule *rule, const otel_sampling_query *query);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/builtin_sampler.h - the samplers of the specification that
 * OTEL_TRACES_SAMPLER names: always on or off, by ratio, and by the parent.
 *
 * Most of them decide by the kind of parent alone, so they become a table of five
 * decisions that threads copy; only a ratio is computed.
 * Source: OpenTelemetry specification, trace/sdk.md "Built-in samplers". */
#ifndef OTELI_BUILTIN_SAMPLER_H
#define OTELI_BUILTIN_SAMPLER_H

#include "api/thread/sdk_slot.h"
#include "common/base/ratio.h"
#include "common/config/configuration.h"

struct oteli_sampler {
    uint8_t decide[OTELI_PARENT_KINDS];
    struct oteli_ratio ratio;
    uint32_t has_warned; /* of a ratio below a parent; atomic */
};

/* By OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG. */
void oteli_sampler_init(struct oteli_sampler *sampler, const struct oteli_config *config);

/* Whether library otel-sdk makes a sampler of that name by itself. */
bool oteli_sampler_is_known(const char *name);

#endif

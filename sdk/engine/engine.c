/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/engine/engine.c - the contracts are in sdk/engine/engine.h. The worker, or the thread that
 * holds the mutex of a synchronous engine. */
#include "sdk/engine/engine.h"
#include "common/clock/clock.h"
#include "common/log.h"

void oteli_engine_drop(struct oteli_engine *engine, otel_drop_reason reason, uint64_t count)
{
    for (size_t i = 0; i < engine->pipeline_count; i++)
        oteli_count(&engine->pipelines[i].dropped[reason], count);
}

void oteli_engine_renew_clock(struct oteli_engine *engine)
{
    if (!oteli_clock_renew())
        return;
    oteli_sdk_reconsider_clock(&engine->sdk);
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                     "the kernel no longer keeps time with the TSC; using the monotonic clock");
}

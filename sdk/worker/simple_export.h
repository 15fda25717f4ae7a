/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/simple_export.h - the simple span processor: export each span on the thread that ends
 * it.
 *
 * Threads:  app threads, one at a time, under the engine's mutex. */
#ifndef OTELI_SIMPLE_EXPORT_H
#define OTELI_SIMPLE_EXPORT_H

#include "api/thread/sdk_slot.h"

struct oteli_engine;

void oteli_simple_export_one(struct oteli_sdk *sdk, const void *record);

/* The end of a synchronous engine that is to stop: flush its exporters and free them. Under the
 * mutex. */
void oteli_simple_finish(struct oteli_engine *engine);

/* The same without the mutex, if otel_shutdown has not waited for it and no export has it. */
void oteli_simple_finish_hanging(struct oteli_engine *engine);

#endif

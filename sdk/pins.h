/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/pins.h - what stays loaded while an SDK runs: the SDK itself and its exporters.
 *
 * The exporter thread runs code of both, which must not be unmapped when whoever called
 * otel_start is unloaded. It is pinned from otel_start until an otel_shutdown that leaves
 * nobody behind. Where it leaves its exporter thread behind, that code stays for good; where
 * threads have states that they give back when they end, the SDK stays until a shutdown that
 * finds none.
 *
 * Threads:  start/stop only, and never under the lifecycle lock. */
#ifndef OTELI_SDK_PINS_H
#define OTELI_SDK_PINS_H

#include "sdk/start.h"

struct oteli_pins;

/* NULL: no memory; then whoever unloads it must have shut it down before. */
struct oteli_pins *oteli_pins_take(const struct oteli_engine_options *options);
void oteli_pins_release(struct oteli_pins *pins);

/* After a shutdown. */
void oteli_pins_settle(struct oteli_pins *pins, bool somebody_is_left_behind);

#endif

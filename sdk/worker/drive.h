/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/drive.h - an engine without a thread: the calling thread is its worker.
 *
 * Threads:  any; one of them is the worker, the others wait for it. */
#ifndef OTELI_DRIVE_H
#define OTELI_DRIVE_H

#include <stdbool.h>
#include <stdint.h>

struct oteli_engine;

/* Make the descriptors, and have the waker use them. False: the machine has none to spare. */
bool oteli_drive_init(struct oteli_engine *engine);

/* Be the worker until `*counter` has reached `target`, it stopped, or the deadline comes. */
void oteli_drive_until(struct oteli_engine *engine, const uint64_t *counter, uint64_t target,
                       uint64_t deadline_ns);

#endif

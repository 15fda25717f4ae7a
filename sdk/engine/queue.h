/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/engine/queue.h - the producers' side of the batch span processor: what the API calls.
 *
 * Threads:  app threads, lock-free. */
#ifndef OTELI_QUEUE_H
#define OTELI_QUEUE_H

#include "api/thread/sdk_slot.h"

struct oteli_engine;

uint32_t oteli_queue_take_quota(struct oteli_sdk *sdk, uint32_t ended);
bool oteli_queue_reserve(struct oteli_sdk *sdk, uint32_t count);
void oteli_queue_announce(struct oteli_sdk *sdk, uint32_t spans);
void oteli_queue_give_room_back(struct oteli_sdk *sdk, uint32_t count);
void oteli_queue_request_drain(struct oteli_sdk *sdk);
void oteli_queue_free_room(struct oteli_engine *engine, uint64_t spans); /* any thread */
void oteli_queue_hand_over(struct oteli_sdk *sdk, struct oteli_line *line);
void oteli_queue_wake(struct oteli_sdk *sdk);

#endif

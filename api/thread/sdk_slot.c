/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/sdk_slot.c - the SDK slot: which engine is in it, whether its worker sleeps, and what
 * is in it after a fork. Start/stop only, but for what the worker says about its sleep;
 * oteli_sdk_revive app threads. */
#include "api/thread/sdk_slot.h"
#include "common/clock/clock.h"

_Alignas(OTELI_FORK_PAGE) union oteli_watched oteli_watched;
_Static_assert(sizeof oteli_watched == OTELI_FORK_PAGE, "a page and nothing else");

uint64_t oteli_full;
struct oteli_sdk *oteli_sdk_current;

/* The SDK's function of that name, as a number, because an atomic pointer to a function is
 * none. It is there while an SDK runs, and in a child until its fate is decided: 0 says that
 * no SDK will come back. */
static uint64_t revive;

static uint64_t stopped; /* the last generation that was */

uint32_t otel_is_in_use_;

void oteli_sdk_put(struct oteli_sdk *sdk)
{
    oteli_store_relaxed_32(&otel_is_in_use_, 1);
    oteli_store_relaxed_64(&oteli_asleep, sdk->starts_asleep ? sdk->generation : 0);
    oteli_store_relaxed_64(&revive, (uint64_t)(uintptr_t)sdk->revive);
    OTELI_STORE_RELEASE_PTR(&oteli_sdk_current, sdk);
    oteli_sdk_reconsider_clock(sdk);
    oteli_store_release_64(&oteli_generation, sdk->generation);
}

void oteli_sdk_reconsider_clock(const struct oteli_sdk *sdk)
{
    const bool is_plain = oteli_clock_source() == OTELI_CLOCK_COUNTER;
    oteli_store_relaxed_64(&oteli_fast_generation, is_plain ? sdk->generation : OTELI_NEVER_FAST);
}

void oteli_sdk_uninstall(void)
{
    oteli_store_relaxed_64(&oteli_fast_generation, 0);
    const uint64_t generation = oteli_exchange_full_64(&oteli_generation, 0);
    if (generation != 0 && generation != OTELI_REVIVE)
        oteli_store_relaxed_64(&stopped, generation);
    oteli_store_relaxed_64(&oteli_asleep, 0);
    oteli_store_relaxed_64(&oteli_full, 0);
    OTELI_STORE_RELEASE_PTR(&oteli_sdk_current, NULL);
    oteli_store_relaxed_64(&revive, 0);
    oteli_fence_full();
}

uint64_t oteli_sdk_stopped(void)
{
    return oteli_load_relaxed_64(&stopped);
}

bool oteli_sdk_is_asleep(const struct oteli_sdk *sdk)
{
    return oteli_load_acquire_64(&oteli_asleep) == sdk->generation;
}

bool oteli_sdk_set_asleep(const struct oteli_sdk *sdk, bool asleep)
{
    if (oteli_load_acquire_64(&oteli_generation) != sdk->generation)
        return false;
    return asleep ? oteli_cas_full_64(&oteli_asleep, 0, sdk->generation)
                  : oteli_cas_full_64(&oteli_asleep, sdk->generation, 0);
}

/* --- after a fork --- */

void oteli_sdk_forget(void)
{
    const bool comes_back = oteli_load_relaxed_64(&revive) != 0 && !oteli_fork_is_orphan();
    OTELI_STORE_RELEASE_PTR(&oteli_sdk_current, NULL);
    oteli_store_relaxed_64(&oteli_fast_generation, 0);
    oteli_store_relaxed_64(&oteli_asleep, 0);
    oteli_store_relaxed_64(&oteli_full, 0);
    oteli_store_relaxed_64(&stopped, 0);
    oteli_store_release_64(&oteli_generation, comes_back ? OTELI_REVIVE : 0);
}

void oteli_sdk_revive(void)
{
    void (*function)(void) = (void (*)(void))(uintptr_t)oteli_load_acquire_64(&revive);
    if (function != NULL)
        function();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/resource/service.c - service.instance.id: see detectors.h. Start/stop only; of a forked
 * child also on the thread that records its first span. */
#include "common/base/random.h"
#include "common/text/text.h"
#include "sdk/resource/detectors.h"

#include <inttypes.h>
#include <stdio.h>

bool oteli_uuid(char text[OTELI_UUID_SIZE])
{
    struct oteli_random random;
    if (!oteli_random_seed(&random))
        return false;
    uint64_t low;
    const uint64_t high = oteli_random_pair(&random, &low);
    const uint64_t versioned = (high & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
    const uint64_t variant = (low & (UINT64_MAX >> 2)) | UINT64_C(1) << 63;
    snprintf(text, OTELI_UUID_SIZE,
             "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64, versioned >> 32,
             versioned >> 16 & 0xffff, versioned & 0xffff, variant >> 48,
             variant & UINT64_C(0xffffffffffff));
    return true;
}

void oteli_detect_service(struct oteli_facts *facts)
{
    char id[OTELI_UUID_SIZE];
    if (oteli_uuid(id))
        oteli_facts_set_text(facts, "service.instance.id", oteli_slice_of(id));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* common/clock/clock_offsets.c - see clock_offsets.h. The exporter thread, when it starts. */
#include "common/clock/clock_offsets.h"

#include <sched.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum {
    MOST_CORES = 256, /* that are visited: more would not fit into the time */
    ROUNDS = 32       /* visits of a core, if there is time; by then the bounds are narrow */
};

/* A set of cores as the kernel takes it, larger than cpu_set_t. */
struct core_set {
    cpu_set_t parts[OTELI_CORES / CPU_SETSIZE];
};

struct bounds {
    int64_t low;
    int64_t high;
};

uint64_t oteli_core_offsets[OTELI_CORES];

/* The affinity that the visiting thread should have: what it had before, or what we gave it. */
static struct core_set ours;

static bool is_ours(void)
{
    struct core_set set;
    memset(&set, 0, sizeof set);
    return sched_getaffinity(0, sizeof set, set.parts) == 0 &&
           CPU_EQUAL_S(sizeof set, set.parts, ours.parts);
}

static bool go_to(uint32_t core)
{
    struct core_set set;
    memset(&set, 0, sizeof set);
    CPU_SET_S(core, sizeof set, set.parts);
    if (!is_ours() || sched_setaffinity(0, sizeof set, set.parts) != 0)
        return false;
    ours = set;
    return true;
}

static uint64_t read_counter(uint32_t *core)
{
#if defined(__x86_64__)
    uint32_t aux;
    const uint64_t ticks = __rdtscp(&aux);
    *core = aux % OTELI_CORES;
    return ticks;
#else
    *core = 0;
    return 0;
#endif
}

struct oteli_core_probe oteli_core_probe = {go_to, read_counter};

uint32_t oteli_core_now(void)
{
    const int core = sched_getcpu();
    return core < 0 ? 0 : (uint32_t)core % OTELI_CORES;
}

/* One visit. False: the thread was not where it should have been. */
static bool visit(const struct oteli_core_probe *probe, uint32_t reference, uint32_t core,
                  struct bounds *bounds)
{
    uint32_t at;
    if (!probe->go_to(reference))
        return false;
    const uint64_t before = probe->read(&at);
    if (at != reference || !probe->go_to(core))
        return false;
    const uint64_t there = probe->read(&at);
    if (at != core || !probe->go_to(reference))
        return false;
    const uint64_t after = probe->read(&at);
    if (at != reference)
        return false;
    const int64_t low = (int64_t)(there - after);
    const int64_t high = (int64_t)(there - before);
    if (low > bounds->low)
        bounds->low = low;
    if (high < bounds->high)
        bounds->high = high;
    return true;
}

/* Bounds that contradict each other are of a counter that does not go evenly: no offset
 * would put that right. */
static int64_t offset_between(const struct bounds *bounds)
{
    const bool is_certain = bounds->low > 0 || bounds->high < 0;
    if (!is_certain || bounds->low > bounds->high)
        return 0;
    return bounds->low + (bounds->high - bounds->low) / 2;
}

bool oteli_cores_compare(const struct oteli_core_probe *probe, const uint32_t *cores, size_t count,
                         uint64_t budget, const uint64_t *stop, int64_t *ahead)
{
    struct bounds bounds[MOST_CORES];
    if (count > MOST_CORES)
        count = MOST_CORES;
    for (size_t i = 0; i < count; i++)
        bounds[i] = (struct bounds){INT64_MIN, INT64_MAX};
    uint32_t at = 0;
    const uint64_t start = count > 1 && probe->go_to(cores[0]) ? probe->read(&at) : 0;
    bool has_time = start != 0;
    for (unsigned round = 0; round < ROUNDS && has_time; round++) {
        for (size_t i = 1; i < count && has_time; i++) {
            has_time = visit(probe, cores[0], cores[i], &bounds[i]) &&
                       probe->read(&at) - start < budget && oteli_load_relaxed_64(stop) == 0;
        }
    }
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        ahead[i] = offset_between(&bounds[i]);
        found = found || ahead[i] != 0;
    }
    return found;
}

static size_t list_cores(const struct core_set *set, uint32_t reference, uint32_t *cores)
{
    size_t count = 0;
    if (CPU_ISSET_S(reference, sizeof *set, set->parts))
        cores[count++] = reference;
    for (uint32_t core = 0; core < OTELI_CORES && count < MOST_CORES; core++)
        if (core != reference && CPU_ISSET_S(core, sizeof *set, set->parts))
            cores[count++] = core;
    return count;
}

static bool can_tell_core(void)
{
#if defined(__x86_64__)
    enum { RDTSCP = 1 << 27 };
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) != 0 && (edx & RDTSCP) != 0;
#else
    return false; /* the architecture has one counter for all cores */
#endif
}

bool oteli_cores_measure(uint32_t reference, uint64_t budget, const uint64_t *stop)
{
    uint32_t cores[MOST_CORES];
    int64_t ahead[MOST_CORES];
    struct core_set allowed;
    memset(&allowed, 0, sizeof allowed);
    if (!can_tell_core() || sched_getaffinity(0, sizeof allowed, allowed.parts) != 0)
        return false;
    const size_t count = list_cores(&allowed, reference % OTELI_CORES, cores);
    if (count < 2)
        return false;
    ours = allowed;
    const bool found = oteli_cores_compare(&oteli_core_probe, cores, count, budget, stop, ahead);
    if (is_ours())
        (void)sched_setaffinity(0, sizeof allowed, allowed.parts);
    for (size_t i = 0; i < count; i++)
        oteli_store_relaxed_64(&oteli_core_offsets[cores[i]], (uint64_t)ahead[i]);
    return found;
}

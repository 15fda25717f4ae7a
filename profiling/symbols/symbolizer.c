/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/symbolizer.c - the contract is in symbolizer.h. The profiler's thread; owns
 * nothing. */
#include "profiling/symbols/symbolizer.h"

#include "common/clock/clock.h"
#include "common/clock/thread_time.h"
#include "common/log.h"

#include <stdlib.h>
#include <unistd.h>

#define A_WHILE_NS (UINT64_C(60) * 1000 * 1000 * 1000)

static int compare_mappings(const void *one, const void *other)
{
    const struct oteli_elf_place *left = one;
    const struct oteli_elf_place *right = other;
    return (left->mapping > right->mapping) - (left->mapping < right->mapping);
}

/* Those of one mapping. */
static void find_in_file(struct oteli_known_mapping *known, struct oteli_elf_place *places,
                         size_t count, const struct oteli_elf_limit *limit, oteli_elf_take *take,
                         void *state)
{
    const int fd = oteli_mappings_open(known);
    const enum oteli_elf_outcome outcome =
        fd >= 0 ? oteli_elf_find_functions(fd, places, count, limit, take, state)
                : OTELI_ELF_NO_SYMBOLS;
    if (fd >= 0)
        close(fd);
    if (outcome == OTELI_ELF_DONE)
        return;
    known->read_again_ns = oteli_monotonic_ns() + A_WHILE_NS;
    if (known->path[0] == '/')
        OTELI_LOG(OTEL_LOG_DEBUG, "profiler: no names of functions in %s: %s", known->path,
                  outcome == OTELI_ELF_LATE ? "it took too long"
                  : fd >= 0                 ? "there is no symbol table"
                            : "the file is not there, or not the one that is mapped");
}

void oteli_symbolizer_find(const struct oteli_mappings *mappings, struct oteli_elf_place *places,
                           size_t count, uint64_t budget_ns, uint64_t deadline_ns,
                           oteli_elf_take *take, void *state)
{
    const struct oteli_elf_limit limit = {oteli_thread_time_ns() + budget_ns, deadline_ns};
    qsort(places, count, sizeof *places, compare_mappings);
    for (size_t first = 0, end; first < count && !oteli_elf_is_late(&limit); first = end) {
        struct oteli_known_mapping *known = oteli_mappings_at(mappings, places[first].mapping);
        end = first + 1;
        while (end < count && places[end].mapping == places[first].mapping)
            end++;
        if (oteli_monotonic_ns() >= known->read_again_ns)
            find_in_file(known, places + first, end - first, &limit, take, state);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/symbolizer.c - the contracts are in symbolizer.h. The profiler's thread; owns
 * what it remembers. */
#include "profiling/symbols/symbolizer.h"

#include "common/clock/clock.h"
#include "common/clock/thread_time.h"
#include "common/log.h"
#include "profiling/base/interner.h"
#include "profiling/symbols/elf_symbols.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is remembered, full, takes some 16 MiB. */
enum {
    IMAGES_MAX = 4096,
    IMAGE_BYTES_MAX = 2 * 1024 * 1024,
    PLACES_MAX = 128 * 1024,
    NAMES_MAX = 128 * 1024,
    NAME_BYTES_MAX = 8 * 1024 * 1024
};

/* A file is left alone for PARTS times as long as a reading took that was slow, and for a while if
 * it could not be read. */
enum { SLOW_NS = 10 * 1000 * 1000, PARTS = 300 };
#define A_WHILE_NS (UINT64_C(60) * 1000 * 1000 * 1000)

/* What a place is remembered by; in the tail the row of its name, 0: it has none. */
struct key {
    uint64_t image;
    uint64_t offset; /* in the file */
};

struct oteli_symbolizer {
    struct oteli_interner images; /* identity and path; in the tail when it may be read again */
    struct oteli_interner places;
    struct oteli_interner names;
    bool is_full;
};

/* Questions that are being answered. */
struct asking {
    struct oteli_symbolizer *names;
    uint32_t image; /* that is being looked at */
    struct oteli_elf_limit limit;
    oteli_symbolizer_take *take;
    void *state;
};

/* ---- what is remembered ------------------------------------------------------------------- */

static void forget(struct oteli_symbolizer *names)
{
    uint32_t index;
    oteli_interner_fini(&names->images);
    oteli_interner_fini(&names->places);
    oteli_interner_fini(&names->names);
    names->is_full = !oteli_interner_add(&names->names, "", 1, &index);
}

struct oteli_symbolizer *oteli_symbolizer_new(void)
{
    struct oteli_symbolizer *names = calloc(1, sizeof *names);
    if (names == NULL)
        return NULL;
    const uint32_t seed = (uint32_t)(oteli_monotonic_ns() ^ (uintptr_t)names >> 4);
    oteli_interner_init(&names->images, IMAGES_MAX, IMAGE_BYTES_MAX, sizeof(uint64_t), seed);
    oteli_interner_init(&names->places, PLACES_MAX, UINT32_MAX, sizeof(uint32_t), seed);
    oteli_interner_init(&names->names, NAMES_MAX, NAME_BYTES_MAX, 0, seed);
    forget(names);
    return names;
}

void oteli_symbolizer_free(struct oteli_symbolizer *names)
{
    if (names == NULL)
        return;
    oteli_interner_fini(&names->images);
    oteli_interner_fini(&names->places);
    oteli_interner_fini(&names->names);
    free(names);
}

static bool find_image(struct oteli_symbolizer *names, const struct oteli_known_mapping *known,
                       uint32_t *image)
{
    uint8_t key[sizeof known->identity + PATH_MAX];
    const size_t length = strnlen(known->path, PATH_MAX);
    memcpy(key, &known->identity, sizeof known->identity);
    memcpy(key + sizeof known->identity, known->path, length);
    return oteli_interner_add(&names->images, key, sizeof known->identity + length, image);
}

static bool may_read(const struct oteli_symbolizer *names, uint32_t image)
{
    uint64_t until_ns;
    memcpy(&until_ns, oteli_interner_tail(&names->images, image), sizeof until_ns);
    return oteli_monotonic_ns() >= until_ns;
}

static void leave_alone(struct oteli_symbolizer *names, uint32_t image, uint64_t for_ns)
{
    const uint64_t until_ns = oteli_monotonic_ns() + for_ns;
    memcpy(oteli_interner_tail(&names->images, image), &until_ns, sizeof until_ns);
}

/* That the place is called so, by the row of its name; 0: it keeps what it has, or has none. */
static void remember(const struct asking *asking, uint64_t offset, uint32_t name)
{
    const struct key key = {asking->image, offset};
    struct oteli_symbolizer *names = asking->names;
    uint32_t index;
    if (!oteli_interner_add(&names->places, &key, sizeof key, &index))
        names->is_full = true;
    else if (name != 0)
        memcpy(oteli_interner_tail(&names->places, index), &name, sizeof name);
}

/* Answer it from memory, if that says anything about it. */
static bool answer(const struct asking *asking, const struct oteli_elf_place *place)
{
    const struct key key = {asking->image, place->offset};
    const struct oteli_symbolizer *names = asking->names;
    uint32_t index;
    uint32_t name;
    if (!oteli_interner_find(&names->places, &key, sizeof key, &index))
        return false;
    memcpy(&name, oteli_interner_tail(&names->places, index), sizeof name);
    if (name != 0)
        asking->take(asking->state, place->index, oteli_interner_at(&names->names, name),
                     names->names.rows[name].length - 1);
    return true;
}

/* ---- what is read ------------------------------------------------------------------------- */

static void take_name(void *state, const struct oteli_elf_place *place, const char *name,
                      size_t length)
{
    const struct asking *asking = state;
    uint32_t index;
    if (oteli_interner_add(&asking->names->names, name, length + 1, &index))
        remember(asking, place->offset, index);
    else
        asking->names->is_full = true;
    asking->take(asking->state, place->index, name, length);
}

static void read_names(struct asking *asking, const struct oteli_known_mapping *known,
                       struct oteli_elf_place *places, size_t count)
{
    const uint64_t start_ns = oteli_thread_time_ns();
    enum oteli_elf_outcome outcome = OTELI_ELF_NO_SYMBOLS;
    const int fd = oteli_mappings_open(known);
    if (fd >= 0) {
        outcome = oteli_elf_find_functions(fd, places, count, &asking->limit, take_name, asking);
        close(fd);
    }
    const uint64_t took_ns = oteli_thread_time_ns() - start_ns;
    if (outcome == OTELI_ELF_NO_SYMBOLS) {
        leave_alone(asking->names, asking->image, A_WHILE_NS);
        if (known->path[0] == '/')
            OTELI_LOG(OTEL_LOG_DEBUG, "profiler: no names of functions in %s: %s", known->path,
                      fd >= 0 ? "there is no symbol table"
                              : "the file is not there, or not the one that is mapped");
        return;
    }
    for (size_t i = 0; i < count && outcome == OTELI_ELF_DONE; i++)
        remember(asking, places[i].offset, 0);
    if (outcome == OTELI_ELF_LATE || took_ns >= SLOW_NS)
        leave_alone(asking->names, asking->image, took_ns * PARTS);
}

/* ---- questions ---------------------------------------------------------------------------- */

/* Those of one mapping. */
static void answer_run(struct asking *asking, const struct oteli_known_mapping *known,
                       struct oteli_elf_place *places, size_t count)
{
    if (!find_image(asking->names, known, &asking->image)) {
        asking->names->is_full = true;
        return;
    }
    size_t unknown = 0;
    for (size_t i = 0; i < count; i++)
        if (!answer(asking, &places[i]))
            places[unknown++] = places[i];
    if (unknown != 0 && may_read(asking->names, asking->image))
        read_names(asking, known, places, unknown);
}

static int compare_mappings(const void *one, const void *other)
{
    const struct oteli_elf_place *left = one;
    const struct oteli_elf_place *right = other;
    return (left->mapping > right->mapping) - (left->mapping < right->mapping);
}

void oteli_symbolizer_find(struct oteli_symbolizer *names, const struct oteli_mappings *mappings,
                           struct oteli_elf_place *places, size_t count, uint64_t budget_ns,
                           uint64_t deadline_ns, oteli_symbolizer_take *take, void *state)
{
    struct asking asking = {.names = names,
                            .limit = {oteli_thread_time_ns() + budget_ns, deadline_ns},
                            .take = take,
                            .state = state};
    if (names->is_full)
        forget(names);
    qsort(places, count, sizeof *places, compare_mappings);
    for (size_t first = 0, end; first < count; first = end) {
        end = first + 1;
        while (end < count && places[end].mapping == places[first].mapping)
            end++;
        answer_run(&asking, oteli_mappings_at(mappings, places[first].mapping), places + first,
                   end - first);
    }
}

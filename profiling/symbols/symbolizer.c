/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/symbolizer.c - the contracts are in symbolizer.h. The profiler's thread; owns
 * what it remembers. */
#include "profiling/symbols/symbolizer.h"

#include "common/clock/clock.h"
#include "common/clock/thread_time.h"
#include "common/log.h"
#include "profiling/profile/interner.h"
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

/* A row of places: the key, and in the tail what it is called. */
struct place {
    uint32_t image;
    uint32_t unused;
    uint64_t offset; /* in the file */
    uint32_t name;   /* row; 0: none */
    uint32_t unused_too;
};
enum { PLACE_KEY = offsetof(struct place, name) };

struct oteli_names {
    struct oteli_interner images; /* identity and path; in the tail when it may be read again */
    struct oteli_interner places;
    struct oteli_interner names;
    struct oteli_names_counts counts;
    bool is_full;
};

/* Questions that are being answered. */
struct asking {
    struct oteli_names *names;
    const struct oteli_known_mapping *known; /* of those that are being looked at */
    uint32_t image;
    struct oteli_elf_place *places; /* those that nothing is remembered of; their indices are those
                                       of questions */
    size_t count;
    const struct oteli_name_question *questions;
    struct oteli_elf_limit limit;
    oteli_names_take *take;
    void *state;
};

/* ---- what is remembered ------------------------------------------------------------------- */

static void forget(struct oteli_names *names)
{
    uint32_t index;
    oteli_interner_clear(&names->images);
    oteli_interner_clear(&names->places);
    oteli_interner_clear(&names->names);
    names->is_full = !oteli_interner_add(&names->names, "", 1, &index);
}

struct oteli_names *oteli_names_new(void)
{
    struct oteli_names *names = calloc(1, sizeof *names);
    if (names == NULL)
        return NULL;
    const uint32_t seed = (uint32_t)(oteli_monotonic_ns() ^ (uintptr_t)names >> 4);
    oteli_interner_init(&names->images, IMAGES_MAX, IMAGE_BYTES_MAX, sizeof(uint64_t), seed);
    oteli_interner_init(&names->places, PLACES_MAX, PLACES_MAX * (uint32_t)sizeof(struct place),
                        sizeof(struct place) - PLACE_KEY, seed);
    oteli_interner_init(&names->names, NAMES_MAX, NAME_BYTES_MAX, 0, seed);
    forget(names);
    return names;
}

void oteli_names_free(struct oteli_names *names)
{
    if (names == NULL)
        return;
    oteli_interner_fini(&names->images);
    oteli_interner_fini(&names->places);
    oteli_interner_fini(&names->names);
    free(names);
}

struct oteli_names_counts oteli_names_counted(const struct oteli_names *names)
{
    return names->counts;
}

static bool find_image(struct oteli_names *names, const struct oteli_known_mapping *known,
                       uint32_t *image)
{
    uint8_t key[sizeof known->identity + PATH_MAX];
    const size_t length = strnlen(known->path, PATH_MAX);
    memcpy(key, &known->identity, sizeof known->identity);
    memcpy(key + sizeof known->identity, known->path, length);
    return oteli_interner_add(&names->images, key, sizeof known->identity + length, image);
}

/* Where it stands until when an image is left alone: anywhere, so it is copied. */
static void *rest_of(struct oteli_names *names, uint32_t image)
{
    uint8_t *key = oteli_interner_at(&names->images, image);
    return key + names->images.rows[image].length;
}

static bool may_read(struct oteli_names *names, uint32_t image)
{
    uint64_t until_ns;
    memcpy(&until_ns, rest_of(names, image), sizeof until_ns);
    return oteli_monotonic_ns() >= until_ns;
}

static void leave_alone(struct oteli_names *names, uint32_t image, uint64_t for_ns)
{
    const uint64_t until_ns = oteli_monotonic_ns() + for_ns;
    memcpy(rest_of(names, image), &until_ns, sizeof until_ns);
}

static struct place place_of(const struct asking *asking, uint64_t address)
{
    struct place place;
    memset(&place, 0, sizeof place);
    place.image = asking->image;
    place.offset = address - asking->known->start + asking->known->file_offset;
    return place;
}

/* That a place is called so, by the row of its name. */
static void remember(struct oteli_names *names, const struct place *place)
{
    uint32_t index;
    if (!oteli_interner_add(&names->places, place, PLACE_KEY, &index)) {
        names->is_full = true;
        return;
    }
    struct place *row = oteli_interner_at(&names->places, index);
    row->name = place->name;
}

/* Answer it from memory, if that says anything about it. */
static bool answer(struct asking *asking, const struct oteli_name_question *question)
{
    struct oteli_names *names = asking->names;
    const struct place key = place_of(asking, question->address);
    uint32_t index;
    if (!oteli_interner_find(&names->places, &key, PLACE_KEY, &index))
        return false;
    const struct place *row = oteli_interner_at(&names->places, index);
    names->counts.remembered++;
    if (row->name == 0)
        return true;
    names->counts.named++;
    asking->take(asking->state, question->index, oteli_interner_at(&names->names, row->name),
                 names->names.rows[row->name].length - 1);
    return true;
}

/* ---- what is read ------------------------------------------------------------------------- */

static void take_name(void *state, uint32_t index, const char *name, size_t length)
{
    const struct asking *asking = state;
    struct oteli_names *names = asking->names;
    const struct oteli_name_question *question = &asking->questions[index];
    struct place place = place_of(asking, question->address);
    names->counts.named++;
    if (oteli_interner_add(&names->names, name, length + 1, &place.name))
        remember(names, &place);
    else
        names->is_full = true;
    asking->take(asking->state, question->index, name, length);
}

/* Of what has been told in the meantime, a place keeps its name: it is there already. */
static void remember_nameless(struct asking *asking)
{
    for (size_t i = 0; i < asking->count; i++) {
        const struct place place =
            place_of(asking, asking->questions[asking->places[i].index].address);
        uint32_t index;
        if (!oteli_interner_add(&asking->names->places, &place, PLACE_KEY, &index))
            asking->names->is_full = true;
    }
}

static void read_names(struct asking *asking)
{
    struct oteli_names *names = asking->names;
    const uint64_t start_ns = oteli_thread_time_ns();
    enum oteli_elf_outcome outcome = OTELI_ELF_NO_SYMBOLS;
    const int fd = oteli_mappings_open(asking->known);
    if (fd >= 0) {
        outcome = oteli_elf_find_functions(fd, asking->places, asking->count, &asking->limit,
                                           take_name, asking);
        close(fd);
    }
    const uint64_t took_ns = oteli_thread_time_ns() - start_ns;
    if (outcome == OTELI_ELF_NO_SYMBOLS) {
        names->counts.refused++;
        leave_alone(names, asking->image, A_WHILE_NS);
        if (asking->known->path[0] == '/')
            OTELI_LOG(OTEL_LOG_DEBUG, "profiler: no names of functions in %s: %s",
                      asking->known->path,
                      fd >= 0 ? "there is no symbol table"
                              : "the file is not there, or not the one that is mapped");
        return;
    }
    if (outcome == OTELI_ELF_LATE)
        names->counts.late++;
    else
        remember_nameless(asking);
    if (outcome == OTELI_ELF_LATE || took_ns >= SLOW_NS)
        leave_alone(names, asking->image, took_ns * PARTS);
}

/* ---- questions ---------------------------------------------------------------------------- */

/* Those of one mapping. */
static void answer_run(struct asking *asking, size_t first, size_t end)
{
    const struct oteli_name_question *questions = asking->questions;
    if (!find_image(asking->names, asking->known, &asking->image)) {
        asking->names->is_full = true;
        return;
    }
    asking->count = 0;
    for (size_t i = first; i < end; i++) {
        if (answer(asking, &questions[i]))
            continue;
        struct oteli_elf_place *place = &asking->places[asking->count++];
        place->offset = place_of(asking, questions[i].address).offset;
        place->index = (uint32_t)i;
    }
    if (asking->count != 0 && may_read(asking->names, asking->image))
        read_names(asking);
}

static int compare_questions(const void *one, const void *other)
{
    const struct oteli_name_question *left = one;
    const struct oteli_name_question *right = other;
    return (left->mapping > right->mapping) - (left->mapping < right->mapping);
}

void oteli_names_find(struct oteli_names *names, const struct oteli_mappings *mappings,
                      struct oteli_name_question *questions, size_t count, uint64_t budget_ns,
                      uint64_t deadline_ns, oteli_names_take *take, void *state)
{
    struct asking asking = {.names = names,
                            .questions = questions,
                            .limit = {oteli_thread_time_ns() + budget_ns, deadline_ns},
                            .take = take,
                            .state = state};
    if (names->is_full) {
        names->counts.forgotten++;
        forget(names);
    }
    asking.places = malloc((count + 1) * sizeof *asking.places);
    if (asking.places == NULL)
        return;
    names->counts.asked += count;
    qsort(questions, count, sizeof *questions, compare_questions);
    for (size_t first = 0, end; first < count; first = end) {
        end = first + 1;
        while (end < count && questions[end].mapping == questions[first].mapping)
            end++;
        asking.known = oteli_mappings_at(mappings, questions[first].mapping);
        answer_run(&asking, first, end);
    }
    free(asking.places);
}

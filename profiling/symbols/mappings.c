/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/mappings.c - the contracts are in mappings.h. The profiler's thread; owns all
 * of it.
 *
 * Ranges are what the kernel has shown; of those that addresses were found in there is a known
 * mapping too, which is what others see, and which stays when its range does not. */
#include "profiling/symbols/mappings.h"

#include "common/clock/clock.h"
#include "common/os/loader_generation.h"
#include "profiling/symbols/maps.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAPS "/proc/self/maps"
#define MEMORY "/proc/self/mem"
#define PROGRAM "/proc/self/exe"
#define VDSO "[vdso]"
#define DELETED " (deleted)"

enum { RANGES_MAX = 16384, KNOWN_MAX = 4096, LEAST_ROOM = 64 };

/* How often at most: the loader is asked, and the file is read for addresses that are in nothing
 * known, of which there are many where the walk along the frames went astray. Reading takes at most
 * one part in PARTS of the time. */
enum { ASK_NS = 10 * 1000 * 1000, READ_NS = 500 * 1000 * 1000, PARTS = 500 };

struct range {
    uint64_t start;
    uint64_t limit;
    uint64_t file_offset;
    uint64_t inode;
    uint64_t image; /* address of the file's first byte; 0: not mapped */
    uint64_t device;
    uint32_t number; /* of the known mapping; 0: nobody has asked for it */
    char path[];     /* empty: memory that a program has filled itself */
};

struct ranges {
    struct range **all;
    size_t count;
    size_t room;
};

struct oteli_mappings {
    struct ranges live; /* by address */
    struct ranges gone; /* the newest last */
    struct oteli_known_mapping *known;
    size_t known_count;
    size_t known_room;
    uint64_t ask_at_ns;
    uint64_t read_at_ns;
    uint32_t reads;
    struct oteli_loader_count loader;
};

/* ---- lists -------------------------------------------------------------------------------- */

static bool grow(void **memory, size_t *room, size_t needed, size_t size)
{
    if (needed <= *room)
        return true;
    const size_t larger = *room != 0 ? *room * 2 : LEAST_ROOM;
    void *moved = realloc(*memory, larger * size);
    if (moved == NULL)
        return false;
    *memory = moved;
    *room = larger;
    return true;
}

/* Adopts the range, also when there is no room for it. */
static void push(struct ranges *list, struct range *range)
{
    void *all = list->all;
    const bool has_room = list->count < RANGES_MAX &&
                          grow(&all, &list->room, list->count + 1, sizeof(struct range *));
    list->all = all;
    if (has_room)
        list->all[list->count++] = range;
    else
        free(range);
}

static void clear(struct ranges *list)
{
    while (list->count != 0)
        free(list->all[--list->count]);
}

/* Of memory that has no name there is nothing to be remembered. */
static void push_gone(struct ranges *gone, struct range *range)
{
    if (range->path[0] != '\0')
        push(gone, range);
    else
        free(range);
}

static struct range *find_live(const struct ranges *list, uint64_t address)
{
    size_t low = 0;
    size_t high = list->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (list->all[middle]->limit <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < list->count && list->all[low]->start <= address ? list->all[low] : NULL;
}

static struct range *find_gone(const struct ranges *list, uint64_t address)
{
    for (size_t i = list->count; i-- != 0;)
        if (list->all[i]->start <= address && address < list->all[i]->limit)
            return list->all[i];
    return NULL;
}

/* ---- reading ------------------------------------------------------------------------------ */

struct reading {
    struct oteli_mappings *mappings;
    struct ranges before; /* what was live, of which `at` are done with */
    size_t at;
    uint64_t end; /* of the last range that was taken */
    uint64_t image;
    uint64_t image_inode;
    uint64_t image_device;
};

static bool is_equal(const struct range *one, const struct range *other)
{
    return one->start == other->start && one->limit == other->limit &&
           one->file_offset == other->file_offset && one->inode == other->inode &&
           one->device == other->device && one->image == other->image &&
           strcmp(one->path, other->path) == 0;
}

static struct range *make_range(const struct reading *reading, const struct oteli_maps_range *shown,
                                uint64_t device)
{
    const bool has_name = shown->inode != 0 || strcmp(shown->path, VDSO) == 0;
    const size_t length = has_name ? strlen(shown->path) : 0;
    struct range *range = calloc(1, sizeof *range + length + 1);
    if (range == NULL)
        return NULL;
    range->start = shown->start;
    range->limit = shown->limit;
    range->file_offset = shown->file_offset;
    range->inode = shown->inode;
    range->device = device;
    memcpy(range->path, shown->path, length);
    if (shown->inode == 0)
        range->image = has_name ? shown->start : 0;
    else if (reading->image_inode == shown->inode && reading->image_device == device)
        range->image = reading->image;
    return range;
}

/* The range that was known before and is still, or again, there. */
static struct range *take_known(struct reading *reading, const struct range *range)
{
    struct ranges *gone = &reading->mappings->gone;
    while (reading->at < reading->before.count &&
           reading->before.all[reading->at]->start <= range->start) {
        struct range *old = reading->before.all[reading->at++];
        if (is_equal(old, range))
            return old;
        push_gone(gone, old);
    }
    for (size_t i = 0; i < gone->count; i++)
        if (is_equal(gone->all[i], range)) {
            struct range *again = gone->all[i];
            gone->count--;
            memmove(gone->all + i, gone->all + i + 1, (gone->count - i) * sizeof gone->all[0]);
            return again;
        }
    return NULL;
}

static void take_range(void *state, const struct oteli_maps_range *shown)
{
    struct reading *reading = state;
    const uint64_t device = (uint64_t)shown->device_major << 32 | shown->device_minor;
    if (shown->file_offset == 0 && shown->inode != 0) {
        reading->image = shown->start;
        reading->image_inode = shown->inode;
        reading->image_device = device;
    }
    /* What changes while it is read may be shown twice. */
    if (!shown->is_executable || shown->start < reading->end)
        return;
    struct range *range = make_range(reading, shown, device);
    if (range == NULL)
        return;
    reading->end = range->limit;
    struct range *known = take_known(reading, range);
    if (known != NULL)
        free(range);
    push(&reading->mappings->live, known != NULL ? known : range);
}

static void read_maps(struct oteli_mappings *mappings)
{
    const uint64_t start_ns = oteli_monotonic_ns();
    struct reading reading = {.mappings = mappings, .before = mappings->live};
    mappings->live = (struct ranges){0};
    mappings->reads++;
    (void)oteli_maps_read(MAPS, take_range, &reading);
    while (reading.at < reading.before.count)
        push_gone(&mappings->gone, reading.before.all[reading.at++]);
    free(reading.before.all);
    const uint64_t end_ns = oteli_monotonic_ns();
    const uint64_t pause_ns = (end_ns - start_ns) * PARTS;
    mappings->read_at_ns = end_ns + (pause_ns > READ_NS ? pause_ns : READ_NS);
}

void oteli_mappings_follow(struct oteli_mappings *mappings)
{
    const uint64_t now_ns = oteli_monotonic_ns();
    if (now_ns < mappings->ask_at_ns)
        return;
    mappings->ask_at_ns = now_ns + ASK_NS;
    if (oteli_loader_has_moved(&mappings->loader))
        read_maps(mappings);
}

/* ---- what there is to know ---------------------------------------------------------------- */

static int open_regular(const char *path, struct stat *status)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && fstat(fd, status) == 0 && S_ISREG(status->st_mode))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The file that is mapped, if it can be had; -1: it cannot. */
static int open_file(const struct range *range, bool is_program)
{
    const char *const places[] = {range->path, is_program ? PROGRAM : range->path};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct stat status;
        const int fd = open_regular(places[i], &status);
        /* The device is another one than the kernel shows, on file systems with volumes. */
        if (fd >= 0 && status.st_ino == range->inode)
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

static bool identify_in_memory(const struct range *range, struct oteli_elf_identity *identity)
{
    if (range->image == 0)
        return false;
    const int fd = open(MEMORY, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const struct oteli_elf_source memory = {fd, range->image, true};
    const bool has_id = oteli_elf_read_build_id(&memory, identity);
    close(fd);
    return has_id;
}

static void identify(const struct range *range, struct oteli_known_mapping *known)
{
    if (identify_in_memory(range, &known->identity) || range->inode == 0)
        return;
    const int fd = open_file(range, known->is_program);
    if (fd < 0)
        return;
    const struct oteli_elf_source file = {fd, 0, false};
    if (!oteli_elf_read_build_id(&file, &known->identity))
        (void)oteli_elf_read_htlhash(fd, &known->identity);
    close(fd);
}

static bool is_of(int fd, const struct oteli_elf_identity *known)
{
    const struct oteli_elf_source file = {fd, 0, false};
    struct oteli_elf_identity identity;
    memset(&identity, 0, sizeof identity);
    if (known->build_id_length != 0)
        return oteli_elf_read_build_id(&file, &identity) &&
               identity.build_id_length == known->build_id_length &&
               memcmp(identity.build_id, known->build_id, known->build_id_length) == 0;
    return known->has_htlhash && oteli_elf_read_htlhash(fd, &identity) &&
           memcmp(identity.htlhash, known->htlhash, sizeof identity.htlhash) == 0;
}

int oteli_mappings_open(const struct oteli_known_mapping *known)
{
    const char *const places[] = {known->is_program ? PROGRAM : known->path, known->path};
    if (known->path[0] != '/')
        return -1;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct stat status;
        const int fd = open_regular(places[i], &status);
        if (fd >= 0 && is_of(fd, &known->identity))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

static bool is_the_program(const char *path)
{
    char program[PATH_MAX];
    const ssize_t length = readlink(PROGRAM, program, sizeof program);
    return length > 0 && (size_t)length == strlen(path) &&
           memcmp(program, path, (size_t)length) == 0;
}

/* Without what the kernel says behind the name of a file that is not there any more. */
static size_t length_of_name(const struct range *range, bool has_build_id)
{
    const size_t length = strlen(range->path);
    const size_t suffix = sizeof DELETED - 1;
    struct stat status;
    if (!has_build_id || length <= suffix ||
        memcmp(range->path + length - suffix, DELETED, suffix) != 0 ||
        (stat(range->path, &status) == 0 && status.st_ino == range->inode))
        return length;
    return length - suffix;
}

static bool is_known_as(const struct oteli_known_mapping *one,
                        const struct oteli_known_mapping *other)
{
    return one->start == other->start && one->limit == other->limit &&
           one->file_offset == other->file_offset && strcmp(one->path, other->path) == 0 &&
           memcmp(&one->identity, &other->identity, sizeof one->identity) == 0;
}

static uint32_t make_known(struct oteli_mappings *mappings, const struct range *range)
{
    struct oteli_known_mapping known = {.start = range->start,
                                        .limit = range->limit,
                                        .file_offset = range->file_offset,
                                        .is_program = is_the_program(range->path)};
    void *all = mappings->known;
    const bool has_room =
        mappings->known_count < KNOWN_MAX &&
        grow(&all, &mappings->known_room, mappings->known_count + 1, sizeof known);
    mappings->known = all;
    if (!has_room)
        return 0;
    memset(&known.identity, 0, sizeof known.identity);
    identify(range, &known);
    known.path = strndup(range->path, length_of_name(range, known.identity.build_id_length != 0));
    if (known.path == NULL)
        return 0;
    for (size_t i = 0; i < mappings->known_count; i++)
        if (is_known_as(&mappings->known[i], &known)) {
            free(known.path);
            return (uint32_t)i + 1;
        }
    mappings->known[mappings->known_count++] = known;
    return (uint32_t)mappings->known_count;
}

uint32_t oteli_mappings_find(struct oteli_mappings *mappings, uint64_t address, bool *is_code)
{
    struct range *range = find_live(&mappings->live, address);
    if (range == NULL)
        range = find_gone(&mappings->gone, address);
    if (range == NULL && oteli_monotonic_ns() >= mappings->read_at_ns) {
        read_maps(mappings);
        range = find_live(&mappings->live, address);
    }
    *is_code = range != NULL;
    if (range == NULL || range->path[0] == '\0')
        return 0;
    if (range->number == 0)
        range->number = make_known(mappings, range);
    return range->number;
}

uint32_t oteli_mappings_reads(const struct oteli_mappings *mappings)
{
    return mappings->reads;
}

const struct oteli_known_mapping *oteli_mappings_at(const struct oteli_mappings *mappings,
                                                    uint32_t number)
{
    return &mappings->known[number - 1];
}

/* ---- lifetime ----------------------------------------------------------------------------- */

struct oteli_mappings *oteli_mappings_new(void)
{
    return calloc(1, sizeof(struct oteli_mappings));
}

static void forget_known(struct oteli_mappings *mappings)
{
    const struct ranges *const lists[] = {&mappings->live, &mappings->gone};
    while (mappings->known_count != 0)
        free(mappings->known[--mappings->known_count].path);
    for (size_t list = 0; list < sizeof lists / sizeof lists[0]; list++)
        for (size_t i = 0; i < lists[list]->count; i++)
            lists[list]->all[i]->number = 0; /* of what is gone, too: it may be there again */
}

void oteli_mappings_settle(struct oteli_mappings *mappings)
{
    forget_known(mappings);
    read_maps(mappings);
    clear(&mappings->gone);
}

void oteli_mappings_free(struct oteli_mappings *mappings)
{
    if (mappings == NULL)
        return;
    forget_known(mappings);
    clear(&mappings->live);
    clear(&mappings->gone);
    free(mappings->live.all);
    free(mappings->gone.all);
    free(mappings->known);
    free(mappings);
}

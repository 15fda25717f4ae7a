/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/mappings.c - the contracts are in mappings.h. The profiler's thread; owns all
 * of it.
 *
 * Ranges are what the kernel has shown since the last settle, and what was live then. Those that
 * addresses were found in know from then on which build they are of. */
#include "profiling/symbols/mappings.h"

#include "common/clock/clock.h"
#include "common/os/loader_generation.h"
#include "profiling/symbols/maps.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAPS "/proc/self/maps"
#define MEMORY "/proc/self/mem"
#define PROGRAM "/proc/self/exe"
#define VDSO "[vdso]"
#define DELETED " (deleted)"

enum { RANGES_MAX = 16384, LEAST_ROOM = 64 };

/* How often at most: the loader is asked, and the file is read for addresses that are in nothing
 * known, of which there are many where the walk along the frames went astray. Reading takes at most
 * one part in PARTS of the time. */
enum { ASK_NS = 10 * 1000 * 1000, READ_NS = 500 * 1000 * 1000, PARTS = 500 };

struct range {
    struct oteli_known_mapping known; /* the path is empty where a program has filled it itself */
    uint64_t inode;
    uint64_t device;
    uint64_t image;  /* address of the file's first byte; 0: not mapped */
    uint32_t number; /* place among all, from 1 */
    bool is_live;
    bool is_identified;
    char path[];
};

struct ranges {
    struct range **ranges;
    size_t count;
    size_t room;
};

struct oteli_mappings {
    struct ranges all;  /* owned, the newest last */
    struct ranges live; /* of these, by address */
    uint64_t ask_at_ns;
    uint64_t read_at_ns;
    struct oteli_loader_count loader;
};

/* ---- lists -------------------------------------------------------------------------------- */

static bool append(struct ranges *list, struct range *range)
{
    if (list->count == RANGES_MAX)
        return false;
    if (list->count == list->room) {
        const size_t room = list->room != 0 ? 2 * list->room : LEAST_ROOM;
        struct range **ranges = realloc(list->ranges, room * sizeof *ranges);
        if (ranges == NULL)
            return false;
        list->ranges = ranges;
        list->room = room;
    }
    list->ranges[list->count++] = range;
    return true;
}

static struct range *find_live(const struct ranges *live, uint64_t address)
{
    size_t low = 0;
    size_t high = live->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (live->ranges[middle]->known.limit <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < live->count && live->ranges[low]->known.start <= address ? live->ranges[low]
                                                                          : NULL;
}

/* Of memory that has no name there is nothing to be remembered. */
static struct range *find_gone(const struct ranges *all, uint64_t address)
{
    for (size_t i = all->count; i-- != 0;) {
        struct range *range = all->ranges[i];
        if (range->known.start <= address && address < range->known.limit && range->path[0] != '\0')
            return range;
    }
    return NULL;
}

/* ---- reading ------------------------------------------------------------------------------ */

struct reading {
    struct oteli_mappings *mappings;
    struct ranges before; /* what was live */
    size_t count_before;  /* of all */
    uint64_t end;         /* of the last range that was taken */
    uint64_t image;
    uint64_t image_inode;
    uint64_t image_device;
};

/* Whether it is still this path, perhaps of a file that is deleted by now. */
static bool is_path(const char *path, const char *shown)
{
    const size_t length = strlen(path);
    return strncmp(path, shown, length) == 0 &&
           (shown[length] == '\0' || strcmp(shown + length, DELETED) == 0);
}

static bool is_equal(const struct range *known, const struct range *shown)
{
    return known->known.start == shown->known.start && known->known.limit == shown->known.limit &&
           known->known.file_offset == shown->known.file_offset && known->inode == shown->inode &&
           known->device == shown->device && known->image == shown->image &&
           is_path(known->path, shown->path);
}

static struct range *make_range(const struct reading *reading, const struct oteli_maps_range *shown)
{
    const bool has_name = shown->inode != 0 || strcmp(shown->path, VDSO) == 0;
    const size_t length = has_name ? strlen(shown->path) : 0;
    struct range *range = calloc(1, sizeof *range + length + 1);
    if (range == NULL)
        return NULL;
    memcpy(range->path, shown->path, length);
    range->known.start = shown->start;
    range->known.limit = shown->limit;
    range->known.file_offset = shown->file_offset;
    range->known.path = range->path;
    range->inode = shown->inode;
    range->device = shown->device;
    if (shown->inode == 0)
        range->image = has_name ? shown->start : 0;
    else if (reading->image_inode == shown->inode && reading->image_device == shown->device)
        range->image = reading->image;
    return range;
}

/* The range that was known before and is still, or again, there. */
static struct range *find_equal(const struct reading *reading, const struct range *range)
{
    struct range *before = find_live(&reading->before, range->known.start);
    if (before != NULL && is_equal(before, range))
        return before;
    for (size_t i = 0; i < reading->count_before; i++)
        if (is_equal(reading->mappings->all.ranges[i], range))
            return reading->mappings->all.ranges[i];
    return NULL;
}

static void take_range(void *state, const struct oteli_maps_range *shown)
{
    struct reading *reading = state;
    struct oteli_mappings *mappings = reading->mappings;
    if (shown->file_offset == 0 && shown->inode != 0) {
        reading->image = shown->start;
        reading->image_inode = shown->inode;
        reading->image_device = shown->device;
    }
    /* What changes while it is read may be shown twice. */
    if (shown->rights[2] != 'x' || shown->start < reading->end)
        return;
    struct range *range = make_range(reading, shown);
    if (range == NULL)
        return;
    reading->end = shown->limit;
    struct range *known = find_equal(reading, range);
    if (known != NULL || !append(&mappings->all, range))
        free(range);
    else
        known = range;
    if (known == NULL)
        return;
    known->number = known == range ? (uint32_t)mappings->all.count : known->number;
    known->is_live = append(&mappings->live, known);
}

static void read_maps(struct oteli_mappings *mappings)
{
    const uint64_t start_ns = oteli_monotonic_ns();
    struct reading reading = {
        .mappings = mappings, .before = mappings->live, .count_before = mappings->all.count};
    mappings->live = (struct ranges){0};
    for (size_t i = 0; i < mappings->all.count; i++)
        mappings->all.ranges[i]->is_live = false;
    (void)oteli_maps_read(MAPS, take_range, &reading);
    free(reading.before.ranges);
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

/* The file that is mapped, by its inode, or without one by what it is; -1: it cannot be had. The
 * device is another one than the kernel shows, on file systems with volumes. */
static int open_mapped(const struct oteli_known_mapping *known, uint64_t inode)
{
    const char *const places[] = {known->path, known->is_program ? PROGRAM : known->path};
    for (size_t i = 0; i < sizeof places / sizeof places[0] && known->path[0] == '/'; i++) {
        struct stat status;
        const int fd = open(places[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
            (inode != 0 ? status.st_ino == inode : is_of(fd, &known->identity)))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

int oteli_mappings_open(const struct oteli_known_mapping *known)
{
    return open_mapped(known, 0);
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

static bool is_the_program(const char *path)
{
    char program[PATH_MAX];
    const ssize_t length = readlink(PROGRAM, program, sizeof program);
    return length > 0 && (size_t)length == strlen(path) &&
           memcmp(program, path, (size_t)length) == 0;
}

/* Whether the kernel says it behind the name of a file that is not there any more. */
static bool is_deleted(const struct range *range)
{
    const size_t suffix = sizeof DELETED - 1;
    const size_t length = strlen(range->path);
    struct stat status;
    return length > suffix && strcmp(range->path + length - suffix, DELETED) == 0 &&
           (stat(range->path, &status) != 0 || status.st_ino != range->inode);
}

static void identify(struct range *range)
{
    struct oteli_known_mapping *known = &range->known;
    range->is_identified = true;
    known->is_program = is_the_program(range->path);
    if (!identify_in_memory(range, &known->identity) && range->inode != 0) {
        const int fd = open_mapped(known, range->inode);
        const struct oteli_elf_source file = {fd, 0, false};
        if (fd >= 0 && !oteli_elf_read_build_id(&file, &known->identity))
            (void)oteli_elf_read_htlhash(fd, &known->identity);
        if (fd >= 0)
            close(fd);
    }
    if (known->identity.build_id_length != 0 && is_deleted(range))
        range->path[strlen(range->path) - (sizeof DELETED - 1)] = '\0';
}

uint32_t oteli_mappings_find(struct oteli_mappings *mappings, uint64_t address, bool *is_code)
{
    struct range *range = find_live(&mappings->live, address);
    if (range == NULL)
        range = find_gone(&mappings->all, address);
    if (range == NULL && oteli_monotonic_ns() >= mappings->read_at_ns) {
        read_maps(mappings);
        range = find_live(&mappings->live, address);
    }
    *is_code = range != NULL;
    if (range == NULL || range->path[0] == '\0')
        return 0;
    if (!range->is_identified)
        identify(range);
    return range->number;
}

struct oteli_known_mapping *oteli_mappings_at(const struct oteli_mappings *mappings,
                                              uint32_t number)
{
    return &mappings->all.ranges[number - 1]->known;
}

/* ---- lifetime ----------------------------------------------------------------------------- */

struct oteli_mappings *oteli_mappings_new(void)
{
    return calloc(1, sizeof(struct oteli_mappings));
}

void oteli_mappings_settle(struct oteli_mappings *mappings)
{
    struct ranges *all = &mappings->all;
    size_t kept = 0;
    read_maps(mappings);
    for (size_t i = 0; i < all->count; i++) {
        struct range *range = all->ranges[i];
        if (!range->is_live) {
            free(range);
            continue;
        }
        all->ranges[kept++] = range;
        range->number = (uint32_t)kept;
    }
    all->count = kept;
}

void oteli_mappings_free(struct oteli_mappings *mappings)
{
    if (mappings == NULL)
        return;
    for (size_t i = 0; i < mappings->all.count; i++)
        free(mappings->all.ranges[i]);
    free(mappings->all.ranges);
    free(mappings->live.ranges);
    free(mappings);
}

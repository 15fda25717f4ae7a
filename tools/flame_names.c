/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame_names.c - see flame_names.h. One thread.
 *
 * Files are ELF of this machine's own kind, and are not trusted: whatever they point to is looked at
 * only if it is in the file. */
#include "tools/flame_names.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACES = 4, OBJECTS_MAX = 4096 };

/* Whatever an address in a file is a multiple of, files themselves keep to no more than this. */
typedef ElfW(Ehdr) elf_header __attribute__((aligned(PLACES)));
typedef ElfW(Phdr) elf_segment __attribute__((aligned(PLACES)));
typedef ElfW(Shdr) elf_section __attribute__((aligned(PLACES)));
typedef ElfW(Sym) elf_symbol __attribute__((aligned(PLACES)));
typedef ElfW(Nhdr) elf_note __attribute__((aligned(PLACES)));

struct function {
    uint64_t start;
    uint64_t size;
    const char *name;
};

/* A file in memory. */
struct image {
    const uint8_t *bytes; /* NULL: none */
    size_t size;
};

struct object {
    struct object *next;
    otel_slice path;     /* of the profile; owned, with: */
    otel_slice build_id; /* likewise: profiles may be of several builds */
    const char *fault;
    struct image file;
    struct image debug;
    struct function *functions;
    size_t count;
};

struct flame_names {
    struct object *objects; /* that was looked for last is the first */
    size_t count;
};

/* --- ELF --- */

static const void *part(const struct image *image, uint64_t offset, uint64_t size)
{
    if (image->bytes == NULL || offset > image->size || size > image->size - offset ||
        offset % PLACES != 0)
        return NULL;
    return image->bytes + offset;
}

static struct image map_file(const char *path)
{
    struct image image = {0};
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return image; /* to open a device, or a pipe, may do something */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return image;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED)
            image = (struct image){bytes, (size_t)status.st_size};
    }
    close(fd);
    return image;
}

static void unmap(struct image *image)
{
    if (image->bytes != NULL)
        munmap((void *)(uintptr_t)image->bytes, image->size);
}

static const elf_header *header_of(const struct image *image)
{
    const elf_header *header = part(image, 0, sizeof *header);
    if (header == NULL || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        header->e_ident[EI_DATA] != (__BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB))
        return NULL;
    return header;
}

static const elf_segment *segments_of(const struct image *image, size_t *count)
{
    const elf_header *header = header_of(image);
    *count = header != NULL && header->e_phentsize == sizeof(elf_segment) ? header->e_phnum : 0;
    return *count != 0 ? part(image, header->e_phoff, *count * sizeof(elf_segment)) : NULL;
}

static const elf_section *sections_of(const struct image *image, size_t *count)
{
    const elf_header *header = header_of(image);
    *count = header != NULL && header->e_shentsize == sizeof(elf_section) ? header->e_shnum : 0;
    return *count != 0 ? part(image, header->e_shoff, *count * sizeof(elf_section)) : NULL;
}

/* The GNU build id among the notes of a segment, in hexadecimal; "": it is not there. */
static void find_build_id(const struct image *image, const elf_segment *segment, char text[65])
{
    uint64_t at = segment->p_offset;
    const uint64_t end = at + segment->p_filesz;
    const elf_note *note;
    while (at < end && (note = part(image, at, sizeof *note)) != NULL) {
        const uint64_t name = at + sizeof *note;
        const uint64_t id = name + ((note->n_namesz + 3U) & ~UINT64_C(3));
        const uint8_t *bytes = part(image, id, note->n_descsz);
        const char *owner = part(image, name, note->n_namesz);
        if (bytes == NULL || owner == NULL)
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz <= 32 &&
            memcmp(owner, "GNU", 4) == 0) {
            for (size_t i = 0; i < note->n_descsz; i++)
                snprintf(text + 2 * i, 3, "%02x", bytes[i]);
            return;
        }
        at = id + ((note->n_descsz + 3U) & ~UINT64_C(3));
    }
}

static void build_id_of(const struct image *image, char text[65])
{
    size_t count;
    const elf_segment *segments = segments_of(image, &count);
    text[0] = '\0';
    for (size_t i = 0; segments != NULL && i < count && text[0] == '\0'; i++)
        if (segments[i].p_type == PT_NOTE)
            find_build_id(image, &segments[i], text);
}

static int compare_functions(const void *left, const void *right)
{
    const struct function *a = left;
    const struct function *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1; /* the one that says more first */
    return strcmp(a->name, b->name);
}

/* The functions of one table of symbols. */
static void read_table(struct object *object, const struct image *image,
                       const elf_section *sections, size_t section_count, const elf_section *table)
{
    const size_t count = table->sh_size / sizeof(elf_symbol);
    const elf_symbol *symbols = part(image, table->sh_offset, count * sizeof(elf_symbol));
    if (symbols == NULL || table->sh_link >= section_count)
        return;
    const elf_section *names = &sections[table->sh_link];
    if (names->sh_offset > image->size || names->sh_size > image->size - names->sh_offset ||
        names->sh_size == 0 || image->bytes[names->sh_offset + names->sh_size - 1] != '\0')
        return;
    object->functions = calloc(count + 1, sizeof *object->functions);
    for (size_t i = 0; object->functions != NULL && i < count; i++) {
        const unsigned type = symbols[i].st_info & 0xf;
        if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbols[i].st_shndx == SHN_UNDEF ||
            symbols[i].st_name >= names->sh_size)
            continue;
        object->functions[object->count++] =
            (struct function){symbols[i].st_value, symbols[i].st_size,
                              (const char *)image->bytes + names->sh_offset + symbols[i].st_name};
    }
    if (object->count != 0)
        qsort(object->functions, object->count, sizeof *object->functions, compare_functions);
}

/* The table of that type, if there are functions in it. */
static bool read_symbols(struct object *object, const struct image *image, uint32_t type)
{
    size_t count;
    const elf_section *sections = sections_of(image, &count);
    for (size_t i = 0; sections != NULL && object->count == 0 && i < count; i++)
        if (sections[i].sh_type == type && sections[i].sh_entsize == sizeof(elf_symbol)) {
            free(object->functions);
            object->functions = NULL;
            read_table(object, image, sections, count, &sections[i]);
        }
    return object->count != 0;
}

/* --- Objects --- */

static bool is_same(otel_slice left, otel_slice right)
{
    return left.length == right.length &&
           (left.length == 0 || memcmp(left.data, right.data, left.length) == 0);
}

static void load(struct object *object)
{
    char id[65] = "";
    char path[128];
    object->file = map_file(object->path.data);
    if (object->file.bytes == NULL) {
        object->fault = "cannot be read";
        return;
    }
    if (header_of(&object->file) == NULL) {
        object->fault = "is no program of this machine";
        return;
    }
    build_id_of(&object->file, id);
    if (object->build_id.length != 0 && !is_same(object->build_id, (otel_slice){id, strlen(id)})) {
        object->fault = "is not the one that ran: its build id is another";
        return;
    }
    if (read_symbols(object, &object->file, SHT_SYMTAB))
        return;
    if (strlen(id) > 2) {
        snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
        object->debug = map_file(path);
        if (read_symbols(object, &object->debug, SHT_SYMTAB))
            return;
    }
    if (!read_symbols(object, &object->file, SHT_DYNSYM))
        object->fault = "has no symbols";
}

static struct object *object_of(struct flame_names *names, const struct flame_mapping *mapping)
{
    for (struct object **at = &names->objects; *at != NULL; at = &(*at)->next) {
        struct object *found = *at;
        if (!is_same(found->path, mapping->file) || !is_same(found->build_id, mapping->build_id))
            continue;
        *at = found->next;
        found->next = names->objects;
        names->objects = found;
        return found;
    }
    if (names->count == OBJECTS_MAX)
        return NULL;
    struct object *object = calloc(1, sizeof *object);
    char *path = malloc(mapping->file.length + 1 + mapping->build_id.length);
    if (object == NULL || path == NULL) {
        free(object);
        free(path);
        return NULL;
    }
    memcpy(path, mapping->file.data, mapping->file.length);
    path[mapping->file.length] = '\0';
    object->path = (otel_slice){path, mapping->file.length};
    object->build_id = (otel_slice){path + mapping->file.length + 1, mapping->build_id.length};
    if (mapping->build_id.length != 0)
        memcpy(path + mapping->file.length + 1, mapping->build_id.data, mapping->build_id.length);
    load(object);
    object->next = names->objects;
    names->objects = object;
    names->count++;
    return object;
}

/* Where the linker put what is at this place of the file. */
static bool to_linked(const struct object *object, uint64_t offset, uint64_t *linked)
{
    size_t count;
    const elf_segment *segments = segments_of(&object->file, &count);
    for (size_t i = 0; segments != NULL && i < count; i++) {
        const elf_segment *segment = &segments[i];
        if (segment->p_type == PT_LOAD && offset >= segment->p_offset &&
            offset - segment->p_offset < segment->p_filesz) {
            *linked = offset - segment->p_offset + segment->p_vaddr;
            return true;
        }
    }
    return false;
}

struct flame_names *flame_names_new(void)
{
    return calloc(1, sizeof(struct flame_names));
}

void flame_names_free(struct flame_names *names)
{
    while (names != NULL && names->objects != NULL) {
        struct object *object = names->objects;
        names->objects = object->next;
        unmap(&object->file);
        unmap(&object->debug);
        free(object->functions);
        free((char *)(uintptr_t)object->path.data);
        free(object);
    }
    free(names);
}

otel_slice flame_names_find(struct flame_names *names, const struct flame_mapping *mapping,
                            uint64_t address)
{
    const otel_slice nothing = {0};
    if (mapping->file.length == 0 || mapping->file.data[0] != '/' || address < mapping->start)
        return nothing;
    const struct object *object = object_of(names, mapping);
    uint64_t linked;
    if (object == NULL || object->count == 0 ||
        !to_linked(object, address - mapping->start + mapping->offset, &linked))
        return nothing;
    size_t low = 0;
    size_t high = object->count;
    while (low < high) { /* the first that begins behind it */
        const size_t middle = low + (high - low) / 2;
        if (object->functions[middle].start <= linked)
            low = middle + 1;
        else
            high = middle;
    }
    /* Of several names for one place the first; a function without a size ends at the next. */
    while (low > 1 && object->functions[low - 2].start == object->functions[low - 1].start)
        low--;
    if (low == 0)
        return nothing;
    const struct function *function = &object->functions[low - 1];
    if (function->size != 0 && linked - function->start >= function->size)
        return nothing;
    return (otel_slice){function->name, strlen(function->name)};
}

/* Another build of it has a fault as well. */
static bool is_said(const struct flame_names *names, const struct object *object)
{
    const struct object *before = names->objects;
    while (before != object && (before->fault == NULL || !is_same(before->path, object->path)))
        before = before->next;
    return before != object;
}

const char *flame_names_fault(const struct flame_names *names, size_t index, otel_slice *file)
{
    for (const struct object *object = names->objects; object != NULL; object = object->next) {
        if (object->fault == NULL || is_said(names, object))
            continue;
        if (index-- == 0) {
            *file = object->path;
            return object->fault;
        }
    }
    return NULL;
}

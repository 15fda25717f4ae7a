/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_names.c - see flame_names.h. One thread. The door to elfutils for
 * otel-flame. */
#include "tools/flame/flame_names.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OBJECTS_MAX = 4096 };

struct object {
    struct object *next;
    otel_slice path;     /* of the profile; owned, with: */
    otel_slice build_id; /* profiles may be of several builds */
    const char *fault;
    Dwfl *dwfl;
    Dwfl_Module *module; /* NULL: no names */
};

struct flame_names {
    struct object *objects; /* the one that was looked for last is the first */
    size_t count;
};

/* Only the file of debug information that its build id names, and never one from the network. */
static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                         .find_debuginfo = dwfl_build_id_find_debuginfo,
                                         .section_address = dwfl_offline_section_address};

static bool is_same(otel_slice left, otel_slice right)
{
    return left.length == right.length &&
           (left.length == 0 || memcmp(left.data, right.data, left.length) == 0);
}

/* Regular files only: to open a device, or a pipe, may do something. */
static int open_regular(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return -1;
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static bool has_build_id(Dwfl_Module *module, otel_slice wanted)
{
    char text[2 * 64 + 1] = "";
    const unsigned char *id;
    GElf_Addr address;
    const int length = dwfl_module_build_id(module, &id, &address);
    for (int i = 0; i < length && i < 64; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
    return wanted.length == 0 || is_same(wanted, (otel_slice){text, strlen(text)});
}

/* What keeps names of the file from being found. NULL: nothing. */
static const char *load(struct object *object)
{
    const int fd = open_regular(object->path.data);
    if (fd < 0)
        return "cannot be read";
    object->dwfl = dwfl_begin(&callbacks);
    Dwfl_Module *module = dwfl_report_offline(object->dwfl, "", object->path.data, fd);
    if (module == NULL) {
        close(fd);
        return "is no program of this machine";
    }
    dwfl_report_end(object->dwfl, NULL, NULL);
    if (!has_build_id(module, object->build_id))
        return "is not the one that ran: its build id is another";
    if (dwfl_module_getsymtab(module) <= 1)
        return "has no symbols";
    object->module = module;
    return NULL;
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
    object->fault = load(object);
    object->next = names->objects;
    names->objects = object;
    names->count++;
    return object;
}

/* Where libdwfl has what is at this place of the file. */
static bool to_address(Dwfl_Module *module, uint64_t offset, GElf_Addr *address)
{
    GElf_Addr bias;
    Elf *elf = dwfl_module_getelf(module, &bias);
    size_t count = 0;
    if (elf == NULL || elf_getphdrnum(elf, &count) != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf, (int)i, &segment) != NULL && segment.p_type == PT_LOAD &&
            offset >= segment.p_offset && offset - segment.p_offset < segment.p_filesz) {
            *address = offset - segment.p_offset + segment.p_vaddr + bias;
            return true;
        }
    }
    return false;
}

struct flame_names *flame_names_new(void)
{
    elf_version(EV_CURRENT);
    return calloc(1, sizeof(struct flame_names));
}

void flame_names_free(struct flame_names *names)
{
    while (names != NULL && names->objects != NULL) {
        struct object *object = names->objects;
        names->objects = object->next;
        dwfl_end(object->dwfl);
        free((char *)(uintptr_t)object->path.data);
        free(object);
    }
    free(names);
}

otel_slice flame_names_find(struct flame_names *names, const struct flame_mapping *mapping,
                            uint64_t address)
{
    if (mapping->file.length == 0 || mapping->file.data[0] != '/' || address < mapping->start)
        return (otel_slice){0};
    const struct object *object = object_of(names, mapping);
    GElf_Addr at;
    if (object == NULL || object->module == NULL ||
        !to_address(object->module, address - mapping->start + mapping->offset, &at))
        return (otel_slice){0};
    const char *name = dwfl_module_addrname(object->module, at);
    return name != NULL ? (otel_slice){name, strlen(name)} : (otel_slice){0};
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

/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_names.c - see flame_names.h. One thread. The door to elfutils for
 * otel-flame. */
#include "tools/flame/flame_names.h"

#include "tools/flame/flame_text.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct flame_object {
    struct flame_object *next;
    char *path;     /* of the profile, with: */
    char *build_id; /* profiles may be of several builds */
    Dwfl *dwfl;
    Dwfl_Module *module; /* NULL: no names */
};

/* Only the file of debug information that its build id names, and never one from the network. */
static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                         .find_debuginfo = dwfl_build_id_find_debuginfo,
                                         .section_address = dwfl_offline_section_address};

/* Regular files only: to open a device, or a pipe, may do something. */
static int open_regular(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return -1;
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static bool has_build_id(Dwfl_Module *module, const char *wanted)
{
    char text[2 * 64 + 1] = "";
    const unsigned char *id;
    GElf_Addr address;
    const int length = dwfl_module_build_id(module, &id, &address);
    for (int i = 0; i < length && i < 64; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
    return wanted[0] == '\0' || strcmp(text, wanted) == 0;
}

/* What keeps names of the file from being found. NULL: nothing. */
static const char *load(struct flame_object *object)
{
    const int fd = open_regular(object->path);
    if (fd < 0)
        return "cannot be read";
    object->dwfl = dwfl_begin(&callbacks);
    Dwfl_Module *module = dwfl_report_offline(object->dwfl, "", object->path, fd);
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

/* Say, once for a file and of a few files, why boxes have addresses for names. */
static void say_fault(struct flame_names *names, const char *file, const char *reason)
{
    for (const struct flame_object *at = names->objects; at != NULL; at = at->next)
        if (at->module == NULL && strcmp(at->path, file) == 0)
            return;
    if (names->faults++ >= FLAME_FAULTS_MAX)
        return;
    fputs("otel-flame: no names of functions: ", stderr);
    flame_put_plain(stderr, file);
    fprintf(stderr, " %s\n", reason);
}

static void free_object(struct flame_object *object)
{
    dwfl_end(object->dwfl);
    free(object->path);
    free(object->build_id);
    free(object);
}

static struct flame_object *object_of(struct flame_names *names, const char *file,
                                      const char *build_id)
{
    for (struct flame_object **at = &names->objects; *at != NULL; at = &(*at)->next) {
        struct flame_object *found = *at;
        if (strcmp(found->path, file) != 0 || strcmp(found->build_id, build_id) != 0)
            continue;
        *at = found->next;
        found->next = names->objects;
        names->objects = found;
        return found;
    }
    struct flame_object *object = calloc(1, sizeof *object);
    if (object == NULL)
        return NULL;
    object->path = strdup(file);
    object->build_id = strdup(build_id);
    if (object->path == NULL || object->build_id == NULL) {
        free_object(object);
        return NULL;
    }
    const char *reason = load(object);
    if (reason != NULL)
        say_fault(names, object->path, reason);
    object->next = names->objects;
    names->objects = object;
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

void flame_names_fini(struct flame_names *names)
{
    while (names->objects != NULL) {
        struct flame_object *object = names->objects;
        names->objects = object->next;
        free_object(object);
    }
}

const char *flame_names_find(struct flame_names *names, const char *file, const char *build_id,
                             uint64_t offset)
{
    if (file[0] != '/')
        return NULL;
    const struct flame_object *object = object_of(names, file, build_id);
    GElf_Addr address;
    return object != NULL && object->module != NULL && to_address(object->module, offset, &address)
               ? dwfl_module_addrname(object->module, address)
               : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* common/os/library.c - see library.h: the door to the dynamic linker. */
#include "common/os/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

/* A program that is linked statically has none, and is never unloaded. */
#pragma weak dlopen
#pragma weak dlclose
#pragma weak dlsym
#if defined(__GLIBC__)
#pragma weak dladdr1
#else
#pragma weak dladdr
#endif

/* The name under which the dynamic linker knows the object. NULL: the program. */
static const char *name_of(const void *inside)
{
    Dl_info info;
#if defined(__GLIBC__)
    struct link_map *map = NULL;
    if (&dladdr1 == NULL || dladdr1(inside, &info, (void **)&map, RTLD_DL_LINKMAP) == 0)
        return NULL;
    return map != NULL && map->l_name[0] != '\0' ? map->l_name : NULL;
#else
    if (&dladdr == NULL || dladdr(inside, &info) == 0)
        return NULL;
    return info.dli_fname;
#endif
}

#if defined(__GLIBC__)
struct search {
    uintptr_t inside;
    uintptr_t linker; /* where the dynamic linker is */
    size_t objects;
    bool is_seen; /* the object that has `inside` */
    bool is_permanent;
};

static bool has(const struct dl_phdr_info *object, uintptr_t address)
{
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && address - object->dlpi_addr - part->p_vaddr < part->p_memsz)
            return true;
    }
    return false;
}

static int look_at(struct dl_phdr_info *object, size_t size, void *state)
{
    struct search *search = state;
    (void)size;
    if (search->objects++ == 0 && object->dlpi_name[0] != '\0')
        return 1; /* not the program: the list of a namespace that dlmopen made */
    if (object->dlpi_addr == search->linker) {
        search->is_permanent = search->is_seen;
        return 1;
    }
    search->is_seen = search->is_seen || has(object, search->inside);
    return 0;
}

/* Whether the program was started with the object. Those that are loaded later come at the end of
 * the list, so what is in front of the dynamic linker was there before. Where ours is behind it,
 * that says nothing. */
static bool is_permanent(const void *inside)
{
    struct search search = {.inside = (uintptr_t)inside, .linker = getauxval(AT_BASE)};
    dl_iterate_phdr(look_at, &search);
    return search.is_permanent;
}
#else
static bool is_permanent(const void *inside)
{
    (void)inside;
    return false;
}
#endif

/* dlopen looks up all that the object is linked with: 80 us where that is libcurl. */
void oteli_stay_loaded(oteli_code *inside)
{
    const void *address = (const void *)(uintptr_t)inside;
    if (inside == NULL || &dlopen == NULL || is_permanent(address))
        return;
    const char *name = name_of(address);
    if (name != NULL)
        (void)dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/* POSIX lets a function's address be a pointer to data here; C has no conversion for it. */
static oteli_code *find(void *library, const char *name)
{
    return (oteli_code *)(uintptr_t)dlsym(library, name);
}

/* A library from where this one is, whatever the linker's search finds first. */
static void *load_beside(const char *here, const char *library)
{
    char path[PATH_MAX];
    const char *slash = strrchr(here, '/');
    if (slash == NULL)
        return NULL;
    const int length = snprintf(path, sizeof path, "%.*s/%s", (int)(slash - here), here, library);
    return length < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

oteli_code *oteli_load(const char *library, const char *name, const char *own, oteli_code *inside)
{
    if (&dlopen == NULL || &dlclose == NULL || &dlsym == NULL)
        return NULL;
    void *own_library = dlopen(own, RTLD_LAZY | RTLD_NOLOAD);
    if (own_library == NULL)
        return NULL;
    const char *here = name_of((const void *)(uintptr_t)inside);
    void *here_library = here != NULL ? dlopen(here, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    const bool is_own = here_library == own_library;
    if (here_library != NULL)
        (void)dlclose(here_library);
    (void)dlclose(own_library);
    void *loaded = is_own ? load_beside(here, library) : NULL;
    if (loaded == NULL && is_own)
        loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    return loaded != NULL ? find(loaded, name) : NULL;
}

/* What this is linked into has a dynamic section, or there is none at these addresses. */
#pragma weak _DYNAMIC
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));

static uintptr_t dynamic_value(int64_t tag)
{
    for (const ElfW(Dyn) *entry = _DYNAMIC; entry != NULL && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag)
            return entry->d_un.d_val;
    return 0;
}

/* Some C libraries have added the object's address to what the section says, others have not. */
static uintptr_t dynamic_address(int64_t tag)
{
    const uintptr_t value = dynamic_value(tag);
    const uintptr_t base = (uintptr_t)__ehdr_start;
    return value < base ? value + base : value;
}

/* A static program may have a table of symbols of which dlsym knows nothing. The table ends where
 * that of the names begins, or before. */
static bool is_in_own_table(const char *name)
{
    const uintptr_t end = dynamic_address(DT_STRTAB);
    const size_t size = dynamic_value(DT_STRSZ);
    const ElfW(Sym) *symbol = (const ElfW(Sym) *)dynamic_address(DT_SYMTAB);
    for (; symbol != NULL && (uintptr_t)(symbol + 1) <= end; symbol++)
        if (symbol->st_shndx != SHN_UNDEF && symbol->st_name < size &&
            strcmp((const char *)end + symbol->st_name, name) == 0)
            return true;
    return false;
}

bool oteli_is_named(const char *name, const void *variable, oteli_code *inside)
{
    if (&dlopen == NULL || &dlclose == NULL || &dlsym == NULL)
        return is_in_own_table(name);
    if (dlsym(RTLD_DEFAULT, name) == variable)
        return true;
    void *own = dlopen(name_of((const void *)(uintptr_t)inside), RTLD_LAZY | RTLD_NOLOAD);
    const bool is_own = own != NULL && dlsym(own, name) == variable;
    if (own != NULL)
        (void)dlclose(own);
    return is_own || is_in_own_table(name);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* common/pin.c - see pin.h: the door to the dynamic linker. */
#include "common/pin.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

/* A program that is linked statically has none, and is never unloaded. */
#pragma weak dlopen
#pragma weak dlclose
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

void *oteli_pin(oteli_code *inside)
{
    if (&dlopen == NULL || &dlclose == NULL)
        return NULL;
    const char *name = name_of((const void *)(uintptr_t)inside);
    return name != NULL ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

void oteli_unpin(void *pin)
{
    if (pin != NULL)
        (void)dlclose(pin);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* common/os/library.h - keep a library loaded to which threads may still return, load one, and
 * ask whether a name leads to a variable.
 *
 * To stay loaded is one more reference to the loaded object, as dlopen counts them, which is never
 * given back: dlclose leaves the object mapped. An object that the program was started with needs
 * none. All calls wait for the dynamic linker's lock, so none is made while a lock of ours is held.
 *
 * Threads:  any thread. */
#ifndef OTELI_LIBRARY_H
#define OTELI_LIBRARY_H

#include "common/base/internal_api.h"
#include <stdbool.h>

/* Any function, for its address. */
typedef void oteli_code(void);

/* The object that has this function stays loaded until the process ends. NULL is allowed; without
 * memory for the reference nothing changes. */
OTELI_INTERNAL_API void oteli_stay_loaded(oteli_code *inside);

/* What the loader calls a library of ours: OTELI_LIBRARY("otel-config"). CMake says the version. */
#define OTELI_LIBRARY(name) "lib" name ".so." OTELI_SOVERSION

/* The function `name` of a library that is loaded for it, and stays. NULL: it cannot be loaded
 * or has no such function; or else `inside` is not in the shared library `own`, so that what is
 * loaded would bring a copy of it instead of finding it here. */
OTELI_INTERNAL_API oteli_code *oteli_load(const char *library, const char *name, const char *own,
                                          oteli_code *inside);

/* Whether the dynamic symbol table says `name` of the variable at this address: that of the program
 * and what it was started with, or else of the object that has the function `inside`. */
OTELI_INTERNAL_API bool oteli_is_named(const char *name, const void *variable, oteli_code *inside);

#endif

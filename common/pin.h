/* SPDX-License-Identifier: Apache-2.0 */
/* common/pin.h - keep a library loaded that other threads may still return to, and load one.
 *
 * A pin is one more reference to a loaded object, as dlopen counts them: dlclose of whoever
 * brought it in then leaves it where it is. Taking one and letting it go wait for whoever
 * loads libraries at that moment, so neither is done while one of our locks is held.
 *
 * Threads:  any thread. */
#ifndef OTELI_PIN_H
#define OTELI_PIN_H

#include "common/lent.h"

/* Any function, for its address. */
typedef void oteli_code(void);

/* Pin the object that has this function. NULL: it cannot be unloaded (the program itself),
 * or there is no memory. */
OTELI_LENT void *oteli_pin(oteli_code *inside);

/* NULL is allowed. The caller must be sure that its own code stays, or is no part of it. */
OTELI_LENT void oteli_unpin(void *pin);

/* What the loader calls a library of ours: OTELI_LIBRARY("otel-config"). CMake says the version. */
#define OTELI_LIBRARY(name) "lib" name ".so." OTELI_SOVERSION

/* The function `name` of a library that is loaded for it, and stays. NULL: it cannot be loaded
 * or has no such function; or else `inside` is not in the shared library `own`, so that what is
 * loaded would bring a copy of it instead of finding it here. */
OTELI_LENT oteli_code *oteli_load(const char *library, const char *name, const char *own,
                                  oteli_code *inside);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* functions/symbols.h - the names of functions, from the symbol tables of what is loaded.
 *
 * The program and its shared libraries, also those that were loaded later, are found through
 * the dynamic loader. Of each, .symtab is read if it is there (it has the static functions),
 * from the module itself or from the file of its build id below /usr/lib/debug, and otherwise
 * .dynsym. Nothing is ever fetched from elsewhere.
 *
 * Threads:  any thread, behind one lock, with file access and allocation: never an app
 *           thread's business while it traces. */
#ifndef OTELI_SYMBOLS_H
#define OTELI_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oteli_range {
    uint64_t begin;
    uint64_t end; /* the first address behind it */
};

/* Write the name of the function at an address, up to `size` bytes and without a NUL, as an
 * otel_name_resolver does. Its full length; 0: the address is in no module. Without a symbol
 * it is "module+0x123". Names are remembered, also those of modules that are gone. */
size_t oteli_symbols_name(const void *address, char *name, size_t size);

/* Call back for each function of each module. */
void oteli_symbols_each(void (*on_function)(void *state, const char *name,
                                            struct oteli_range function),
                        void *state);

/* How often modules have come or gone, as far as has been seen. */
uint64_t oteli_symbols_serial(void);

/* After fork: forget everything, without touching it. */
void oteli_symbols_forget(void);

/* Free everything. */
void oteli_symbols_fini(void);

#endif

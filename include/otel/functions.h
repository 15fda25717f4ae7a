/* SPDX-License-Identifier: Apache-2.0 */
/* otel/functions.h - a span for every function of a program that was compiled with
 * -finstrument-functions, and of which no line was changed.
 *
 *     cc -finstrument-functions shop.c -o shop $(pkg-config --libs otel-functions otel)
 *
 * Linking the library `otel-functions` is all that is needed; this header is for programs
 * that want more. OTEL_C_FUNCTIONS_MIN_DURATION, _MAX_DEPTH and _EXCLUDE say what is kept.
 * docs/FUNCTIONS.md has the rest.
 *
 * Threads:  any thread.
 * Signals:  a handler may call otel_functions_enable; the others read files and take locks.
 * Cost:     that of an entered span for each call of a function, while an SDK runs.
 * Errors:   nothing here fails.
 * Source:   __cyg_profile_func_enter and _exit, as GCC documents -finstrument-functions. */
#ifndef OTEL_FUNCTIONS_H
#define OTEL_FUNCTIONS_H

#include <otel/base.h>

/* In front of a function: it has no span, even where its file is compiled with the flag.
 * Needed for what an allocator or a signal handler on a stack of its own consists of. */
#if defined(__GNUC__)
#define OTEL_NO_FUNCTION_SPAN __attribute__((no_instrument_function))
#else
#define OTEL_NO_FUNCTION_SPAN
#endif

OTEL_BEGIN_DECLS

/* Choose whether functions that begin from now on have spans, on all threads. True at first. */
OTEL_API void otel_functions_enable(bool enabled);

/* Read the symbols of modules that were loaded since the start, so that the exclude list
 * holds for their functions at once. Without this call it holds from the first export of
 * their spans on. Slow: it reads files. */
OTEL_API void otel_functions_rescan(void);

/* Copy the name of the function at an address, cut to `size` and always ended by a NUL when
 * `size` is not zero. Returns its full length; 0: nothing is loaded there. Slow at the first
 * call for an address: it reads files. */
OTEL_API size_t otel_functions_name(const void *address, char *name, size_t size);

OTEL_END_DECLS
#endif

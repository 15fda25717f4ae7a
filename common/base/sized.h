/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/sized.h - structs of programs that were built with another version of them. Any
 * thread; no state. */
#ifndef OTELI_SIZED_H
#define OTELI_SIZED_H

#include <stddef.h>
#include <string.h>

/* A struct of which the program has `size` bytes and we know `known_size`: itself, or a copy in
 * `known` in which what the program does not have is zero. 0: the program has not said how many
 * there are; it has all of them. */
static inline const void *oteli_sized(const void *given, size_t size, void *known,
                                      size_t known_size)
{
    if (size == 0 || size >= known_size)
        return given;
    memset(known, 0, known_size);
    memcpy(known, given, size);
    return known;
}

#endif

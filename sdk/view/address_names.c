/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/view/address_names.c - the contracts are in sdk/view/address_names.h, and in
 * otel/trace.h for the resolver. */
#include "sdk/view/address_names.h"
#include "common/base/atomic.h"
#include "common/text/utf8.h"

#include <inttypes.h>
#include <otel/trace.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_REPLACED = 3 * OTELI_NAME_MOST }; /* of oteli_utf8_replace */

/* As a number, because an atomic pointer to a function is none. */
static uint64_t resolver;

void otel_set_name_resolver(otel_name_resolver *wanted)
{
    oteli_store_release_64(&resolver, (uint64_t)(uintptr_t)wanted);
}

static uintptr_t address_of(const void *bytes, size_t count)
{
    uintptr_t address = 0;
    memcpy(&address, bytes, count < sizeof address ? count : sizeof address);
    return address;
}

size_t oteli_name_in_hex(const void *bytes, size_t count, char name[OTELI_HEX_MOST])
{
    return (size_t)snprintf(name, OTELI_HEX_MOST, "0x%" PRIxPTR, address_of(bytes, count));
}

/* A text of more than OTELI_NAME_MOST bytes, cut there, but not inside of a character. */
static size_t cut(const char *text)
{
    const size_t good = oteli_utf8_valid_prefix(text, OTELI_NAME_MOST);
    return OTELI_NAME_MOST - good < 4 ? good : OTELI_NAME_MOST;
}

size_t oteli_name_look_up(const void *bytes, size_t count, char name[OTELI_NAME_MOST])
{
    otel_name_resolver *resolve = (otel_name_resolver *)(uintptr_t)oteli_load_acquire_64(&resolver);
    size_t length = 0;
    if (resolve != NULL)
        length = resolve((const void *)address_of(bytes, count), name, OTELI_NAME_MOST);
    if (length == 0)
        return oteli_name_in_hex(bytes, count, name);
    if (length > OTELI_NAME_MOST)
        length = cut(name);
    if (oteli_utf8_is_valid(name, length))
        return length;
    char replaced[LONGEST_REPLACED];
    length = oteli_utf8_replace(name, length, replaced);
    if (length > OTELI_NAME_MOST)
        length = cut(replaced);
    memcpy(name, replaced, length);
    return length;
}

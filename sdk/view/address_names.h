/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/view/address_names.h - the names of addresses. The worker, or the thread that holds the
 * mutex of a synchronous engine. */
#ifndef OTELI_ADDRESS_NAMES_H
#define OTELI_ADDRESS_NAMES_H

#include <stddef.h>

enum { OTELI_NAME_MOST = 512 };

/* Write the name of an address, which is given by its bytes in memory: what the program's
 * resolver says, made valid UTF-8 and cut to OTELI_NAME_MOST bytes, or "0x…". Returns its
 * length. */
size_t oteli_name_look_up(const void *bytes, size_t count, char name[OTELI_NAME_MOST]);

/* "0x…" of an address, which is given by its bytes in memory. Returns its length. */
enum { OTELI_HEX_MOST = sizeof "0x" + 2 * sizeof(void *) };
size_t oteli_name_in_hex(const void *bytes, size_t count, char name[OTELI_HEX_MOST]);

#endif

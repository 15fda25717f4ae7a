/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/sha256.h - SHA-256 of a few kilobytes, to tell programs without a build id
 * apart.
 *
 * Nothing secret goes through it, so it is not worth a library of cryptography in every program
 * that is profiled.
 *
 * Threads:  any; no state.
 * Source:   FIPS 180-4, 6.2. */
#ifndef OTELI_SHA256_H
#define OTELI_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { OTELI_SHA256_BYTES = 32 };

void oteli_sha256(const void *bytes, size_t length, uint8_t digest[OTELI_SHA256_BYTES]);

#endif

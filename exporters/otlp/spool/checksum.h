/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/checksum.h - a checksum of bytes that come in pieces: zlib's CRC-32.
 *
 * Threads:  any thread; no state. */
#ifndef OTELI_CHECKSUM_H
#define OTELI_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* `before` is that of what came before, 0 at the beginning. */
uint32_t oteli_checksum(uint32_t before, const void *bytes, size_t length);

#endif

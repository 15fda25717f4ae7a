/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/checksum.c - see checksum.h. */
#include "exporters/otlp/spool/checksum.h"

#include <zlib.h>

uint32_t oteli_checksum(uint32_t before, const void *bytes, size_t length)
{
    return (uint32_t)crc32_z(before, bytes, length);
}

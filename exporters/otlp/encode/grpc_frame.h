/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/encode/grpc_frame.h - what gRPC puts in front of a message: whether it is
 * compressed, and its length in big-endian.
 *
 * Source:   grpc, doc/PROTOCOL-HTTP2.md, "Length-Prefixed-Message". */
#ifndef OTELI_GRPC_FRAME_H
#define OTELI_GRPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OTELI_GRPC_FRAME = 5 }; /* bytes in front of a message */

/* Write the frame of a message of this length; gives where the message goes. A message has less
 * than 4 GiB. */
static inline uint8_t *oteli_grpc_put_frame(uint8_t *at, bool is_compressed, size_t length)
{
    *at++ = is_compressed;
    for (int shift = 24; shift >= 0; shift -= 8)
        *at++ = (uint8_t)(length >> shift);
    return at;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_check.h - is a request what it should be, before anything decodes it?
 *
 * protobuf-c decodes by recursion, cuts strings at their first NUL and does not look
 * whether they are UTF-8. So the bytes are walked first, along the descriptors and with a
 * stack of our own: lengths, nesting, the number of values, every string, every id. */
#ifndef VIEW_CHECK_H
#define VIEW_CHECK_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

enum { VIEW_CHECK_DEPTH_MAX = 64, VIEW_CHECK_VALUES_MAX = 4000000 };

/* Check a message of this type. False: `why` says what is wrong, for people. */
bool view_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t length,
                char *why, size_t why_size);

#endif

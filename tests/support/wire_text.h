/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/wire_text.h - messages of protobuf, written as text:
 *
 *     5'name'     field 5, a text           6=-1      a varint
 *     1x00ff      bytes                     7@1000    64 bits, fixed; 4~0.1: a double
 *     9{1'k' 2{}} a message                 16^769    32 bits, fixed
 *     9[{1'k'} {1'l'}]  some of one field
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_TESTS_WIRE_TEXT_H
#define OTELI_TESTS_WIRE_TEXT_H

#include <otel/sdk.h>

enum { WIRE_TEXT_MAX = 16384 };

/* The message, until the next call. The format is printf's. */
otel_slice wire_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

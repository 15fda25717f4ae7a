/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/encode/request_split.h - a request that has some of the spans of another one,
 * without making anything of them but bytes. For requests that are too large for their receiver.
 *
 * Pure functions; bytes that are no request are no harm. */
#ifndef OTELI_REQUEST_SPLIT_H
#define OTELI_REQUEST_SPLIT_H

#include <stddef.h>
#include <stdint.h>

/* How many spans an ExportTraceServiceRequest, as protobuf, has; 0: none, or it is no such
 * thing. */
uint64_t oteli_request_spans(const void *request, size_t length);

/* Write the request that has `count` of its spans from number `first` on, with their resources and
 * scopes, and give its length. `out` NULL: only that, which is not more than the request's own. 0:
 * there are none, or it is no request. */
size_t oteli_request_part(const void *request, size_t length, uint64_t first, uint64_t count,
                          uint8_t *out);

#endif

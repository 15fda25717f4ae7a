/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol/grpc.h - what gRPC puts around a message: its frame, its codes, and what
 * it says in trailers.
 *
 * Pure functions. What they read comes from the receiver and is checked.
 * Source:   grpc, doc/PROTOCOL-HTTP2.md, doc/statuscodes.md and doc/http-grpc-status-mapping.md;
 *           google/rpc/status.proto and error_details.proto. */
#ifndef OTELI_GRPC_H
#define OTELI_GRPC_H

#include "exporters/otlp/protocol/response.h"

enum {
    OTELI_GRPC_OK = 0,
    OTELI_GRPC_UNKNOWN = 2,
    OTELI_GRPC_INVALID_ARGUMENT = 3,
    OTELI_GRPC_RESOURCE_EXHAUSTED = 8,
    OTELI_GRPC_OUT_OF_RANGE = 11,
    OTELI_GRPC_UNIMPLEMENTED = 12,
    OTELI_GRPC_INTERNAL = 13
};

/* The message in a body, as far as it is there; empty where there is none. */
struct oteli_response_body oteli_grpc_message(const struct oteli_response_body *body,
                                              bool *is_compressed);

/* The code that a grpc-status says; what is no code of gRPC is UNKNOWN. */
int oteli_grpc_code(const char *grpc_status);

/* The code for an HTTP status other than 200 of an answer without grpc-status. */
int oteli_grpc_code_of_http(int status);

/* Its name, "UNAVAILABLE" for example; and whether OTLP wants a retry after it. RESOURCE_EXHAUSTED
 * is one that is to be retried if there is a delay, and only then. */
const char *oteli_grpc_code_name(int code);
bool oteli_grpc_code_is_retryable(int code);

/* A percent-encoded grpc-message, decoded and printable, as much of it as fits. Returns `out`. */
const char *oteli_grpc_text(const char *grpc_message, char *out, size_t size);

/* Whether there is a RetryInfo in grpc-status-details-bin, and its delay. */
bool oteli_grpc_retry_ms(const char *details, uint64_t *delay_ms);

#endif

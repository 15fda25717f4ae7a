/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/call/retry.h - how long to wait before trying again.
 *
 * Pure functions: time and chance come in as numbers.
 * Source: opentelemetry-proto, docs/specification.md "Failures" and "OTLP/HTTP
 * Throttling"; RFC 9110, 10.2.3 (Retry-After) and 5.6.7 (dates); Brooker, "Exponential Backoff And
 * Jitter", 2015. */
#ifndef OTELI_RETRY_H
#define OTELI_RETRY_H

#include "exporters/otlp/protocol/protocol.h"

/* The wait before retry number `retry` (0 is the first), with full jitter: `random` spreads it
 * evenly from 0.1 s to an upper limit, which is 1 s at first, grows by half with each retry, and
 * ends at 10 s. */
uint64_t oteli_retry_backoff_ms(unsigned retry, uint32_t random);

/* Read a Retry-After value: seconds, or a date as libcurl reads it. A date that has passed is no
 * wait. false: it is neither, or too large a number. */
bool oteli_retry_after_ms(const char *text, int64_t now_unix_s, uint64_t *wait_ms);

/* Read the Retry-After of an outcome that has one, and forget the text. */
void oteli_retry_read(struct oteli_outcome *outcome, int64_t now_unix_s);

/* The back-off, and not less than what the server asks for plus up to a fifth of it, so
 * that those it turned away together do not come back together. */
uint64_t oteli_retry_wait_ms(unsigned retry, uint64_t asked_ms, uint32_t random);

/* How long one attempt may take to connect so that another still fits into what is left:
 * half of it, at most 5 s, at least 1 ms. */
int64_t oteli_retry_connect_ms(uint64_t left_ms);

#endif

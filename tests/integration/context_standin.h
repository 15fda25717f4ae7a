/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/context_standin.h - the variable of readers, without otel-c.
 *
 * Threads:  any. */
#ifndef OTELI_TESTS_CONTEXT_STANDIN_H
#define OTELI_TESTS_CONTEXT_STANDIN_H

#ifdef CONTEXT_INITIAL_EXEC
#define CONTEXT_MODEL __attribute__((tls_model("initial-exec")))
#else
#define CONTEXT_MODEL
#endif

extern __thread const void *otel_thread_ctx_v1 CONTEXT_MODEL;

void context_standin_set(const void *record);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/process_context/thread_context_check.h - what a reader outside asks of the object that
 * defines otel_thread_ctx_v1, asked from inside. Any thread; stores nothing. */
#ifndef OTELI_THREAD_CONTEXT_CHECK_H
#define OTELI_THREAD_CONTEXT_CHECK_H

/* Whether the variable can be found and reached. NULL: it can; otherwise why not, in one
 * sentence. */
const char *oteli_thread_context_elf(void);

#endif

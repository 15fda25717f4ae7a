/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/thread_context.h - what a reader outside asks of the object that defines
 * otel_thread_ctx_v1, asked from inside. Any thread; stores nothing. */
#ifndef OTELI_SDK_THREAD_CONTEXT_H
#define OTELI_SDK_THREAD_CONTEXT_H

/* Whether the variable can be found and reached. NULL: it can; otherwise why not, in one
 * sentence. */
const char *oteli_thread_context_elf(void);

#endif

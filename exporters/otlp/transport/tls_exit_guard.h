/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/tls_exit_guard.h - no TLS after exit has begun to take it apart.
 *
 * At exit OpenSSL frees what its connections use, while the exporter thread still runs: that
 * of a program which ends without otel_shutdown, one that was given up, or one that works for
 * an otel_shutdown in an exit handler or a destructor of the program. So a thread is counted while
 * it is inside the TLS library. At exit, before that library's own handler runs, no thread may
 * enter it any more, and those inside have a moment to leave. Plain HTTP goes on to the end.
 *
 * A thread that has been inside enters once more when it ends, for the TLS library frees what
 * it has kept for that thread, and at exit what it has kept for any:
 *
 *     thread's function returns ─▶ our destructor enters ─▶ all other destructors
 *                                    └ the door is closed: wait until the exit has passed TLS,
 *                                      and a second more for the process to be gone
 *                                  ─▶ our destructor leaves, in a later round
 *
 * Threads:  any thread. */
#ifndef OTELI_TLS_EXIT_GUARD_H
#define OTELI_TLS_EXIT_GUARD_H

#include <stdbool.h>

/* Once, before the TLS library is started and after: exit handlers run in reverse order. */
void oteli_tls_prepare_exit(void);
void oteli_tls_watch_exit(void);

/* Before the first time that TLS is entered: look after threads that end. */
void oteli_tls_watch_threads(void);

/* False: not any more. True: until oteli_tls_leave it stays usable. Both do nothing for a
 * transport without TLS, and such a one may always enter. */
bool oteli_tls_enter(bool is_tls);
void oteli_tls_leave(bool is_tls);

/* Whether it may not be entered again. */
bool oteli_tls_is_over(void);

#endif

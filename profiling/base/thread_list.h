/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/base/thread_list.h - which threads the process has now.
 *
 * Threads:  one thread at a time for a list. */
#ifndef OTELI_THREAD_LIST_H
#define OTELI_THREAD_LIST_H

#include <stddef.h>
#include <sys/types.h>

/* All zero: empty, and without memory. */
struct oteli_thread_list {
    pid_t *ids;
    size_t count;
    size_t room;
};

/* All but the calling thread, as the kernel names them: perhaps one of them twice, when others end
 * meanwhile. 0, or an errno where these are not all. ESRCH, and none of them: /proc is that of
 * another PID namespace, where threads have other numbers than those that they are known by
 * here. */
int oteli_thread_list_read(struct oteli_thread_list *list);

void oteli_thread_list_fini(struct oteli_thread_list *list);

#endif

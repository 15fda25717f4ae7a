/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/base/thread_list.c - the contracts are in thread_list.h. The profiler's thread. */
#include "profiling/base/thread_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FIRST_ROOM = 64 };

static bool add(struct oteli_thread_list *list, pid_t thread)
{
    if (list->count == list->room) {
        const size_t room = list->room == 0 ? FIRST_ROOM : 2 * list->room;
        pid_t *larger = realloc(list->ids, room * sizeof *larger);
        if (larger == NULL)
            return false;
        list->ids = larger;
        list->room = room;
    }
    list->ids[list->count++] = thread;
    return true;
}

/* Whether the files in /proc name threads by the numbers that they have here. */
static bool is_our_proc(pid_t self)
{
    char path[48];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d", (int)self);
    return access(path, F_OK) == 0;
}

int oteli_thread_list_read(struct oteli_thread_list *list)
{
    list->count = 0;
    DIR *directory = opendir("/proc/self/task");
    if (directory == NULL)
        return errno;
    const pid_t self = (pid_t)syscall(SYS_gettid);
    int result = is_our_proc(self) ? 0 : ESRCH;
    for (const struct dirent *entry; result == 0 && (entry = readdir(directory)) != NULL;) {
        const pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10); /* 0: "." and ".." */
        if (thread > 0 && thread != self && !add(list, thread))
            result = ENOMEM;
    }
    closedir(directory);
    return result;
}

void oteli_thread_list_fini(struct oteli_thread_list *list)
{
    free(list->ids);
    *list = (struct oteli_thread_list){0};
}

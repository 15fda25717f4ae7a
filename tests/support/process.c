/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/process.c - see process.h. */
#include "tests/support/process.h"

#include "common/base/atomic.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t status_kib(const char *field)
{
    char line[256];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            kib = strtoull(line + strlen(field), NULL, 10);
    fclose(file);
    return kib;
}

uint64_t process_resident_kib(void)
{
    return status_kib("VmRSS:");
}

uint64_t process_peak_kib(void)
{
    return status_kib("VmHWM:");
}

bool process_forget_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "we");
    if (file == NULL)
        return false;
    const bool written = fputs("5", file) >= 0;
    return fclose(file) == 0 && written;
}

int process_this_thread(void)
{
    return (int)syscall(SYS_gettid);
}

struct process_turns process_turns(int thread)
{
    struct process_turns turns = {0};
    char text[128];
    snprintf(text, sizeof text, "/proc/self/task/%d/schedstat", thread);
    const int file = open(text, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return turns;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    char *rest = text;
    turns.ran_ns = strtoull(rest, &rest, 10);
    turns.waited_ns = strtoull(rest, &rest, 10);
    turns.turns = strtoull(rest, &rest, 10);
    return turns;
}

bool process_memory_is_ours(void)
{
#if defined(OTELI_TSAN) || defined(__SANITIZE_ADDRESS__)
    return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    return false;
#else
    return true;
#endif
#else
    return true;
#endif
}

uint64_t process_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

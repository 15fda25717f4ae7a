/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/perf/perf_clock.c - the contract is in perf_clock.h. Owns nothing. */
#include "profiling/perf/perf_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMESPACE "/proc/self/ns/time"
#define NAMESPACE_OF_CHILDREN "/proc/self/ns/time_for_children"
#define OFFSETS "/proc/self/timens_offsets"
#define MONOTONIC "monotonic"

/* The line "monotonic SECONDS NANOSECONDS", of which the latter are never negative. */
static bool parse(const char *text, int64_t *offset_ns)
{
    if (strncmp(text, MONOTONIC, sizeof MONOTONIC - 1) != 0)
        return false;
    char *end;
    const char *at = text + sizeof MONOTONIC - 1;
    const long long seconds = strtoll(at, &end, 10);
    if (end == at || seconds < -INT32_MAX || seconds > INT32_MAX)
        return false;
    at = end;
    const long long ns = strtoll(at, &end, 10);
    *offset_ns = seconds * INT64_C(1000000000) + ns;
    return end != at && ns >= 0 && ns < 1000000000;
}

int oteli_perf_clock_offset(int64_t *offset_ns)
{
    char text[256];
    struct stat own;
    struct stat of_children;
    *offset_ns = 0;
    if (stat(NAMESPACE, &own) != 0)
        return 0; /* a kernel that has no such namespaces */
    /* What can be read is the offset of the children's, which are in another one if the process has
     * made that since it began. */
    if (stat(NAMESPACE_OF_CHILDREN, &of_children) != 0 || own.st_ino != of_children.st_ino)
        return EOPNOTSUPP;
    const int fd = open(OFFSETS, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    const ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return EOPNOTSUPP;
    text[length] = '\0';
    return parse(text, offset_ns) ? 0 : EOPNOTSUPP;
}

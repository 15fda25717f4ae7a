/* SPDX-License-Identifier: Apache-2.0 */
/* A program that does what its standard input says, a line at a time, and answers each line:
 *
 *     span NAME       makes a span, and flushes
 *     spans COUNT     makes spans with the names 0, 1, ..., and flushes once
 *     queue COUNT     makes them, and does not flush
 *     step SECONDS    puts the wall clock forward, for this process
 *     break COUNT     the next COUNT reads of a spool file fail with EIO
 *     break-first     every read of the spool file that is read first from now on fails
 *     coarse          time stamps of files have steps of two seconds from now on
 *     stop MS         shuts down
 *     stats           says what became of all spans
 *
 * It lends the library its own clock_gettime, fstat and read. */
#include <dlfcn.h>
#include <errno.h>
#include <otel/otel.h>
#include <otel/spool.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_long step_s;
static atomic_int reads_to_break;
static atomic_bool breaks_first;
static atomic_ulong broken_inode;
static atomic_bool is_coarse;

int clock_gettime(clockid_t id, struct timespec *now)
{
    const int result = (int)syscall(SYS_clock_gettime, id, now);
    if (id == CLOCK_REALTIME)
        now->tv_sec += atomic_load(&step_s);
    return result;
}

int fstat(int fd, struct stat *status)
{
    int (*const real)(int, struct stat *) = (int (*)(int, struct stat *))dlsym(RTLD_NEXT, "fstat");
    const int result = real(fd, status);
    if (result == 0 && atomic_load(&is_coarse)) {
        status->st_mtim.tv_nsec = 0;
        status->st_mtim.tv_sec -= status->st_mtim.tv_sec % 2;
    }
    return result;
}

static bool is_spool_file(int fd)
{
    char link[64];
    char path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    return length > 5 && memcmp(path + length - 5, ".otlp", 5) == 0;
}

static bool breaks(int fd)
{
    struct stat status;
    if (atomic_load(&reads_to_break) > 0)
        return atomic_fetch_sub(&reads_to_break, 1) > 0;
    if (!atomic_load(&breaks_first) || fstat(fd, &status) != 0)
        return false;
    unsigned long expected = 0;
    atomic_compare_exchange_strong(&broken_inode, &expected, status.st_ino);
    return atomic_load(&broken_inode) == status.st_ino;
}

ssize_t read(int fd, void *bytes, size_t size)
{
    if (is_spool_file(fd) && breaks(fd)) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_read, fd, bytes, size);
}

static void say_stats(void)
{
    otel_stats stats = {.size = sizeof stats};
    otel_spool_stats spool = {.size = sizeof spool};
    char text[512] = "";
    if (otel_stats_read(0, &stats) != OTEL_OK || otel_spool_stats_read(&spool) != OTEL_OK)
        abort();
    otel_stats_describe(&stats, text, sizeof text);
    printf("%s; stored %llu, found %llu, sent %llu, rejected %llu, refused %llu, expired %llu, "
           "evicted %llu, torn %llu, taken %llu, waiting %llu\n",
           text, (unsigned long long)spool.stored, (unsigned long long)spool.found,
           (unsigned long long)spool.sent, (unsigned long long)spool.rejected,
           (unsigned long long)spool.refused, (unsigned long long)spool.expired,
           (unsigned long long)spool.evicted, (unsigned long long)spool.torn,
           (unsigned long long)spool.taken, (unsigned long long)spool.waiting);
}

static void make_spans(int count)
{
    char name[16];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%d", i);
        otel_span_end(otel_span_start(otel_tracer_get("blackbox", "1"), name, NULL));
    }
}

static void obey(const char *verb, const char *argument)
{
    if (strcmp(verb, "span") == 0) {
        otel_span_end(otel_span_start(otel_tracer_get("blackbox", "1"), argument, NULL));
        puts(otel_status_string(otel_flush(60000)));
    } else if (strcmp(verb, "spans") == 0) {
        make_spans(atoi(argument));
        puts(otel_status_string(otel_flush(60000)));
    } else if (strcmp(verb, "queue") == 0) {
        make_spans(atoi(argument));
        puts("ok");
    } else if (strcmp(verb, "stop") == 0) {
        puts(otel_status_string(otel_shutdown(atoi(argument))));
    } else if (strcmp(verb, "stats") == 0) {
        say_stats();
    } else {
        if (strcmp(verb, "step") == 0)
            atomic_fetch_add(&step_s, atol(argument));
        else if (strcmp(verb, "break") == 0)
            atomic_store(&reads_to_break, atoi(argument));
        else if (strcmp(verb, "break-first") == 0)
            atomic_store(&breaks_first, true);
        else if (strcmp(verb, "coarse") == 0)
            atomic_store(&is_coarse, true);
        else
            abort();
        puts("ok");
    }
    fflush(stdout);
}

int main(void)
{
    char line[256];
    if (otel_start(NULL) != OTEL_OK)
        return 1;
    while (fgets(line, sizeof line, stdin) != NULL) {
        char verb[32] = "";
        char argument[128] = "";
        if (sscanf(line, "%31s %127s", verb, argument) >= 1)
            obey(verb, argument);
    }
    return 0;
}

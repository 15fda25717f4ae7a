/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/context_ways.c - the reader of tests (support/context_reader.h) finds the
 * variable in each way that a compiler and a linker may have made it.
 *
 *     context_ways linker|offset|descriptor|descriptor_of_module|module self|child [PLUGIN]
 *
 * The program is linked with context_standin.c or loads it. It reads itself, and then a child from
 * outside, which it cannot under an emulator.
 *
 * Threads:  the main thread of both, and one more in the child. */
#include "tests/integration/context_standin.h"
#include "tests/support/context_reader.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition) check((condition), #condition, __LINE__)

static const char *const names[] = {"linker", "offset", "descriptor", "descriptor_of_module",
                                    "module"};
static struct {
    uint8_t trace_id[16], span_id[8], valid, flags;
    uint16_t size;
} records[2] = {{"0123456789abcdef", "ghijklmn", 1, 1, 0},
                {"fedcba9876543210", "nmlkjihg", 1, 0, 0}};

static void (*set)(const void *record);
static const char *expected;
static struct context_reader *reader;

static void check(bool is_so, const char *text, int line)
{
    if (is_so)
        return;
    fprintf(stderr, "context_ways.c:%d: not so: %s (%s)\n", line, text,
            reader ? context_reader_why(reader) : "");
    exit(1);
}

static void check_thread(pid_t thread, unsigned which)
{
    struct context_record found = {.flags = 0};
    CHECK(context_reader_thread(reader, thread, &found) == CONTEXT_FOUND);
    CHECK(memcmp(found.span_id, records[which].span_id, 8) == 0);
    CHECK(memcmp(found.trace_id, records[which].trace_id, 16) == 0);
    CHECK(found.flags == records[which].flags);
    if (strcmp(names[found.access], expected) != 0)
        fprintf(stderr, "by %s\n", names[found.access]);
    CHECK(strcmp(names[found.access], expected) == 0);
    for (int64_t wrong = -16; wrong <= 16; wrong += 8) {
        context_reader_misplace(reader, wrong);
        bool is_right = context_reader_thread(reader, thread, &found) == CONTEXT_FOUND &&
                        memcmp(found.span_id, records[which].span_id, 8) == 0;
        CHECK(is_right == (wrong == 0));
    }
    context_reader_misplace(reader, 0);
}

_Noreturn static void stay(void)
{
    for (;;)
        pause();
}

static void *other_thread(void *ready)
{
    set(&records[1]);
    CHECK(write(*(int *)ready, "", 1) == 1);
    stay();
}

static void *idle_thread(void *ready)
{
    CHECK(write(*(int *)ready, "", 1) == 1);
    stay();
}

_Noreturn static void be_read(int ready)
{
    pthread_t thread;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    set(&records[0]);
    CHECK(!pthread_create(&thread, NULL, other_thread, &ready));
    CHECK(!pthread_create(&thread, NULL, idle_thread, &ready));
    stay();
}

static void read_child(void)
{
    int ends[2];
    char byte;
    CHECK(!pipe(ends));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        be_read(ends[1]);
    CHECK(read(ends[0], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1);
    reader = context_reader_open(child);
    CHECK(reader != NULL);
    pid_t threads[3];
    CHECK(context_reader_threads(reader, threads, 3) == 3);
    unsigned found = 0, idle = 0;
    for (size_t i = 0; i < 3; i++) {
        struct context_record record;
        enum context_found way = context_reader_thread(reader, threads[i], &record);
        if (way == CONTEXT_NONE)
            idle++;
        else
            check_thread(threads[i], threads[i] != child);
        found += way == CONTEXT_FOUND;
    }
    CHECK(found == 2 && idle == 1);
    context_reader_close(reader);
    reader = NULL;
    CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
}

static void read_self(void)
{
    struct context_record record;
    reader = context_reader_open_self();
    CHECK(reader != NULL);
    CHECK(context_reader_thread(reader, gettid(), &record) == CONTEXT_NONE);
    set(&records[1]);
    check_thread(gettid(), 1);
    context_reader_close(reader);
}

int main(int count, char **arguments)
{
    CHECK(count >= 3);
    expected = arguments[1];
#ifdef CONTEXT_LOADED
    CHECK(count == 4);
    void *plugin = dlopen(arguments[3], RTLD_NOW | RTLD_LOCAL);
    if (!plugin)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(plugin != NULL);
    *(void **)&set = dlsym(plugin, "context_standin_set");
    CHECK(set != NULL);
#else
    set = context_standin_set;
#endif
    read_self();
    set(NULL);
    if (strcmp(arguments[2], "child") == 0)
        read_child();
    return 0;
}

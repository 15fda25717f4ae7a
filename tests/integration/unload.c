/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/unload.c - a program that has never heard of otel-c loads and unloads
 * plug-ins that are linked with it.
 *
 *     unload PLUGIN [--long]
 *
 * Checked: what was used stays mapped, memory, descriptors and threads do not grow from one time to
 * the next, and nothing crashes when threads end later. */
#include "tests/integration/unload_plugin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    CYCLES = 100,
    LONG = 10,
    WARM_UP = 10, /* what libcurl, the C library and its allocator make once */
    WAIT_MS = 60000,
    SHORT_MS = 20,
    THREADS = 4,
    GROWTH_MAX = 16384 /* bytes in a hundred cycles: one forgotten span state is more */
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = true };
#else
enum { IS_SANITIZED = false };
#endif

#define CHECK(condition) check((condition), #condition, __LINE__)

static const char *path;          /* of the plug-in under test */
static unsigned threads_at_first; /* with those of a sanitizer */
static char endpoint[64];
static unsigned scale;

static void check(bool is_so, const char *text, int line)
{
    if (is_so)
        return;
    fprintf(stderr, "unload.c:%d: not so: %s\n", line, text);
    abort();
}

/* A program of its own (unload_sink.c): this one's memory is measured, and it has no library that a
 * plug-in might bring. */
static pid_t start_sink(const char *program)
{
    int ends[2];
    uint16_t port = 0;
    CHECK(pipe(ends) == 0);
    const pid_t pid = fork();
    CHECK(pid != -1);
    if (pid == 0) {
        CHECK(dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl(program, program, (char *)NULL);
        abort();
    }
    CHECK(read(ends[0], &port, sizeof port) == sizeof port);
    close(ends[0]);
    close(ends[1]);
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", (unsigned)port);
    return pid;
}

struct loaded {
    void *handle;
    const struct plugin *plugin;
};

static struct loaded load(void)
{
    struct loaded loaded = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (loaded.handle == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(loaded.handle != NULL);
    loaded.plugin = dlsym(loaded.handle, "plugin");
    CHECK(loaded.plugin != NULL);
    return loaded;
}

static void unload(struct loaded *loaded)
{
    CHECK(dlclose(loaded->handle) == 0);
}

static int look_for_ours(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash != NULL ? slash + 1 : info->dlpi_name;
    if (strncmp(name, "libotel", 7) == 0 || strcmp(info->dlpi_name, path) == 0)
        *(bool *)found = true;
    return 0;
}

static bool is_mapped(void)
{
    bool found = false;
    dl_iterate_phdr(look_for_ours, &found);
    return found;
}

static unsigned count_entries(const char *folder_path)
{
    unsigned count = 0;
    DIR *folder = opendir(folder_path);
    CHECK(folder != NULL);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* A thread that pthread_join has seen end may still be listed for a moment. */
static void wait_for_threads(unsigned expected)
{
    for (int i = 0; count_entries("/proc/self/task") != expected && i < WAIT_MS; i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    CHECK(count_entries("/proc/self/task") == expected);
}

static size_t allocated_bytes(void)
{
    return mallinfo2().uordblks;
}

/* A thread of the program that uses the plug-in once and lives on. */
struct user {
    pthread_t thread;
    const struct plugin *plugin; /* NULL: never uses it */
    sem_t has_used;
    sem_t must_end;
};

static void *use(void *argument)
{
    struct user *user = argument;
    if (user->plugin != NULL)
        (user->plugin->attach != NULL ? user->plugin->attach : user->plugin->trace)();
    sem_post(&user->has_used);
    sem_wait(&user->must_end);
    return NULL;
}

static void users_start(struct user users[THREADS], const struct plugin *plugin)
{
    for (int i = 0; i < THREADS; i++) {
        users[i].plugin = plugin;
        sem_init(&users[i].has_used, 0, 0);
        sem_init(&users[i].must_end, 0, 0);
        CHECK(pthread_create(&users[i].thread, NULL, use, &users[i]) == 0);
        sem_wait(&users[i].has_used);
    }
}

static void users_let_end(struct user users[THREADS])
{
    for (int i = 0; i < THREADS; i++)
        sem_post(&users[i].must_end);
}

static void users_join(struct user users[THREADS])
{
    for (int i = 0; i < THREADS; i++)
        pthread_join(users[i].thread, NULL);
}

static void use_once(void)
{
    struct loaded loaded = load();
    CHECK(loaded.plugin->start(endpoint));
    loaded.plugin->trace();
    CHECK(loaded.plugin->shut_down(WAIT_MS));
    unload(&loaded);
}

static void nothing_grows(void)
{
    struct user strangers[THREADS];
    users_start(strangers, NULL);
    size_t bytes = 0;
    unsigned descriptors = 0;
    for (unsigned i = 0; i < WARM_UP + CYCLES * scale; i++) {
        use_once();
        if (i + 1 == WARM_UP) {
            bytes = allocated_bytes();
            descriptors = count_entries("/proc/self/fd");
        }
    }
    const size_t after = allocated_bytes();
    printf("grown by %zd bytes in %u cycles\n", (ssize_t)(after - bytes), CYCLES * scale);
    fflush(stdout);
    CHECK(IS_SANITIZED || after < bytes + GROWTH_MAX * scale);
    wait_for_threads(threads_at_first + THREADS);
    users_let_end(strangers);
    users_join(strangers);
    CHECK(count_entries("/proc/self/fd") == descriptors);
}

static void threads_may_end_later(void)
{
    for (unsigned i = 0; i < CYCLES * scale; i++) {
        struct user users[THREADS];
        struct loaded loaded = load();
        CHECK(loaded.plugin->start(endpoint));
        users_start(users, loaded.plugin);
        if (i % 2 == 0)
            users_let_end(users);
        CHECK(loaded.plugin->shut_down(WAIT_MS));
        unload(&loaded);
        if (i % 2 != 0)
            users_let_end(users);
        users_join(users);
    }
}

static void it_goes_on_running(void)
{
    struct loaded loaded = load();
    CHECK(loaded.plugin->start(endpoint));
    loaded.plugin->trace();
    unload(&loaded);
    loaded = load();
    CHECK(loaded.plugin->shut_down(WAIT_MS));
    unload(&loaded);
}

/* The destructor of a plug-in that has the SDK inside runs when the process ends. */
static void its_destructor_may_shut_down(void)
{
    for (unsigned i = 0; strstr(path, "_static") == NULL && i < CYCLES / 10 * scale; i++) {
        struct loaded loaded = load();
        CHECK(loaded.plugin->start(endpoint));
        loaded.plugin->trace();
        loaded.plugin->shut_down_late();
        unload(&loaded);
    }
}

static void a_thread_may_be_given_up(void)
{
    sem_t is_there;
    sem_t goes_on;
    sem_init(&is_there, 0, 0);
    sem_init(&goes_on, 0, 0);
    for (unsigned i = 0; i < CYCLES / 10 * scale; i++) {
        struct loaded loaded = load();
        CHECK(loaded.plugin->start_hanging(&is_there, &goes_on));
        loaded.plugin->trace();
        sem_wait(&is_there);
        CHECK(!loaded.plugin->shut_down(SHORT_MS));
        unload(&loaded);
        sem_post(&goes_on);
        wait_for_threads(threads_at_first);
    }
    use_once();
}

static void try_sdk(void)
{
    nothing_grows();
    CHECK(is_mapped());
    threads_may_end_later();
    it_goes_on_running();
    its_destructor_may_shut_down();
    a_thread_may_be_given_up();
}

static void try_api(void)
{
    for (unsigned i = 0; i < CYCLES * scale; i++) {
        struct loaded loaded = load();
        loaded.plugin->trace();
        unload(&loaded);
        CHECK(!is_mapped());
    }
    for (unsigned i = 0; i < CYCLES * scale; i++) {
        struct user users[THREADS];
        struct loaded loaded = load();
        users_start(users, loaded.plugin);
        users_let_end(users);
        unload(&loaded);
        CHECK(is_mapped());
        users_join(users);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: unload PLUGIN SINK [--long]\n");
        return 2;
    }
    path = argv[1];
    const char *variable = getenv("OTEL_TEST_LONG");
    const bool is_long = argc > 3 || (variable != NULL && strcmp(variable, "1") == 0);
    scale = is_long ? LONG : 1;
    const pid_t sink = start_sink(argv[2]);
    threads_at_first = count_entries("/proc/self/task");
    struct loaded first = load();
    const bool brings_sdk = first.plugin->start != NULL;
    unload(&first);
    CHECK(!is_mapped());
    if (brings_sdk)
        try_sdk();
    else
        try_api();
    kill(sink, SIGKILL);
    waitpid(sink, NULL, 0);
    return 0;
}

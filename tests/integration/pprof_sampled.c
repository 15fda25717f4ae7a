/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/pprof_sampled.c - burn processor time under three labels while the profiler
 * runs, and write the profile into a directory.
 *
 *     pprof_sampled DIRECTORY PLUGIN SOURCE        auto, or signal
 *
 * run_query_a under query=A and a span, run_query_b under query=B, and plugin_burn, of a library
 * that is unloaded before the profile is written, under query=plugin. */
#include <otel/otel.h>
#include <otel/profile.h>
#include <otel/profiler.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FREQUENCY_HZ = 499, A_MS = 400, B_MS = 200, PLUGIN_MS = 300, NS_PER_MS = 1000 * 1000 };

#if defined(__has_attribute) && __has_attribute(noclone)
#define KEPT __attribute__((noinline, noclone))
#else
#define KEPT __attribute__((noinline))
#endif

static volatile unsigned sink;

/* For so much of this thread's processor time. */
static bool is_over(const int *ms)
{
    static int64_t end_ns;
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    const int64_t now_ns = (int64_t)now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
    if (ms != NULL)
        end_ns = now_ns + (int64_t)*ms * NS_PER_MS;
    return now_ns >= end_ns;
}

KEPT static void *run_query_a(void *argument)
{
    (void)is_over(argument);
    do {
        for (unsigned i = 0; i < 100 * 1000; i++)
            sink += i;
    } while (!is_over(NULL));
    return argument;
}

KEPT static void *run_query_b(void *argument)
{
    (void)is_over(argument);
    do {
        for (unsigned i = 0; i < 100 * 1000; i++)
            sink ^= i;
    } while (!is_over(NULL));
    return argument;
}

/* The plugin only burns: when it is enough is said here. */
struct plugin {
    void (*burn)(void);
    int ms;
};

static void *run_plugin(void *argument)
{
    const struct plugin *plugin = argument;
    (void)is_over(&plugin->ms);
    do {
        plugin->burn();
    } while (!is_over(NULL));
    return NULL;
}

static void run_under(const otel_span *span, const char *query, void *(*function)(void *),
                      void *argument)
{
    const otel_profile_kv kv = {"query", query};
    otel_profile_label label = otel_profile_label_make(span, &kv, 1);
    (void)otel_profile_apply(&label, function, argument);
    otel_profile_label_release(&label);
}

static bool run_with_plugin(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return false;
    struct plugin plugin = {.ms = PLUGIN_MS};
    *(void **)&plugin.burn = dlsym(library, "plugin_burn");
    if (plugin.burn == NULL)
        return false;
    run_under(NULL, "plugin", run_plugin, &plugin);
    return dlclose(library) == 0;
}

int main(int argc, char **argv)
{
    int ms[] = {A_MS, B_MS};
    otel_profiler *profiler;
    if (argc != 4 || otel_start(NULL) != OTEL_OK)
        return 2;
    const otel_profiler_options options = {
        .size = sizeof options,
        .source = strcmp(argv[3], "signal") == 0 ? OTEL_PROFILER_SIGNAL : OTEL_PROFILER_AUTO,
        .frequency_hz = FREQUENCY_HZ,
        .exporter = otel_pprof_file_exporter(argv[1], OTEL_PPROF_OTEL)};
    const otel_status status = otel_profiler_start(&options, &profiler);
    if (status != OTEL_OK) {
        fprintf(stderr, "the profiler does not start: %s\n", otel_status_string(status));
        return 1;
    }
    otel_span span = otel_span_enter(otel_tracer_get("pprof_sampled", NULL), "query", NULL);
    otel_span_set_string(span, "http.route", "/a/{id}");
    run_under(&span, "A", run_query_a, &ms[0]);
    otel_span_end(span);
    run_under(NULL, "B", run_query_b, &ms[1]);
    if (!run_with_plugin(argv[2]))
        return 1;

    otel_profiler_stats stats = {.size = sizeof stats};
    const otel_status flushed = otel_profiler_flush(profiler, 60000);
    (void)otel_profiler_get_stats(profiler, &stats);
    const otel_status stopped = otel_profiler_stop(profiler, 60000);
    printf("%s %s: %s\n", otel_status_string(flushed), otel_status_string(stopped), stats.why);
    return flushed != OTEL_OK || stopped != OTEL_OK || otel_shutdown(60000) != OTEL_OK;
}

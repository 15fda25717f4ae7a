/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/thread_context_scene.c - see the header. What should be visible is what the
 * calls before have answered, and not what otel-c says is current.
 *
 * Threads:  the one that calls it, and some that it starts. */
#include "tests/integration/thread_context_scene.h"

#include <otel/memory.h>
#include <otel/sdk.h>
#include <otel/thread_context.h>
#include <otel/trace.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 4, DEPTH = 40 };

static const otel_span nothing;
static otel_tracer *tracer;
static const char *service = "none";
static pthread_barrier_t together;

static void check(bool is_so, const char *text, int line)
{
    if (is_so)
        return;
    fprintf(stderr, "thread_context_scene.c:%d: not so: %s\n", line, text);
    _exit(1);
}
#define CHECK(condition) check((condition), #condition, __LINE__)

struct working {
    pid_t thread;
    otel_span span;
};

/* Stand still until somebody has looked. */
static void stand(const char *point, const struct working *threads, size_t count)
{
    char why[160] = "", go[8];
    otel_status status = otel_thread_context_selftest(why, sizeof why);
    printf("%s %d %s %d", point, getpid(), service, (int)status);
    for (size_t i = 0; i < count; i++) {
        otel_span_context context = otel_span_get_context(threads[i].span);
        char trace[33], span[17];
        otel_trace_id_hex(&context, trace);
        otel_span_id_hex(&context, span);
        if (otel_span_context_is_valid(&context))
            printf(" %d:%s:%s:%02x", threads[i].thread, trace, span, context.flags);
        else
            printf(" %d:none", threads[i].thread);
    }
    printf("\n");
    fflush(stdout);
    CHECK(fgets(go, sizeof go, stdin));
}

static void stand_alone(const char *point, otel_span span)
{
    stand(point, &(struct working){gettid(), span}, 1);
}

static otel_span remote(uint8_t first, uint8_t flags)
{
    const uint8_t trace_id[16] = {first, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    const uint8_t span_id[8] = {first, 22, 23, 24, 25, 26, 27, 28};
    otel_span_context context = otel_span_context_make(trace_id, span_id, flags, true, NULL);
    return otel_span_wrap(&context);
}

static otel_context_token attach(otel_span span)
{
    return otel_context_attach(otel_context_with_span(otel_current_context(), span));
}

static void enter_and_nest(void)
{
    otel_span spans[DEPTH];
    stand_alone("started", nothing);
    otel_span root = otel_span_enter(tracer, "root", NULL);
    stand_alone("entered", root);
    for (size_t i = 0; i < DEPTH; i++)
        spans[i] = otel_span_enter(tracer, "nested", NULL);
    stand_alone("nested", spans[DEPTH - 1]);
    for (size_t i = DEPTH; i-- > 1;)
        otel_span_end(spans[i]);
    stand_alone("one_is_left", spans[0]);
    otel_span detached = otel_span_start(tracer, "not current", NULL);
    stand_alone("started_only", spans[0]);
    otel_context_token token = attach(detached);
    stand_alone("attached", detached);
    otel_span inner = otel_span_enter(tracer, "in it", NULL);
    stand_alone("entered_in_attached", inner);
    CHECK(otel_context_detach(token));
    stand_alone("detached", spans[0]);
    otel_span_end(inner);
    otel_span_end(detached);
    stand_alone("ended_elsewhere", spans[0]);
    otel_span_end(root);
    stand_alone("ended_below", nothing);
    otel_span_end(spans[0]);
    stand_alone("all_ended", nothing);
}

static void unsampled(void)
{
    otel_span sampled_elsewhere = remote(0x5a, OTEL_TRACE_FLAG_SAMPLED);
    otel_span elsewhere = remote(0xa5, 0);
    otel_context_token outer = attach(sampled_elsewhere);
    stand_alone("remote", sampled_elsewhere);
    otel_context_token token = attach(elsewhere);
    stand_alone("remote_unsampled", elsewhere);
    otel_span span = otel_span_enter(tracer, "unsampled", NULL);
    CHECK(!otel_span_is_recording(span));
    stand_alone("unsampled", span);
    otel_span_end(span);
    stand_alone("unsampled_ended", elsewhere);
    CHECK(otel_context_detach(token));
    stand_alone("remote_again", sampled_elsewhere);
    token = attach(nothing);
    stand_alone("attached_nothing", nothing);
    CHECK(otel_context_detach(token));
    CHECK(otel_context_detach(outer));
    stand_alone("remote_detached", nothing);
}

static struct working working[WORKERS + 1];

/* Of the workers the first has a span, the second one within, the third is handed one, and the last
 * has nothing. */
static void *work(void *argument)
{
    struct working *mine = argument;
    size_t which = (size_t)(mine - working);
    otel_span first = nothing, handed = working[0].span;
    mine->thread = gettid();
    mine->span = nothing;
    if (which == 3)
        attach(mine->span = handed);
    else if (which != WORKERS)
        mine->span = first = otel_span_enter(tracer, "first", NULL);
    if (which == 2)
        mine->span = otel_span_enter(tracer, "second", NULL);
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    otel_span_end(mine->span);
    otel_span_end(first);
    return NULL;
}

static void several_threads(void)
{
    pthread_t threads[WORKERS];
    otel_span mine = otel_span_enter(tracer, "of the first thread", NULL);
    working[0] = (struct working){gettid(), mine};
    CHECK(!pthread_barrier_init(&together, NULL, WORKERS + 1));
    for (size_t i = 0; i < WORKERS; i++)
        CHECK(!pthread_create(&threads[i], NULL, work, &working[i + 1]));
    pthread_barrier_wait(&together);
    stand("threads", working, WORKERS + 1);
    pthread_barrier_wait(&together);
    for (size_t i = 0; i < WORKERS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    otel_span_end(mine);
    stand_alone("threads_gone", nothing);
}

static void forked(void)
{
    int status;
    otel_context_token token = attach(remote(0x77, OTEL_TRACE_FLAG_SAMPLED));
    otel_span parents = otel_span_enter(tracer, "before fork", NULL);
    stand_alone("before_fork", parents);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        otel_span own = otel_span_enter(tracer, "in the child", NULL);
        stand_alone("child", own);
        otel_span_end(own);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    stand_alone("after_fork", parents);
    otel_span_end(parents);
    CHECK(otel_context_detach(token));
}

int thread_context_scene(void)
{
    otel_memory *memory = otel_memory_new();
    otel_exporter exporter = otel_memory_exporter(memory);
    stand_alone("not_started", nothing);
    CHECK(otel_start_with(OTEL_SDK_OPTIONS(.service_name = "scene", .exporters = &exporter,
                                           .exporter_count = 1, .ignore_environment = true)) ==
          OTEL_OK);
    service = "scene";
    tracer = otel_tracer_get("scene", NULL);
    enter_and_nest();
    unsampled();
    several_threads();
    forked();
    stand_alone("at_the_end", nothing);
    CHECK(otel_shutdown(60000) == OTEL_OK);
    service = "none";
    stand_alone("shut_down", nothing);
    otel_memory_free(memory);
    printf("done\n");
    fflush(stdout);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/dead_peers.c - every receiver that never takes a span (support/dead_peer.h), over
 * every protocol, against every deadline: otel_shutdown and otel_flush come back in time and say
 * that not all is done, every span is accounted for, and no call of the program waits.
 *
 *     dead_peers_stress [--long] [SCENE]
 *
 * A run is one SDK in a process of its own, with one peer and one such call in the middle of
 * tracing; several go on at a time. How late the latest call was, and how long the longest of the
 * program's own calls took, is printed; in the long form it is held against its bounds. Neither
 * counts what the machine did: from how late a call was, the time is taken off that its thread
 * waited for a processor, and the program's own calls count where theirs had one all the time.
 * (What the exporter thread waits still counts, so the machine should have some peace.) */
#include "common/base/atomic.h"
#include "tests/support/dead_peer.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"

#include <otel/otlp.h>

#include <inttypes.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TRACERS = 2,
    BURST = 40,
    NAP_US = 1000,
    WARM_UP_US = 60000, /* at most, before the call */
    EARLY_MS = 100,     /* a shutdown keeps some of its time for what comes last */
    LATE_MS = 100,
    CALL_NS = 1000000,
    WAITS_MAX = 5, /* waiting for us would be hundreds */
    TEXT = 300,
    CHILDREN = 8,
    CHILDREN_LONG = 16,
    LONG_SCALE = 3,
    DEADLINES = 4,
    PROTOCOLS = 3
};

static const int deadlines_ms[DEADLINES] = {0, 10, 100, 2000};
static const char *const protocol_names[PROTOCOLS] = {"http/protobuf", "http/json", "grpc"};

struct run {
    const struct dead_scene *scene;
    otel_otlp_protocol protocol;
    int deadline_ms;
    bool flushes;
    uint64_t chance;
};

/* What a child says; in memory that is shared with its parent. */
struct report {
    uint32_t is_done;
    uint64_t took_ns;
    uint64_t waited_ns; /* of that, for a processor */
    uint64_t longest_call_ns;
    uint64_t spans;
    bool hangs;
};

struct tracing {
    pthread_t thread;
    uint64_t spans;      /* those that were recording after they had been started */
    uint64_t entered;    /* of them, and of those after otel_shutdown */
    uint64_t longest_ns; /* of calls with the processor to themselves */
    long waits;
};

static otel_tracer *tracer;
static uint32_t must_stop; /* atomic */
static bool is_name_server_dead;
static uint32_t hangs; /* atomic: the exporter thread had too little of the processor */

/* In the place of the C library's, also for curl. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **result)
{
    (void)node;
    (void)service;
    (void)hints;
    (void)result;
    while (is_name_server_dead)
        pause();
    return EAI_NONAME;
}

static void read_line(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    if (strstr(message, "did not come back in time") != NULL)
        oteli_store_release_32(&hangs, 1);
    if (getenv("OTEL_TEST_VERBOSE") != NULL)
        fprintf(stderr, "  log: %s\n", message);
}

/* ---- the program ------------------------------------------------------------------------ */

static uint64_t later(uint64_t *longest_ns, uint64_t since_ns)
{
    const uint64_t now = process_now_ns();
    if (now - since_ns > *longest_ns)
        *longest_ns = now - since_ns;
    return now;
}

static uint64_t trace_once(const char *text, uint64_t *spans)
{
    uint64_t longest_ns = 0;
    uint64_t at = process_now_ns();
    const otel_span span = otel_span_enter(tracer, "work", NULL);
    at = later(&longest_ns, at);
    *spans += otel_span_is_recording(span);
    otel_span_set_string(span, "text", text);
    at = later(&longest_ns, at);
    otel_span_set_int(span, "number", 1);
    at = later(&longest_ns, at);
    otel_span_end(span);
    (void)later(&longest_ns, at);
    return longest_ns;
}

static void *trace(void *argument)
{
    struct tracing *me = argument;
    char text[TEXT + 1];
    memset(text, 'x', TEXT);
    text[TEXT] = '\0';
    while (oteli_load_acquire_32(&must_stop) == 0) {
        for (int i = 0; i < BURST; i++) {
            struct rusage before;
            struct rusage after;
            getrusage(RUSAGE_THREAD, &before);
            const uint64_t longest_ns = trace_once(text, &me->spans);
            getrusage(RUSAGE_THREAD, &after);
            const bool is_alone =
                before.ru_nivcsw == after.ru_nivcsw && before.ru_nvcsw == after.ru_nvcsw;
            if (is_alone && longest_ns > me->longest_ns)
                me->longest_ns = longest_ns;
            /* One in a page fault is for the kernel's lock or the disk, not for one of ours. */
            if (before.ru_minflt == after.ru_minflt && before.ru_majflt == after.ru_majflt)
                me->waits += after.ru_nvcsw - before.ru_nvcsw;
            me->entered++;
        }
        stress_sleep_us(NAP_US);
    }
    return NULL;
}

/* ---- one run ---------------------------------------------------------------------------- */

static void start_sdk(const struct run *run, const struct dead_peer *peer,
                      struct certificates *certificates)
{
    const char *proxy = dead_peer_proxy(peer);
    char endpoint[192];
    otel_exporter exporter;
    snprintf(endpoint, sizeof endpoint, "%s%s", dead_peer_url(peer),
             run->protocol == OTEL_OTLP_GRPC ? "" : "/v1/traces");
    const otel_status made = otel_otlp_exporter_new(
        OTEL_OTLP_OPTIONS(.endpoint = endpoint, .protocol = run->protocol,
                          .proxy = proxy != NULL ? proxy : "",
                          .ca_file = run->scene->has_tls ? certificates_path(certificates, "ca.pem")
                                                         : NULL),
        &exporter);
    STRESS_CHECK(made == OTEL_OK);
    is_name_server_dead = run->scene == &dead_scenes[DEAD_PEER_NO_NAME];
    otel_log_set_handler(read_line, NULL);
    STRESS_CHECK(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                  .bsp_schedule_delay = 5)) == OTEL_OK);
    tracer = otel_tracer_get("dead_peers", NULL);
}

/* That time was up; or that it is done, where no further attempt would have had time, or where the
 * peer said something final. A shutdown has lost what it had no time for, and nothing else. */
static void check_status(const struct run *run, otel_status status, uint64_t took_ns)
{
    const uint64_t early_ns = took_ns + EARLY_MS * UINT64_C(1000000);
    const otel_stats stats = stress_stats();
    const bool has_lost = stats.dropped[OTEL_DROP_SHUTDOWN_TIMEOUT] != 0;
    STRESS_CHECK(status == OTEL_ERROR_TIMEOUT || status == OTEL_ERROR_EXPORT_FAILED ||
                 (run->scene->may_end && status == OTEL_OK));
    const bool has_hung = oteli_load_acquire_32(&hangs) != 0;
    STRESS_CHECK(run->flushes || (status == OTEL_ERROR_TIMEOUT) == (has_lost || has_hung));
    STRESS_CHECK(status != OTEL_ERROR_TIMEOUT || early_ns >= (uint64_t)run->deadline_ms * 1000000);
}

/* Nothing was delivered, and what came to the peer is called unconfirmed. */
static void check_sums(const struct run *run, const struct dead_peer *peer, uint64_t spans,
                       uint64_t entered)
{
    const otel_stats stats = stress_stats();
    char text[512];
    uint64_t dropped = 0;
    stress_check_sums(&stats, true);
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        dropped += stats.dropped[i];
    otel_stats_describe(&stats, text, sizeof text);
    if (dropped < spans || dropped > entered)
        fprintf(stderr, "%" PRIu64 " to %" PRIu64 " spans: %s\n", spans, entered, text);
    STRESS_CHECK(dropped == stats.ended);
    STRESS_CHECK(stats.ended >= spans && stats.ended <= entered);
    struct fault_peer *fault = dead_peer_fault(peer);
    if (fault == NULL)
        return;
    STRESS_CHECK(fault_peer_problem(fault) == NULL);
    if (oteli_load_acquire_32(&hangs) != 0)
        return; /* what it had it has not accounted for yet: they are called shutdown_timeout */
    const uint64_t came = fault_peer_spans(fault).distinct;
    if (run->scene->may_receive && came > stats.dropped[OTEL_DROP_UNCONFIRMED])
        fprintf(stderr, "%" PRIu64 " came: %s\n", came, text);
    STRESS_CHECK(!run->scene->may_receive || came <= stats.dropped[OTEL_DROP_UNCONFIRMED]);
}

static void play(const struct run *run, struct certificates *certificates, struct report *report)
{
    static struct tracing tracing[TRACERS];
    struct dead_peer *peer = dead_peer_play(run->scene, certificates);
    start_sdk(run, peer, certificates);
    otel_span_end(otel_span_enter(tracer, "so that there is something to lose", NULL));
    for (size_t i = 0; i < TRACERS; i++)
        STRESS_CHECK(pthread_create(&tracing[i].thread, NULL, trace, &tracing[i]) == 0);
    stress_sleep_us((unsigned)(run->chance % WARM_UP_US));

    const struct process_turns turns = process_turns(process_this_thread());
    const uint64_t before_ns = process_now_ns();
    const otel_status status =
        run->flushes ? otel_flush(run->deadline_ms) : otel_shutdown(run->deadline_ms);
    report->took_ns = process_now_ns() - before_ns;
    report->waited_ns = process_turns(process_this_thread()).waited_ns - turns.waited_ns;
    if (run->flushes)
        (void)!otel_shutdown(0);
    oteli_store_release_32(&must_stop, 1);
    uint64_t spans = 1;
    uint64_t entered = 1;
    for (size_t i = 0; i < TRACERS; i++) {
        pthread_join(tracing[i].thread, NULL);
        spans += tracing[i].spans;
        entered += tracing[i].entered;
        STRESS_CHECK(tracing[i].waits <= WAITS_MAX);
        if (tracing[i].longest_ns > report->longest_call_ns)
            report->longest_call_ns = tracing[i].longest_ns;
    }
    report->spans = spans;
    check_status(run, status, report->took_ns);
    check_sums(run, peer, spans, entered);
    report->hangs = oteli_load_acquire_32(&hangs) != 0;
    dead_peer_stop(peer);
    report->is_done = 1;
}

/* ---- all of them ------------------------------------------------------------------------ */

struct child {
    pid_t process; /* 0: none */
    struct run run;
    struct report *report;
};

struct result {
    uint64_t runs;
    uint64_t spans;
    uint64_t latest_ns; /* but for waiting for a processor */
    struct run latest;
    uint64_t latest_of_all_ns; /* by the clock */
    uint64_t longest_call_ns;
    struct run longest;
    uint64_t hangs;
    unsigned failures;
};

static void describe(const struct run *run, char *text, size_t size)
{
    snprintf(text, size, "%s, %s, %s(%d)", run->scene->name, protocol_names[run->protocol],
             run->flushes ? "flush" : "shutdown", run->deadline_ms);
}

static void start_child(struct child *child, const struct run *run,
                        struct certificates *certificates)
{
    child->run = *run;
    *child->report = (struct report){0};
    fflush(NULL);
    child->process = fork();
    STRESS_CHECK(child->process >= 0);
    if (child->process == 0) {
        play(run, certificates, child->report);
        fflush(NULL);
        _exit(0);
    }
}

static void take_report(const struct child *child, struct result *result)
{
    const struct report *report = child->report;
    char text[128];
    if (report->is_done == 0) {
        describe(&child->run, text, sizeof text);
        fprintf(stderr, "FAILED: %s\n", text);
        result->failures++;
        return;
    }
    const uint64_t deadline_ns = (uint64_t)child->run.deadline_ms * UINT64_C(1000000);
    const uint64_t late_ns = report->took_ns > deadline_ns ? report->took_ns - deadline_ns : 0;
    result->runs++;
    result->spans += report->spans;
    result->hangs += report->hangs;
    if (report->hangs && getenv("OTEL_TEST_VERBOSE") != NULL) {
        describe(&child->run, text, sizeof text);
        fprintf(stderr, "the exporter did not come back: %s\n", text);
    }
    const uint64_t own_ns = late_ns > report->waited_ns ? late_ns - report->waited_ns : 0;
    if (late_ns > result->latest_of_all_ns)
        result->latest_of_all_ns = late_ns;
    if (own_ns >= result->latest_ns) {
        result->latest_ns = own_ns;
        result->latest = child->run;
    }
    if (report->longest_call_ns >= result->longest_call_ns) {
        result->longest_call_ns = report->longest_call_ns;
        result->longest = child->run;
    }
}

/* Wait until a child ends; its place is free then. */
static struct child *wait_for_one(struct child *children, size_t count, struct result *result)
{
    int status;
    const pid_t process = wait(&status);
    STRESS_CHECK(process > 0);
    for (size_t i = 0; i < count; i++) {
        if (children[i].process != process)
            continue;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            children[i].report->is_done = 0;
        children[i].process = 0;
        take_report(&children[i], result);
        return &children[i];
    }
    abort();
}

static struct child *free_place(struct child *children, size_t count, struct result *result)
{
    for (size_t i = 0; i < count; i++)
        if (children[i].process == 0)
            return &children[i];
    return wait_for_one(children, count, result);
}

/* In the short form, not every peer meets the deadline that takes seconds. */
static bool is_wanted(const struct run *run, unsigned number, unsigned scale, const char *only)
{
    const unsigned kind = run->protocol == OTEL_OTLP_GRPC ? FOR_GRPC : FOR_HTTP;
    if ((run->scene->protocols & kind) == 0)
        return false;
    if (only != NULL && strcmp(only, run->scene->name) != 0)
        return false;
    return scale > 1 || run->deadline_ms < 1000 || number % 40 == 0;
}

static void run_all(struct child *children, size_t count, unsigned scale, const char *only,
                    struct result *result)
{
    struct certificates *certificates = certificates_new();
    uint64_t random = stress_seed();
    unsigned number = 0;
    certificates_issue(certificates, &(struct certificate_request){.name = "server"});
    for (unsigned round = 0; round < scale; round++) {
        for (unsigned i = 0; i < dead_scene_count * PROTOCOLS * DEADLINES * 2; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            const struct run run = {
                .scene = &dead_scenes[i / (PROTOCOLS * DEADLINES * 2)],
                .protocol = (otel_otlp_protocol)(i / (DEADLINES * 2) % PROTOCOLS),
                .deadline_ms = deadlines_ms[i / 2 % DEADLINES],
                .flushes = i % 2 == 1,
                .chance = random >> 33,
            };
            if (is_wanted(&run, ++number, scale, only))
                start_child(free_place(children, count, result), &run, certificates);
        }
    }
    for (size_t i = 0; i < count; i++)
        while (children[i].process != 0)
            (void)wait_for_one(children, count, result);
    certificates_free(certificates);
}

int main(int argc, char **argv)
{
    static struct child children[CHILDREN_LONG];
    const unsigned scale = stress_scale(argc, argv, LONG_SCALE);
    const size_t count = scale > 1 ? CHILDREN_LONG : CHILDREN;
    const char *only = argc > 1 && argv[argc - 1][0] != '-' ? argv[argc - 1] : NULL;
    struct result result = {0};
    char latest[128] = "";
    char longest[128] = "";
    for (size_t i = 0; i < count; i++) {
        children[i].report = mmap(NULL, sizeof *children[i].report, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        STRESS_CHECK(children[i].report != MAP_FAILED);
    }
    run_all(children, count, scale, only, &result);
    STRESS_CHECK(result.runs > 0 && result.failures == 0);
    describe(&result.latest, latest, sizeof latest);
    describe(&result.longest, longest, sizeof longest);
    printf("runs %" PRIu64 " spans %" PRIu64 " hangs %" PRIu64
           " latest_ms %.1f (%s) by_the_clock_ms %.1f longest_call_us %.1f (%s)\n",
           result.runs, result.spans, result.hangs, (double)result.latest_ns / 1e6, latest,
           (double)result.latest_of_all_ns / 1e6, (double)result.longest_call_ns / 1e3, longest);
    STRESS_CHECK(scale == 1 || result.latest_ns <= LATE_MS * UINT64_C(1000000));
    STRESS_CHECK(scale == 1 || result.longest_call_ns <= CALL_NS);
    return 0;
}

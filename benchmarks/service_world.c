/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/service_world.c - inside a world, and the pipes to it. */
#include "benchmarks/service_world.h"
#include "benchmarks/bench.h"
#include "benchmarks/service_shop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

/* The queue holds the spans of a slice, so that none is dropped however late the exporter
 * thread comes to run. All else is as a program has it that sets nothing. */
enum { QUEUE_SIZE = 1 << 17, FLUSH_MS = 60000 };
#define QUEUE_BYTES (INT64_C(128) << 20)

/* A count of zero ends the world. */
struct question {
    uint64_t first;
    uint64_t count;
};

/* --- inside a world --- */

static void start_sdk(const char *url)
{
    static const char *const not_ours[] = {
        "OTEL_SDK_DISABLED", "OTEL_TRACES_SAMPLER", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
        "http_proxy",        "all_proxy",           "ALL_PROXY"};
    for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++)
        unsetenv(not_ours[i]);
    bench_expect_ok(otel_start(OTEL_SDK_OPTIONS(.service_name = "shop", .traces_exporter = "otlp",
                                                .exporter_otlp_traces_endpoint = url,
                                                .bsp_max_queue_size = QUEUE_SIZE,
                                                .queue_max_bytes = QUEUE_BYTES)),
                    "otel_start");
}

static uint64_t answer_requests(struct service_store *store, service_handle *handle,
                                service_request *requests, const struct question *question)
{
    char response[SERVICE_RESPONSE_BYTES];
    unsigned long checksum = 0;
    for (uint64_t i = question->first; i < question->first + question->count; i++) {
        const size_t length = handle(store, requests[i % SERVICE_REQUESTS], response);
        checksum = adler32(checksum, (const unsigned char *)response, (unsigned)length);
    }
    return checksum;
}

/* The exporter thread may run where the thread that starts the SDK may. */
static void start_on(const struct service_cores *cores, enum service_mode mode, const char *url)
{
    service_cores_use(&cores->others);
    if (mode == SERVICE_ON)
        start_sdk(url);
    service_cores_use(&cores->server);
}

static void live_in(enum service_mode mode, service_request *requests, int from_conductor,
                    int to_conductor)
{
    struct question question;
    uint64_t spans = 0;
    service_handle *handle = mode == SERVICE_BARE ? service_handle_bare : service_handle_traced;
    struct service_store *store = service_store_open();
    for (;;) {
        if (read(from_conductor, &question, sizeof question) != (ssize_t)sizeof question)
            _exit(1); /* the conductor is gone */
        if (question.count == 0)
            break;
        struct service_slice slice;
        const uint64_t start_cpu_ns = bench_process_cpu_ns();
        const uint64_t start_server_ns = bench_thread_cpu_ns();
        const uint64_t start_ns = bench_now_ns();
        slice.checksum = answer_requests(store, handle, requests, &question);
        slice.wall_ns = bench_now_ns() - start_ns;
        slice.server_cpu_ns = bench_thread_cpu_ns() - start_server_ns;
        if (mode == SERVICE_ON)
            bench_expect_ok(otel_flush(FLUSH_MS), "otel_flush");
        slice.cpu_ns = bench_process_cpu_ns() - start_cpu_ns;
        spans += question.count * SERVICE_SPANS;
        if (write(to_conductor, &slice, sizeof slice) != (ssize_t)sizeof slice)
            _exit(1);
    }
    struct service_books books = {0};
    if (mode == SERVICE_ON) {
        bench_expect_delivered(spans);
        otel_stats stats = {.size = sizeof stats};
        bench_expect_ok(otel_stats_read(0, &stats), "otel_stats_read");
        books = (struct service_books){.delivered = stats.delivered, .batches = stats.batches};
        bench_expect_ok(otel_shutdown(FLUSH_MS), "otel_shutdown");
    }
    service_store_close(store);
    _exit(write(to_conductor, &books, sizeof books) == (ssize_t)sizeof books ? 0 : 1);
}

/* --- the conductor's side --- */

struct service_cores service_cores_any(void)
{
    struct service_cores cores;
    if (sched_getaffinity(0, sizeof cores.server, &cores.server) != 0)
        bench_fail("sched_getaffinity: %s", strerror(errno));
    cores.others = cores.server;
    return cores;
}

struct service_cores service_cores_apart(void)
{
    struct service_cores cores = service_cores_any();
    if (CPU_COUNT(&cores.server) < 2)
        return cores;
    size_t last = 0;
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &cores.others))
            last = i;
    CPU_ZERO(&cores.server);
    CPU_SET(last, &cores.server);
    CPU_CLR(last, &cores.others);
    return cores;
}

void service_cores_use(const cpu_set_t *cores)
{
    if (sched_setaffinity(0, sizeof *cores, cores) != 0)
        bench_fail("sched_setaffinity: %s", strerror(errno));
}

struct service_world service_world_start(enum service_mode mode, service_request *requests,
                                         const char *url, const struct service_cores *cores)
{
    int questions[2];
    int answers[2];
    if (pipe(questions) != 0 || pipe(answers) != 0)
        bench_fail("pipe: %s", strerror(errno));
    const pid_t conductor = getpid();
    const pid_t child = fork();
    if (child < 0)
        bench_fail("fork: %s", strerror(errno));
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != conductor)
            _exit(1);
        close(questions[1]);
        close(answers[0]);
        start_on(cores, mode, url);
        live_in(mode, requests, questions[0], answers[1]);
    }
    close(questions[0]);
    close(answers[1]);
    return (struct service_world){
        .process = child, .questions = questions[1], .answers = answers[0]};
}

static void ask(const struct service_world *world, const struct question *question, void *answer,
                size_t size)
{
    if (write(world->questions, question, sizeof *question) != (ssize_t)sizeof *question ||
        read(world->answers, answer, size) != (ssize_t)size)
        bench_fail("a process has ended too early");
}

struct service_slice service_world_ask(const struct service_world *world, uint64_t first,
                                       uint64_t count)
{
    const struct question question = {.first = first, .count = count};
    struct service_slice slice;
    ask(world, &question, &slice, sizeof slice);
    return slice;
}

struct service_books service_world_stop(struct service_world *world)
{
    const struct question last = {.count = 0};
    struct service_books books;
    int status = 0;
    ask(world, &last, &books, sizeof books);
    if (waitpid(world->process, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        bench_fail("a process did not end well, so its figures are worth nothing");
    close(world->questions);
    close(world->answers);
    return books;
}

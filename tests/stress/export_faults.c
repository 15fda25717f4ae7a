/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/export_faults.c - every allocation and every system call of an export fails once,
 * with every error that it may plausibly have: those in libcurl, nghttp2, OpenSSL, zlib and the C
 * library as well as our own. Nothing crashes or leaks a descriptor, every span is accounted for,
 * what counts as delivered was taken, and what is exported afterwards arrives.
 *
 *     export_faults_stress [--long] [SCENE [PHASE [CALL [NTH [ERROR]]]]]
 *
 * A case is one SDK with one exporter, in which one call fails: while it starts, while it exports
 * two batches over a new connection (and, with a spool, puts them to disk first, and sends them
 * from there), or while it ends. Which calls there are is found out by running all that without a
 * failure. The short form takes some of them by chance, the long one all. (R12, R48) */
#include "common/base/atomic.h"
#include "tests/support/certificates.h"
#include "tests/support/failing_calls.h"
#include "tests/support/fault_peer.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"

#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <otel/otlp.h>
#include <otel/spool.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BATCH = 4,
    WAVE = 2 * BATCH,
    HANGS_MS = 60000,
    SLOW_MS = 1000,
    SAMPLES_OF_MEMORY = 4,
    LONG_SCALE = 2,
    DESCRIPTORS_KEPT = 8, /* by the last SDK, and the one before that, until they are freed */
    PATH = 128
};

enum phase { STARTING, EXPORTING, ENDING, PHASES };

static const char *const phase_names[PHASES] = {"start", "export", "end"};

struct scene {
    const char *name;
    otel_otlp_protocol protocol;
    bool has_name; /* the receiver has one, and not only a number */
    bool has_tls;
    bool spools;
    bool rejects; /* the receiver refuses one span of each request */
};

static const struct scene scenes[] = {
    {"protobuf", OTEL_OTLP_HTTP_PROTOBUF, false, false, false, true},
    {"json", OTEL_OTLP_HTTP_JSON, true, false, false, false},
    {"grpc", OTEL_OTLP_GRPC, false, false, false, true},
    {"protobuf-spool", OTEL_OTLP_HTTP_PROTOBUF, false, false, true, false},
    {"json-spool", OTEL_OTLP_HTTP_JSON, false, false, true, true},
    {"grpc-spool", OTEL_OTLP_GRPC, true, false, true, false},
    {"protobuf-tls", OTEL_OTLP_HTTP_PROTOBUF, false, true, false, false},
    {"grpc-tls", OTEL_OTLP_GRPC, false, true, false, false},
};

enum { SCENES = sizeof scenes / sizeof *scenes };

/* What is running now. */
static struct {
    const struct scene *scene;
    enum phase phase;
    struct failing failing;
    char name[PATH];
    struct fault_peer *peer;
    char spool[PATH];
    otel_spool_stats spool_before;
    struct fault_span_counts peer_before;
    bool was_met;
    bool is_counting;
    size_t descriptors; /* more than these are not open when a case is over */
} now;

static struct certificates *certificates;
static const char *ca_file;
static const char *client_file;
static const char *client_key_file;
static otel_tracer *tracer;
static uint64_t counts[SCENES][PHASES][FAILING_CALLS];
static uint32_t problems; /* atomic: requests of this case that no receiver would take */
static unsigned cases;
static unsigned met;
static uint64_t slowest_ms;
static bool is_verbose;

/* In the place of the library's: how long is waited is not the question here. */
uint64_t __wrap_oteli_retry_wait_ms(unsigned retry, uint64_t asked_ms, uint32_t random);
uint64_t __wrap_oteli_retry_wait_ms(unsigned retry, uint64_t asked_ms, uint32_t random)
{
    (void)retry;
    (void)asked_ms;
    (void)random;
    return 1;
}

/* ---- when it goes wrong ------------------------------------------------------------------- */

#define CHECK(condition) check((condition), #condition, __LINE__)

static void check(bool condition, const char *text, int line)
{
    if (condition)
        return;
    (void)failing_end();
    fprintf(stderr, "in the case `%s` (%s):\n", now.name, strerror(now.failing.error));
    stress_check(false, text, __FILE__, line);
}

static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

enum { CRASHES = sizeof crash_signals / sizeof *crash_signals };

static void crash(int number)
{
    static const char text[] = "crashed in the case ";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    (void)!write(STDERR_FILENO, now.name, strlen(now.name));
    (void)!write(STDERR_FILENO, "\n", 1);
    signal(number, SIG_DFL);
    (void)raise(number);
}

static void watch_for_crashes(void)
{
    const struct sigaction action = {.sa_handler = crash};
#ifdef __SANITIZE_ADDRESS__
    return; /* it says more */
#endif
    for (size_t i = 0; i < CRASHES; i++)
        STRESS_CHECK(sigaction(crash_signals[i], &action, NULL) == 0);
}

static void read_line(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    if (is_verbose)
        fprintf(stderr, "  log: %s\n", message);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    return remove(path);
}

static size_t open_descriptors(void)
{
    size_t count = 0;
    DIR *stream = opendir("/proc/self/fd");
    CHECK(stream != NULL);
    while (readdir(stream) != NULL)
        count++;
    closedir(stream);
    return count;
}

/* ---- one case ----------------------------------------------------------------------------- */

static void begin_failing(enum phase phase)
{
    static const struct failing none = {0};
    if (now.is_counting || phase == now.phase)
        failing_begin(now.is_counting ? &none : &now.failing);
}

static void end_failing(enum phase phase)
{
    if (!now.is_counting && phase != now.phase)
        return;
    now.was_met |= failing_end();
    for (size_t call = 0; now.is_counting && call < FAILING_CALLS; call++)
        counts[now.scene - scenes][phase][call] = failing_count((enum failing_call)call);
}

/* It has all signals blocked, and that a crash is one of them would go unsaid. */
static void mark_exporter_thread(void *state)
{
    sigset_t crashes;
    (void)state;
    sigemptyset(&crashes);
    for (size_t i = 0; i < CRASHES; i++)
        sigaddset(&crashes, crash_signals[i]);
    (void)pthread_sigmask(SIG_UNBLOCK, &crashes, NULL);
    failing_mark(true);
}

static const char *endpoint(void)
{
    static char url[PATH];
    const bool is_grpc = now.scene->protocol == OTEL_OTLP_GRPC;
    if (!now.scene->has_name)
        return is_grpc ? fault_peer_origin(now.peer) : fault_peer_url(now.peer);
    snprintf(url, sizeof url, "http://" FAILING_HOST ":%u%s", (unsigned)fault_peer_port(now.peer),
             is_grpc ? "" : "/v1/traces");
    return url;
}

static otel_status start(void)
{
    otel_exporter exporter;
    const struct scene *scene = now.scene;
    const otel_status status = otel_otlp_exporter_new(
        OTEL_OTLP_OPTIONS(.endpoint = endpoint(), .protocol = scene->protocol,
                          .compression = OTEL_OTLP_COMPRESSION_GZIP, .proxy = "",
                          .ca_file = scene->has_tls ? ca_file : NULL,
                          .certificate_file = scene->has_tls ? client_file : NULL,
                          .key_file = scene->has_tls ? client_key_file : NULL,
                          .spool_directory = scene->spools ? now.spool : NULL),
        &exporter);
    if (status != OTEL_OK)
        return status;
    return otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                            .bsp_schedule_delay = 60000,
                                            .bsp_max_export_batch_size = BATCH,
                                            .thread_started = mark_exporter_thread));
}

static void start_in_the_end(void)
{
    begin_failing(STARTING);
    failing_mark(true);
    const otel_status status = start();
    failing_mark(false);
    end_failing(STARTING);
    if (status == OTEL_OK)
        return;
    CHECK(now.phase == STARTING && now.was_met);
    CHECK(start() == OTEL_OK);
}

static otel_status trace(unsigned spans)
{
    for (unsigned i = 0; i < spans; i++) {
        const otel_span span = otel_span_enter(tracer, "work", NULL);
        otel_span_set_string(span, "key", "some value that is worth compressing, compressing");
        otel_span_set_int(span, "number", (int64_t)i);
        otel_span_end(span);
    }
    return otel_flush(HANGS_MS);
}

static bool was_exported(otel_status status)
{
    return status == OTEL_OK || (now.scene->rejects && status == OTEL_ERROR_EXPORT_FAILED);
}

static otel_spool_stats spool_stats(void)
{
    otel_spool_stats stats = {.size = sizeof stats};
    CHECK(otel_spool_stats_read(&stats) == OTEL_OK);
    CHECK(stats.stored + stats.found == stats.sent + stats.rejected + stats.refused +
                                            stats.expired + stats.evicted + stats.torn +
                                            stats.taken + stats.waiting);
    return stats;
}

/* Until everything is sent that was put to disk; a batch now and then has the spool looked at. */
static void drain(void)
{
    const uint64_t until_ns = process_now_ns() + HANGS_MS * UINT64_C(1000000);
    for (unsigned i = 1; spool_stats().waiting != 0; i++) {
        CHECK(process_now_ns() < until_ns);
        if (i % 32 == 0)
            CHECK(trace(1) != OTEL_ERROR_TIMEOUT);
        stress_sleep_us(500);
    }
}

/* As far as their time says, so that they are read again. */
static void change_tls_files(void)
{
    const char *const files[] = {ca_file, client_file, client_key_file};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        CHECK(utimensat(AT_FDCWD, files[i], NULL, 0) == 0);
}

static void export_while_it_fails(void)
{
    if (now.scene->has_tls)
        change_tls_files();
    if (now.scene->spools)
        fault_peer_leave(now.peer);
    begin_failing(EXPORTING);
    CHECK(trace(WAVE) != OTEL_ERROR_TIMEOUT);
    if (now.scene->spools) {
        fault_peer_return(now.peer);
        CHECK(trace(WAVE) != OTEL_ERROR_TIMEOUT);
        drain();
    }
    end_failing(EXPORTING);
}

static void export_afterwards(void)
{
    const otel_stats before = stress_stats();
    CHECK(was_exported(trace(WAVE)));
    const otel_stats after = stress_stats();
    CHECK(after.delivered + after.rejected + after.spooled ==
          before.delivered + before.rejected + before.spooled + WAVE);
    if (now.scene->spools)
        drain();
}

static void end(void)
{
    begin_failing(ENDING);
    failing_mark(true);
    const otel_status status = otel_shutdown(HANGS_MS);
    failing_mark(false);
    end_failing(ENDING);
    CHECK(stress_is_done(status)); /* faults before may have lost spans */
}

/* Where not all of an HTTP/2 request's head can be written at once, libcurl before 8.2 sends it a
 * second time, as the beginning of the body, which no receiver takes. (It takes a full buffer of a
 * connection that is idle.) */
static bool may_be_garbled(void)
{
    const int error = now.failing.error;
    return now.scene->protocol == OTEL_OTLP_GRPC && now.failing.call == FAILING_SEND &&
           (error == FAILING_SHORT || error == EAGAIN || error == EINTR) &&
           curl_version_info(CURLVERSION_NOW)->version_num < 0x080200;
}

static void check_sums(void)
{
    const otel_stats stats = stress_stats();
    const otel_spool_stats spool = spool_stats();
    const struct fault_span_counts peer = fault_peer_spans(now.peer);
    const otel_spool_stats *spool_before = &now.spool_before;
    const uint64_t sent = spool.sent + spool.rejected - spool_before->sent - spool_before->rejected;
    const uint64_t torn = spool.torn - spool_before->torn;
    const uint64_t taken = peer.taken - now.peer_before.taken;
    if (is_verbose) {
        char text[PATH * 2];
        otel_stats_describe(&stats, text, sizeof text);
        printf("%s; rejected %" PRIu64 ", spooled %" PRIu64 ", sent from there %" PRIu64
               ", taken %" PRIu64 " of %" PRIu64 "\n",
               text, stats.rejected, stats.spooled, sent, taken,
               peer.received - now.peer_before.received);
    }
    stress_check_sums(&stats, true);
    CHECK(stats.spooled == spool.stored - spool_before->stored);
    CHECK(oteli_load_acquire_32(&problems) == 0 || may_be_garbled());
    CHECK(taken >= stats.delivered + stats.rejected + sent);
    CHECK(taken <=
          stats.delivered + stats.rejected + sent + torn + stats.dropped[OTEL_DROP_UNCONFIRMED]);
    CHECK(stats.rejected == 0 || now.scene->rejects);
}

/* The peer closes its own when it sees that ours are. What the exporter cannot make sure of that it
 * is its own it does not close. */
static void check_descriptors(void)
{
    const uint64_t until_ns = process_now_ns() + HANGS_MS * UINT64_C(1000000);
    if (now.failing.call == FAILING_FSTAT || now.failing.call == FAILING_EPOLL_CTL) {
        const size_t open_now = open_descriptors();
        now.descriptors = open_now > now.descriptors ? open_now : now.descriptors;
        return;
    }
    while (open_descriptors() > now.descriptors) {
        CHECK(process_now_ns() < until_ns);
        stress_sleep_us(200);
    }
}

static void run_case(void)
{
    const uint64_t since_ns = process_now_ns();
    now.was_met = false;
    oteli_store_release_32(&problems, 0);
    if (now.scene->spools) {
        snprintf(now.spool, sizeof now.spool, "%s/otel-faults-XXXXXX",
                 getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
        CHECK(mkdtemp(now.spool) != NULL);
    }
    now.spool_before = spool_stats();
    now.peer_before = fault_peer_spans(now.peer);
    start_in_the_end();
    export_while_it_fails();
    export_afterwards();
    end();
    check_sums();
    check_descriptors();
    CHECK(fcntl(STDIN_FILENO, F_GETFD) != -1); /* nobody but the program closes that */
    if (now.scene->spools)
        CHECK(nftw(now.spool, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
    const uint64_t took_ms = (process_now_ns() - since_ns) / 1000000;
    if (took_ms > slowest_ms)
        slowest_ms = took_ms;
    if (is_verbose || took_ms > SLOW_MS)
        printf("%5" PRIu64 " ms %s%s\n", took_ms, now.name, now.was_met ? "" : " (not met)");
    cases++;
    met += now.was_met;
}

/* ---- all of them -------------------------------------------------------------------------- */

/* What the command line asks for; each part that is not there stands for all. */
struct choice {
    const char *scene;
    const char *phase;
    const char *call;
    const char *nth;
    const char *error;
};

static bool is_chosen(const char *chosen, const char *name)
{
    return chosen == NULL || strcmp(chosen, name) == 0;
}

/* "7" is that one, "7+" it and all behind it. */
static bool is_chosen_number(const char *chosen, int64_t number)
{
    char *end = NULL;
    if (chosen == NULL)
        return true;
    const int64_t first = strtoll(chosen, &end, 0);
    return first == number || (*end == '+' && first < number);
}

static void run(enum phase phase, const struct failing *failing)
{
    now.phase = phase;
    now.failing = *failing;
    snprintf(now.name, sizeof now.name, "%s %s %s %" PRIu64 " %d", now.scene->name,
             phase_names[phase], failing_name(failing->call), failing->nth, failing->error);
    run_case();
}

static void run_each(enum phase phase, enum failing_call call, const struct choice *choice)
{
    size_t error_count;
    const int *errors = failing_errors(call, &error_count);
    const uint64_t count = counts[now.scene - scenes][phase][call];
    for (uint64_t nth = 1; nth <= count; nth++) {
        for (size_t i = 0; i < error_count; i++) {
            if (is_chosen_number(choice->nth, (int64_t)nth) &&
                is_chosen_number(choice->error, errors[i]))
                run(phase, &(struct failing){call, nth, errors[i]});
        }
    }
}

static void run_some(enum phase phase, enum failing_call call, uint64_t *random)
{
    size_t error_count;
    const int *errors = failing_errors(call, &error_count);
    const uint64_t count = counts[now.scene - scenes][phase][call];
    const unsigned samples = call == FAILING_MEMORY ? SAMPLES_OF_MEMORY : 1;
    for (unsigned i = 0; count != 0 && i < samples; i++)
        run(phase, &(struct failing){call, 1 + stress_random(random) % count,
                                     errors[stress_random(random) % error_count]});
}

/* The peer's thread. */
static void refuse_what_is_wrong(void *state, const struct fault_peer_request *request,
                                 struct fault_answer *answer)
{
    (void)state;
    if (request->problem == NULL)
        return;
    (void)oteli_add_full_32(&problems, 1);
    *answer = request->format == FAULT_GRPC ? (struct fault_answer){.rpc_code = 13}
                                            : (struct fault_answer){.status = 400};
}

static void start_peer(void)
{
    struct fault_peer_options options = {.forgets = true, .decide = refuse_what_is_wrong};
    if (now.scene->rejects)
        options.otherwise = (struct fault_answer){.rejected = 1, .message = "one is too many"};
    if (now.scene->has_tls) {
        options.tls = (struct fault_peer_tls){
            .certificate = certificates_path(certificates, "server.pem"),
            .key = certificates_path(certificates, "server.key"),
            .client_ca = ca_file,
        };
    }
    now.peer = fault_peer_start(&options);
}

static void run_scene(const struct scene *scene, const struct choice *choice, uint64_t *random)
{
    const unsigned cases_before = cases;
    const unsigned met_before = met;
    now.scene = scene;
    start_peer();
    now.descriptors = open_descriptors() + DESCRIPTORS_KEPT;
    now.is_counting = true;
    run(EXPORTING, &(struct failing){0});
    now.is_counting = false;
    for (enum failing_call call = 0; is_verbose && call < FAILING_CALLS; call++)
        printf("%s: %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", failing_name(call),
               counts[scene - scenes][STARTING][call], counts[scene - scenes][EXPORTING][call],
               counts[scene - scenes][ENDING][call]);
    for (enum phase phase = STARTING; phase < PHASES; phase++) {
        for (enum failing_call call = 0; call < FAILING_CALLS; call++) {
            if (!is_chosen(choice->phase, phase_names[phase]) ||
                !is_chosen(choice->call, failing_name(call)))
                continue;
            if (random != NULL)
                run_some(phase, call, random);
            else
                run_each(phase, call, choice);
        }
    }
    fault_peer_stop(now.peer);
    printf("%s: %u cases, %u calls failed, slowest %" PRIu64 " ms\n", scene->name,
           cases - cases_before, met - met_before, slowest_ms);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const unsigned scale = stress_scale(argc, argv, LONG_SCALE);
    const int first = argc > 1 && strcmp(argv[1], "--long") == 0 ? 2 : 1;
    const struct choice choice = {
        .scene = argc > first ? argv[first] : NULL,
        .phase = argc > first + 1 ? argv[first + 1] : NULL,
        .call = argc > first + 2 ? argv[first + 2] : NULL,
        .nth = argc > first + 3 ? argv[first + 3] : NULL,
        .error = argc > first + 4 ? argv[first + 4] : NULL,
    };
    uint64_t random = stress_seed() | 1;
    is_verbose = getenv("OTEL_TEST_VERBOSE") != NULL;
    CHECK(fcntl(STDIN_FILENO, F_GETFD) != -1 || open("/dev/null", O_RDONLY) == STDIN_FILENO);
    watch_for_crashes();
    otel_log_set_handler(read_line, NULL);
    certificates = certificates_new();
    certificates_issue(certificates, &(struct certificate_request){.name = "server"});
    certificates_issue(certificates, &(struct certificate_request){.name = "client"});
    ca_file = certificates_path(certificates, "ca.pem");
    client_file = certificates_path(certificates, "client.pem");
    client_key_file = certificates_path(certificates, "client.key");
    tracer = otel_tracer_get("stress", NULL);
    for (size_t i = 0; i < SCENES; i++) {
        if (!is_chosen(choice.scene, scenes[i].name))
            continue;
        run_scene(&scenes[i], &choice, scale > 1 || choice.call != NULL ? NULL : &random);
    }
    certificates_free(certificates);
    return 0;
}

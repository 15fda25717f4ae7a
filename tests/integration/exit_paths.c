/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/exit_paths.c - programs end while they trace, in every way there is.
 *
 *     exit_paths CHILD [--long] [WAY SHUTDOWN PEER]
 *
 * Runs exit_paths_child in all combinations of how it ends, when it calls otel_shutdown and
 * what its exporter has to do with; or in one of them, again and again. Checked of each: its
 * exit status or signal; that it ends at all; that nothing is on stderr that is not a line
 * of our log, no report of a sanitizer or of the C library above all. */
#include "tests/support/certificates.h"
#include "tests/support/dead_peer.h"
#include "tests/support/fault_peer.h"
#include "tests/support/http_sink.h"
#include "tests/support/oracle.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RUNNERS = 4,
    LONG = 55,        /* times all combinations: over 10,000 programs */
    HANGS_MS = 60000, /* whoever is silent for so long hangs; it has no meaning as a speed */
    OUTPUT = 16384,
    STATUS = 7
};

static const struct way {
    const char *name;
    int status;
    int signal;
    bool runs_handlers; /* of atexit or at_quick_exit */
    bool runs_destructors;
    bool has_exporter; /* of its own */
} ways[] = {
    {"return", STATUS, 0, true, true, false},
    {"exit", STATUS, 0, true, true, false},
    {"quick_exit", STATUS, 0, true, false, false},
    {"_exit", STATUS, 0, false, false, false},
    {"pthread_exit", 0, 0, true, true, false},
    {"abort", 0, SIGABRT, false, false, false},
    {"terminated", 0, SIGTERM, false, false, false},
    {"exit_traced", STATUS, 0, true, true, false},
    {"exit_in_exporter", STATUS, 0, true, true, true},
};

static const char *const shutdowns[] = {"never",        "before",      "concurrent",
                                        "atexit_early", "atexit_late", "destructor"};

static const char *const peers[] = {"answers", "answers_tls", "never_answers",
                                    "refuses", "silent_tls",  "plain"};

enum {
    WAYS = sizeof ways / sizeof *ways,
    SHUTDOWNS = sizeof shutdowns / sizeof *shutdowns,
    PEERS = sizeof peers / sizeof *peers,
    CASES = WAYS * SHUTDOWNS * PEERS
};

static const char *child_path;
static unsigned total;
static bool is_long;
static struct certificates *certificates;
static char server_pem[300];
static char server_key[300];
static char **tls_environ;  /* of children whose peer speaks TLS, or should */
static const char *only[3]; /* way, shutdown, peer; NULL: all */
static atomic_uint next_run;
static atomic_uint runs;
static atomic_uint failures;

/* The peer of one child. */
struct peer {
    struct http_sink *sink;
    struct fault_peer *tls;
    struct dead_peer *dead;
    char endpoint[64];
};

static void peer_start(struct peer *peer, const char *name, bool is_needed)
{
    *peer = (struct peer){.endpoint = "-"};
    if (!is_needed)
        return;
    if (strcmp(name, "answers") == 0) {
        peer->sink = http_sink_start(NULL, 0);
        snprintf(peer->endpoint, sizeof peer->endpoint, "http://127.0.0.1:%u",
                 (unsigned)http_sink_port(peer->sink));
        return;
    }
    if (strcmp(name, "answers_tls") == 0) {
        peer->tls = fault_peer_start(
            &(struct fault_peer_options){.tls = {.certificate = server_pem, .key = server_key}});
        snprintf(peer->endpoint, sizeof peer->endpoint, "%s", fault_peer_origin(peer->tls));
        return;
    }
    for (int kind = 0; kind < DEAD_PEER_KINDS; kind++)
        if (strcmp(name, dead_peer_name((enum dead_peer_kind)kind)) == 0)
            peer->dead = dead_peer_start((enum dead_peer_kind)kind);
    STRESS_CHECK(peer->dead != NULL);
    snprintf(peer->endpoint, sizeof peer->endpoint, "%s", dead_peer_url(peer->dead));
}

static void peer_stop(struct peer *peer)
{
    if (peer->sink != NULL)
        http_sink_stop(peer->sink);
    if (peer->tls != NULL)
        fault_peer_stop(peer->tls);
    if (peer->dead != NULL)
        dead_peer_stop(peer->dead);
}

/* Start the child with its stderr in a pipe; returns the end to read. */
static int spawn(const struct way *way, const char *shutdown, const char *endpoint, pid_t *pid)
{
    char **const environment = strncmp(endpoint, "https", 5) == 0 ? tls_environ : environ;
    int ends[2];
    STRESS_CHECK(pipe2(ends, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    char *const arguments[] = {(char *)child_path, (char *)way->name, (char *)shutdown,
                               (char *)endpoint, NULL};
    STRESS_CHECK(posix_spawn(pid, child_path, &actions, NULL, arguments, environment) == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    return ends[0];
}

/* Read until the child is gone. False: it has been silent for too long. */
static bool read_all(int fd, char *output)
{
    size_t length = 0;
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    char rest[512];
    for (;;) {
        output[length] = '\0';
        if (poll(&waited, 1, HANGS_MS) == 0)
            return false;
        const bool is_full = length >= OUTPUT - 1;
        const ssize_t got =
            is_full ? read(fd, rest, sizeof rest) : read(fd, output + length, OUTPUT - 1 - length);
        if (got == 0)
            return true;
        if (got > 0 && !is_full)
            length += (size_t)got;
    }
}

/* Whether each line is one of our log. */
static bool is_expected(const char *output)
{
    while (*output != '\0') {
        if (strncmp(output, "otel-c: ", 8) != 0)
            return false;
        output = strchr(output, '\n');
        if (output == NULL)
            return false;
        output++;
    }
    return true;
}

static void run_child(const struct way *way, const char *shutdown, const char *peer_name)
{
    struct peer peer;
    peer_start(&peer, peer_name, !way->has_exporter);
    pid_t pid;
    char output[OUTPUT];
    const int fd = spawn(way, shutdown, peer.endpoint, &pid);
    const bool has_ended = read_all(fd, output);
    if (!has_ended)
        kill(pid, SIGKILL);
    int status;
    while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
        continue;
    close(fd);
    peer_stop(&peer);

    const bool is_right = way->signal != 0
                              ? WIFSIGNALED(status) && WTERMSIG(status) == way->signal
                              : WIFEXITED(status) && WEXITSTATUS(status) == way->status;
    atomic_fetch_add(&runs, 1);
    if (has_ended && is_right && is_expected(output))
        return;
    atomic_fetch_add(&failures, 1);
    fprintf(stderr, "FAILED: %s, shutdown %s, peer %s: %s, wait status 0x%x, stderr:\n%s\n",
            way->name, shutdown, peer_name, has_ended ? "ended" : "hangs", (unsigned)status,
            output);
}

/* Combinations that are the same as another one are left out. */
static bool is_worth_it(const struct way *way, unsigned shutdown, unsigned peer)
{
    const char *const name = shutdowns[shutdown];
    if (only[0] != NULL)
        return strcmp(only[0], way->name) == 0 && strcmp(only[1], name) == 0 &&
               strcmp(only[2], peers[peer]) == 0;
    if (way->has_exporter && peer != 0)
        return false;
    /* Not at length, each way and each shutdown meets each peer, but not both at once. */
    const unsigned turn = (unsigned)(way - ways) + shutdown + peer;
    if (!is_long && !way->has_exporter && turn % PEERS != 0 && turn % PEERS != 2)
        return false;
    /* An exporter whose turn does not come any more would not end it. */
    if (way->has_exporter && (strcmp(name, "before") == 0 || strcmp(name, "concurrent") == 0))
        return false;
    /* A program that leaves main has to shut the SDK down itself. */
    if (strcmp(way->name, "pthread_exit") == 0 && strcmp(name, "before") != 0 &&
        strcmp(name, "concurrent") != 0)
        return false;
    return (way->runs_handlers || strncmp(name, "atexit", 6) != 0) &&
           (way->runs_destructors || strcmp(name, "destructor") != 0);
}

static void *run(void *unused)
{
    unsigned index;
    while ((index = atomic_fetch_add(&next_run, 1)) < total) {
        const unsigned way = index / PEERS / SHUTDOWNS % WAYS;
        const unsigned shutdown = index / PEERS % SHUTDOWNS;
        const unsigned peer = index % PEERS;
        if (is_worth_it(&ways[way], shutdown, peer))
            run_child(&ways[way], shutdowns[shutdown], peers[peer]);
    }
    return unused;
}

static void make_certificates(void)
{
    certificates = certificates_new();
    certificates_issue(certificates, &(const struct certificate_request){.name = "server"});
    snprintf(server_pem, sizeof server_pem, "%s/server.pem", certificates_directory(certificates));
    snprintf(server_key, sizeof server_key, "%s/server.key", certificates_directory(certificates));
}

/* OpenSSL loses what it keeps for threads that live when it takes itself apart: the leak
 * checker would report that. */
static void make_tls_environ(void)
{
    static char option[256] = "ASAN_OPTIONS=detect_leaks=0";
    static char authority[300];
    snprintf(authority, sizeof authority, "OTEL_EXPORTER_OTLP_CERTIFICATE=%s/ca.pem",
             certificates_directory(certificates));
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    tls_environ = calloc(count + 3, sizeof *tls_environ);
    STRESS_CHECK(tls_environ != NULL);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environ[i], "ASAN_OPTIONS=", 13) == 0)
            snprintf(option, sizeof option, "%s:detect_leaks=0", environ[i]);
        else
            tls_environ[kept++] = environ[i];
    }
    tls_environ[kept++] = option;
    tls_environ[kept] = authority;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: exit_paths CHILD [--long] [WAY SHUTDOWN PEER]\n");
        return 2;
    }
    child_path = argv[1];
    make_certificates();
    make_tls_environ();
    const unsigned scale = stress_scale(argc - 1, argv + 1, LONG);
    is_long = scale != 1;
    total = CASES * scale;
    for (int i = 0; i < 3 && argc >= 5; i++)
        only[i] = argv[argc - 3 + i];
    pthread_t runners[RUNNERS];
    for (int i = 0; i < RUNNERS; i++)
        STRESS_CHECK(pthread_create(&runners[i], NULL, run, NULL) == 0);
    for (int i = 0; i < RUNNERS; i++)
        pthread_join(runners[i], NULL);
    free(tls_environ);
    certificates_free(certificates);
    printf("%u programs ended, %u of them wrongly\n", atomic_load(&runs), atomic_load(&failures));
    return atomic_load(&failures) != 0 || atomic_load(&runs) == 0;
}

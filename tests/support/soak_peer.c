/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/soak_peer.c - the contracts are in soak_peer.h. */
#include "tests/support/soak_peer.h"

#include "common/base/atomic.h"
#include "tests/support/certificates.h"
#include "tests/support/fault_peer_inside.h"
#include "tests/support/oracle.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    HEAD = 4096, /* of the file: struct soak_shared */
    CHILD_FILE = 3,
    LOOK_US = 2000,
    READY_TRIES = 60000,
    FIRST_PORT = 12000, /* below those that the kernel gives to clients: one that connects to a */
    PORTS = 12000,      /* receiver that is away might otherwise find itself */
    TOO_LARGE = 16 * 1024,
    READ_BYTES = 16 * 1024
};

const char *const soak_trouble_names[SOAK_TROUBLES] = {
    "calm",      "resets",  "cuts",     "busy",   "stalls",  "deaf",      "goes away",
    "too large", "partial", "trickles", "killed", "renewed", "handshakes"};

/* ---- the receiver's process ---------------------------------------------------------------- */

struct receiver {
    struct soak_shared *shared;
    uint8_t *came; /* bits */
    uint8_t *taken;
    uint64_t most;
};

static const struct fault_answer answers[SOAK_TROUBLES] = {
    [SOAK_RESETS] = {.in_request = {FAULT_RESET, 700}},
    [SOAK_CUTS] = {.in_answer = {FAULT_RESET, 10}},
    [SOAK_BUSY] = {.status = 503, .headers = "Retry-After: 1\r\n"},
    [SOAK_STALLS] = {.in_answer = {FAULT_STALL, 0}},
    [SOAK_DEAF] = {.in_request = {FAULT_DEAF, 500}},
    [SOAK_GOES_AWAY] = {.goaway = FAULT_GOAWAY_INSTEAD, .then = FAULT_FIN},
    [SOAK_PARTIAL] = {.rejected = 1, .message = "one was too old"},
    [SOAK_TRICKLES] = {.pace_bytes = 4, .pace_ms = 5},
};

static void add(uint64_t *counter, uint64_t amount)
{
    oteli_store_relaxed_64(counter, oteli_load_relaxed_64(counter) + amount);
}

static void mark(struct receiver *receiver, const struct fault_bytes *ids, bool is_taken)
{
    for (size_t at = 0; at < ids->length; at += 8) {
        uint64_t number = 0;
        for (size_t i = 0; i < 8; i++)
            number = number << 8 | ids->data[at + i];
        if (number == 0 || number >= receiver->most) {
            add(&receiver->shared->unknown, 1);
            continue;
        }
        const uint8_t bit = (uint8_t)(1u << number % 8);
        receiver->came[number / 8] |= bit;
        if (is_taken)
            receiver->taken[number / 8] |= bit;
    }
}

static void refuse(const struct fault_peer_request *request, struct fault_answer *answer)
{
    if (request->format == FAULT_GRPC)
        *answer = (struct fault_answer){
            .rpc_code = 8,
            .message = "grpc: received message after decompression larger than max",
            .in_trailers_only = true};
    else
        *answer = (struct fault_answer){.status = 413};
}

/* On the peer's thread: read the request, and note what came before anything is answered. */
static void decide(void *state, const struct fault_peer_request *request,
                   struct fault_answer *answer)
{
    struct receiver *receiver = state;
    struct soak_shared *shared = receiver->shared;
    struct fault_peer_request read = *request;
    struct fault_bytes ids = {0};
    fault_uncover(&read);
    fault_examine(&read, &ids);
    if (read.problem != NULL && oteli_load_relaxed_32(&shared->has_problem) == 0) {
        snprintf(shared->problem, sizeof shared->problem, "%s", read.problem);
        oteli_store_release_32(&shared->has_problem, 1);
    }
    if (oteli_load_acquire_32(&shared->trouble) == SOAK_TOO_LARGE && read.plain_length > TOO_LARGE)
        refuse(request, answer);
    if (request->http == 1)
        answer->goaway = FAULT_GOAWAY_NONE; /* it is answered, and then the connection ends */
    const bool is_taken = fault_answer_is_success(answer, request->format);
    add(&shared->requests, 1);
    add(&shared->received, ids.length / 8);
    if (is_taken)
        add(&shared->rejected, (uint64_t)answer->rejected);
    mark(receiver, &ids, is_taken);
    fault_clear(&ids);
    free((void *)(uintptr_t)read.plain);
}

static void *map_file(int file, uint64_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    STRESS_CHECK(memory != MAP_FAILED);
    return memory;
}

/* receiver MOST PORT DIRECTORY TLS RENEWS STALLS */
int soak_peer_serve(int argc, char **argv)
{
    char certificate[512];
    char key[512];
    STRESS_CHECK(argc == 8 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    const uint64_t most = strtoull(argv[2], NULL, 10);
    const bool has_tls = strcmp(argv[5], "1") == 0;
    const bool stalls = strcmp(argv[7], "1") == 0;
    uint8_t *memory = map_file(CHILD_FILE, HEAD + 2 * (most / 8));
    struct receiver receiver = {.shared = (struct soak_shared *)(void *)memory,
                                .came = memory + HEAD,
                                .taken = memory + HEAD + most / 8,
                                .most = most};
    if (strcmp(argv[6], "1") == 0) {
        struct certificates *certificates = certificates_new_in(argv[4]);
        certificates_issue(certificates, &(struct certificate_request){.name = "server"});
        certificates_free(certificates);
    }
    snprintf(certificate, sizeof certificate, "%s/server.pem", argv[4]);
    snprintf(key, sizeof key, "%s/server.key", argv[4]);
    struct fault_peer_options options = {.decide = decide,
                                         .decide_state = &receiver,
                                         .keeps_none = true,
                                         .port = (uint16_t)atoi(argv[3])};
    if (has_tls)
        options.tls = (struct fault_peer_tls){.certificate = certificate, .key = key};
    if (stalls && has_tls)
        options.other_connections.in_handshake = (struct fault){FAULT_STALL, 60};
    else if (stalls)
        options.other_connections.received = (struct fault){FAULT_DEAF, 300};
    struct fault_peer *peer = fault_peer_start(&options);
    oteli_store_release_32(&receiver.shared->is_ready, 1);
    for (uint32_t last = SOAK_CALM;; stress_sleep_us(LOOK_US)) {
        const uint32_t trouble = oteli_load_acquire_32(&receiver.shared->trouble);
        if (trouble != last)
            fault_peer_set_otherwise(peer, &answers[trouble]);
        last = trouble;
    }
}

/* ---- the program's side -------------------------------------------------------------------- */

static bool is_free(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int one = 1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    STRESS_CHECK(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    const bool is_bound =
        bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0;
    close(fd);
    return is_bound;
}

void soak_peer_init(struct soak_peer *peer, uint64_t most, const char *directory)
{
    *peer = (struct soak_peer){.most = (most + 63) / 64 * 64, .directory = directory};
    peer->file = memfd_create("soak", MFD_CLOEXEC);
    STRESS_CHECK(peer->file >= 0 &&
                 ftruncate(peer->file, (off_t)(HEAD + 2 * (peer->most / 8))) == 0);
    peer->shared = map_file(peer->file, HEAD);
    uint32_t port = (uint32_t)getpid();
    while (!is_free((uint16_t)(FIRST_PORT + port % PORTS)))
        port++;
    peer->port = (uint16_t)(FIRST_PORT + port % PORTS);
}

void soak_peer_fini(struct soak_peer *peer)
{
    soak_peer_kill(peer);
    munmap(peer->shared, HEAD);
    close(peer->file);
}

void soak_peer_start(struct soak_peer *peer, bool renews, bool stalls_handshakes)
{
    char most[32];
    char port[16];
    char *arguments[] = {"soak_stress",
                         "receiver",
                         most,
                         port,
                         (char *)(uintptr_t)peer->directory,
                         peer->has_tls ? "1" : "0",
                         renews ? "1" : "0",
                         stalls_handshakes ? "1" : "0",
                         NULL};
    posix_spawn_file_actions_t actions;
    snprintf(most, sizeof most, "%llu", (unsigned long long)peer->most);
    snprintf(port, sizeof port, "%u", (unsigned)peer->port);
    oteli_store_release_32(&peer->shared->is_ready, 0);
    STRESS_CHECK(posix_spawn_file_actions_init(&actions) == 0);
    STRESS_CHECK(posix_spawn_file_actions_adddup2(&actions, peer->file, CHILD_FILE) == 0);
    STRESS_CHECK(
        posix_spawn(&peer->process, "/proc/self/exe", &actions, NULL, arguments, environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    for (int i = 0; oteli_load_acquire_32(&peer->shared->is_ready) == 0; i++) {
        STRESS_CHECK(i < READY_TRIES && waitpid(peer->process, NULL, WNOHANG) == 0);
        stress_sleep_us(1000);
    }
}

/* It has to be alive still: it never ends by itself. */
void soak_peer_kill(struct soak_peer *peer)
{
    int status = 0;
    if (peer->process == 0)
        return;
    STRESS_CHECK(kill(peer->process, SIGKILL) == 0);
    STRESS_CHECK(waitpid(peer->process, &status, 0) == peer->process);
    STRESS_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    peer->process = 0;
}

static uint64_t count_bits(const struct soak_peer *peer, uint64_t begin, uint64_t first,
                           uint64_t end)
{
    uint8_t bytes[READ_BYTES];
    uint64_t count = 0;
    for (uint64_t at = first / 8; at * 8 < end; at += READ_BYTES) {
        const ssize_t length = pread(peer->file, bytes, sizeof bytes, (off_t)(begin + at));
        STRESS_CHECK(length > 0);
        for (uint64_t i = 0; i < (uint64_t)length * 8; i++) {
            const uint64_t number = at * 8 + i;
            if (number >= first && number < end)
                count += bytes[i / 8] >> i % 8 & 1;
        }
    }
    return count;
}

struct soak_counts soak_peer_count(const struct soak_peer *peer, uint64_t first, uint64_t end)
{
    return (struct soak_counts){.came = count_bits(peer, HEAD, first, end),
                                .taken = count_bits(peer, HEAD + peer->most / 8, first, end)};
}

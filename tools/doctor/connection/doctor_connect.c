/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_connect.c - the contracts are in
 * tools/doctor/connection/doctor_connect.h. */
#include "tools/doctor/connection/doctor_connect.h"

#include "common/clock/clock.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

enum { HTTP_PORT = 4318, GRPC_PORT = 4317 };

static unsigned now_ms(void)
{
    return (unsigned)(oteli_monotonic_ns() / 1000000);
}

int doctor_connect_to(const struct doctor_peer *peer, unsigned timeout_ms)
{
    const struct timeval limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
    const int fd = socket(peer->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
        connect(fd, (const struct sockaddr *)&peer->address, peer->length) == 0)
        return fd;
    const int error = errno == EINPROGRESS ? ETIMEDOUT : errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

static void connect_to_all(const struct doctor_peer *peers, struct doctor_connect *seen,
                           unsigned timeout_ms, struct doctor_peer *first)
{
    unsigned left_ms = timeout_ms;
    seen->result = DOCTOR_FAILED;
    for (size_t i = 0; i < seen->count; i++) {
        struct doctor_address *address = &seen->addresses[i];
        const unsigned share_ms = left_ms / (unsigned)(seen->count - i);
        const unsigned begin_ms = now_ms();
        const int fd = doctor_connect_to(&peers[i], share_ms != 0 ? share_ms : 1);
        address->error = fd >= 0 ? 0 : errno;
        address->ms = now_ms() - begin_ms;
        left_ms -= address->ms < left_ms ? address->ms : left_ms;
        if (fd >= 0 && seen->result == DOCTOR_FAILED) {
            seen->result = DOCTOR_FINE;
            *first = peers[i];
        }
        if (fd >= 0)
            close(fd);
        /* A refusal says most: there is a way, and nobody at its end. */
        if (seen->error == 0 || address->error == ECONNREFUSED)
            seen->error = address->error;
    }
    if (seen->result == DOCTOR_FINE)
        seen->error = 0;
}

static void describe_address(const struct addrinfo *info, char *out, size_t size)
{
    char host[64];
    char port[8];
    if (getnameinfo(info->ai_addr, info->ai_addrlen, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        snprintf(out, size, "?");
    else
        snprintf(out, size, info->ai_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

/* With nobody at OTLP's usual port: is there somebody at the other one? */
static unsigned try_other_port(const struct doctor_peer *peers, size_t count, unsigned port,
                               unsigned timeout_ms)
{
    if (port != HTTP_PORT && port != GRPC_PORT)
        return 0;
    const unsigned other = port == HTTP_PORT ? GRPC_PORT : HTTP_PORT;
    for (size_t i = 0; i < count; i++) {
        struct doctor_peer peer = peers[i];
        if (peer.address.ss_family == AF_INET6)
            ((struct sockaddr_in6 *)&peer.address)->sin6_port = htons((uint16_t)other);
        else
            ((struct sockaddr_in *)&peer.address)->sin_port = htons((uint16_t)other);
        const int fd = doctor_connect_to(&peer, timeout_ms);
        if (fd >= 0) {
            close(fd);
            return other;
        }
    }
    return 0;
}

static void connect_to_socket(struct doctor_record *record, struct doctor_peer *first)
{
    struct doctor_peer peer = {.length = sizeof(struct sockaddr_un)};
    struct sockaddr_un *address = (struct sockaddr_un *)&peer.address;
    struct doctor_connect *seen = &record->connect;
    address->sun_family = AF_UNIX;
    snprintf(address->sun_path, sizeof address->sun_path, "%s", record->target.unix_path);
    snprintf(seen->addresses[0].text, sizeof seen->addresses[0].text, "%s", address->sun_path);
    seen->count = 1;
    connect_to_all(&peer, seen, record->target.timeout_ms, first);
}

/* libcurl takes localhost for this machine without asking a resolver (RFC 6761), and so does this
 * where the resolver does not know it. */
static int look_up(const char *host, const char *port, struct addrinfo **found)
{
    static const char local[] = "localhost";
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const size_t length = strlen(host);
    const char *end = length >= sizeof local ? host + length - sizeof local : host;
    const int error = getaddrinfo(host, port, &hints, found);
    const bool is_local =
        strcasecmp(host, local) == 0 || (*end == '.' && strcasecmp(end + 1, local) == 0);
    return error != 0 && is_local ? getaddrinfo(NULL, port, &hints, found) : error;
}

void doctor_connect(struct doctor_record *record, struct doctor_peer *peer)
{
    const struct doctor_target *target = &record->target;
    struct doctor_connect *seen = &record->connect;
    peer->length = 0;
    if (target->unix_path[0] != '\0') {
        connect_to_socket(record, peer);
        return;
    }
    const bool is_proxy = target->proxy[0] != '\0';
    const unsigned port = is_proxy ? target->proxy_port : target->port;
    char number[16];
    snprintf(number, sizeof number, "%u", port);
    struct addrinfo *found = NULL;
    const int error = look_up(is_proxy ? target->proxy_host : target->host, number, &found);
    record->name.result = error == 0 ? DOCTOR_FINE : DOCTOR_FAILED;
    if (error != 0) {
        record->name.no_server = error == EAI_AGAIN || error == EAI_FAIL || error == EAI_SYSTEM;
        snprintf(record->name.problem, sizeof record->name.problem, "%s", gai_strerror(error));
        return;
    }
    struct doctor_peer peers[DOCTOR_ADDRESSES] = {{.length = 0}};
    for (const struct addrinfo *info = found; info != NULL && seen->count < DOCTOR_ADDRESSES;
         info = info->ai_next) {
        char *text = seen->addresses[seen->count].text;
        memcpy(&peers[seen->count].address, info->ai_addr, info->ai_addrlen);
        peers[seen->count++].length = info->ai_addrlen;
        describe_address(info, text, sizeof seen->addresses[0].text);
    }
    freeaddrinfo(found);
    connect_to_all(peers, seen, target->timeout_ms, peer);
    if (seen->error == ECONNREFUSED && !is_proxy)
        seen->other_port = try_other_port(peers, seen->count, port, target->timeout_ms);
}

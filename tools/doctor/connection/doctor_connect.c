/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_connect.c - the contracts are in
 * tools/doctor/connection/doctor_connect.h. */
#include "tools/doctor/connection/doctor_connect.h"

#include "common/clock/clock.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

enum { HTTP_PORT = 4318, GRPC_PORT = 4317 };

static uint64_t now_ms(void)
{
    return oteli_monotonic_ns() / 1000000;
}

/* Begin; the descriptor, or -1 with the error. */
static int begin(const struct doctor_door *door, int *error)
{
    const int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    const int fd = socket(door->address.ss_family, type, 0);
    *error = 0;
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&door->address, door->length) == 0)
        return fd;
    if (fd >= 0 && errno == EINPROGRESS) {
        *error = EINPROGRESS;
        return fd;
    }
    *error = errno;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int error_of(int fd)
{
    int error = 0;
    socklen_t length = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

/* The doors that are being knocked at. */
struct knocking {
    struct doctor_door doors[DOCTOR_ADDRESSES];
    struct pollfd waiting[DOCTOR_ADDRESSES]; /* fd -1: decided */
    size_t count;
};

static void note(struct doctor_address *address, uint64_t begin_ms, int error)
{
    address->error = error;
    address->ms = (unsigned)(now_ms() - begin_ms);
}

/* Wait for all of them; those that are silent until the end have timed out. */
static void wait_for_all(struct knocking *knocking, struct doctor_connect *seen, uint64_t begin_ms,
                         unsigned timeout_ms)
{
    for (;;) {
        size_t left = 0;
        for (size_t i = 0; i < knocking->count; i++)
            left += knocking->waiting[i].fd >= 0;
        const uint64_t now = now_ms();
        const uint64_t end = begin_ms + timeout_ms;
        if (left == 0 || now >= end)
            break;
        if (poll(knocking->waiting, knocking->count, (int)(end - now)) < 0 && errno != EINTR)
            break;
        for (size_t i = 0; i < knocking->count; i++) {
            struct pollfd *one = &knocking->waiting[i];
            if (one->fd < 0 || one->revents == 0)
                continue;
            note(&seen->addresses[i], begin_ms, error_of(one->fd));
            close(one->fd);
            one->fd = -1;
        }
    }
    for (size_t i = 0; i < knocking->count; i++) {
        if (knocking->waiting[i].fd < 0)
            continue;
        note(&seen->addresses[i], begin_ms, ETIMEDOUT);
        close(knocking->waiting[i].fd);
        knocking->waiting[i].fd = -1;
    }
}

static void knock(struct knocking *knocking, struct doctor_connect *seen, unsigned timeout_ms,
                  struct doctor_door *door)
{
    const uint64_t begin_ms = now_ms();
    for (size_t i = 0; i < knocking->count; i++) {
        int error;
        const int fd = begin(&knocking->doors[i], &error);
        knocking->waiting[i] = (struct pollfd){.fd = fd, .events = POLLOUT};
        seen->addresses[i].error = error;
        if (error == 0 && fd >= 0) {
            close(fd);
            knocking->waiting[i].fd = -1;
        }
    }
    seen->count = knocking->count;
    wait_for_all(knocking, seen, begin_ms, timeout_ms);

    seen->result = DOCTOR_FAILED;
    for (size_t i = 0; i < knocking->count; i++) {
        const int error = seen->addresses[i].error;
        if (error == 0 && seen->result == DOCTOR_FAILED) {
            seen->result = DOCTOR_FINE;
            *door = knocking->doors[i];
        }
        /* A refusal says most: there is a way, and nobody at its end. */
        if (seen->error == 0 || error == ECONNREFUSED)
            seen->error = error;
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
static unsigned try_other_port(const struct knocking *knocking, unsigned port, unsigned timeout_ms)
{
    if (port != HTTP_PORT && port != GRPC_PORT)
        return 0;
    const unsigned other = port == HTTP_PORT ? GRPC_PORT : HTTP_PORT;
    for (size_t i = 0; i < knocking->count; i++) {
        struct doctor_door door = knocking->doors[i];
        if (door.address.ss_family == AF_INET6)
            ((struct sockaddr_in6 *)&door.address)->sin6_port = htons((uint16_t)other);
        else
            ((struct sockaddr_in *)&door.address)->sin_port = htons((uint16_t)other);
        const int fd = doctor_connect_again(&door, timeout_ms);
        if (fd >= 0) {
            close(fd);
            return other;
        }
    }
    return 0;
}

static void connect_to_socket(struct doctor_record *record, struct doctor_door *door)
{
    struct knocking knocking = {.count = 1};
    struct sockaddr_un *address = (struct sockaddr_un *)&knocking.doors[0].address;
    address->sun_family = AF_UNIX;
    snprintf(address->sun_path, sizeof address->sun_path, "%s", record->target.unix_path);
    knocking.doors[0].length = sizeof *address;
    snprintf(record->connect.addresses[0].text, sizeof record->connect.addresses[0].text, "%s",
             record->target.unix_path);
    knock(&knocking, &record->connect, record->target.timeout_ms, door);
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

void doctor_connect(struct doctor_record *record, struct doctor_door *door)
{
    const struct doctor_target *target = &record->target;
    struct doctor_name *name = &record->name;
    door->length = 0;
    if (target->unix_path[0] != '\0') {
        connect_to_socket(record, door);
        return;
    }
    const bool is_proxy = target->proxy[0] != '\0';
    const unsigned port = is_proxy ? target->proxy_port : target->port;
    char number[16];
    snprintf(number, sizeof number, "%u", port);
    struct addrinfo *found = NULL;
    const int error = look_up(is_proxy ? target->proxy_host : target->host, number, &found);
    name->result = error == 0 ? DOCTOR_FINE : DOCTOR_FAILED;
    if (error != 0) {
        name->no_server = error == EAI_AGAIN || error == EAI_FAIL || error == EAI_SYSTEM;
        snprintf(name->problem, sizeof name->problem, "%s", gai_strerror(error));
        return;
    }
    struct knocking knocking = {.count = 0};
    for (const struct addrinfo *info = found; info != NULL && knocking.count < DOCTOR_ADDRESSES;
         info = info->ai_next) {
        struct doctor_door *one = &knocking.doors[knocking.count];
        char *text = record->connect.addresses[knocking.count++].text;
        memcpy(&one->address, info->ai_addr, info->ai_addrlen);
        one->length = info->ai_addrlen;
        describe_address(info, text, sizeof record->connect.addresses[0].text);
    }
    freeaddrinfo(found);
    knock(&knocking, &record->connect, target->timeout_ms, door);
    if (record->connect.error == ECONNREFUSED && !is_proxy)
        record->connect.other_port = try_other_port(&knocking, port, target->timeout_ms);
}

int doctor_connect_again(const struct doctor_door *door, unsigned timeout_ms)
{
    int error;
    const int fd = begin(door, &error);
    if (fd < 0)
        return -1;
    struct pollfd waiting = {.fd = fd, .events = POLLOUT};
    if (error == 0 || (poll(&waiting, 1, (int)timeout_ms) == 1 && error_of(fd) == 0))
        return fd;
    close(fd);
    return -1;
}

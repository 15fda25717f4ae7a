/* SPDX-License-Identifier: Apache-2.0 */
/* examples/relay/wire.c - HTTP/1.1 over sockets, and one shape of JSON: see wire.h.
 *
 *     cc -c wire.c */
#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- connections ---- */

int wire_listen(uint16_t *port)
{
    const int on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        return -1;
    *port = ntohs(address.sin_port);
    return fd;
}

void wire_stop(int listener)
{
    shutdown(listener, SHUT_RDWR);
}

static bool send_all(int fd, const char *data, size_t length)
{
    while (length > 0) {
        const ssize_t sent = send(fd, data, length, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        data += sent;
        length -= (size_t)sent;
    }
    return true;
}

void wire_answer(int connection, unsigned status)
{
    char text[128];
    const int length = snprintf(text, sizeof text,
                                "HTTP/1.1 %u %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                                status, status < 400 ? "OK" : "Not OK");
    send_all(connection, text, (size_t)length);
    close(connection);
}

/* ---- requests that come in ---- */

static struct wire_text without_blanks(const char *start, const char *end)
{
    while (start < end && strchr(" \t\r\n", *start) != NULL)
        start++;
    while (end > start && strchr(" \t\r\n", end[-1]) != NULL)
        end--;
    return (struct wire_text){start, (size_t)(end - start)};
}

/* Cut the head, which ends with an empty line, into its parts. */
static bool cut_head(struct wire_request *request, char *head)
{
    char *state;
    char *line = strtok_r(head, "\r\n", &state);
    char *words;
    request->method = line != NULL ? strtok_r(line, " ", &words) : NULL;
    request->target = request->method != NULL ? strtok_r(NULL, " ", &words) : NULL;
    request->version = request->target != NULL ? strtok_r(NULL, " ", &words) : NULL;
    request->header_count = 0;
    while ((line = strtok_r(NULL, "\r\n", &state)) != NULL) {
        char *colon = strchr(line, ':');
        if (colon == NULL || request->header_count == 64)
            return false;
        *colon = '\0';
        request->headers[request->header_count++] =
            (struct wire_header){line, without_blanks(colon + 1, colon + 1 + strlen(colon + 1))};
    }
    return request->version != NULL;
}

static size_t body_length(const struct wire_request *request)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (strcasecmp(request->headers[i].name, "content-length") == 0)
            return strtoul(request->headers[i].value.data, NULL, 10);
    return 0;
}

static bool read_request(int fd, struct wire_request *request)
{
    size_t have = 0;
    size_t want = SIZE_MAX; /* until the head is there, and says */
    while (have < want) {
        const ssize_t got = recv(fd, request->memory + have, sizeof request->memory - 1 - have, 0);
        if (got <= 0)
            return false;
        have += (size_t)got;
        request->memory[have] = '\0';
        char *end = want == SIZE_MAX ? strstr(request->memory, "\r\n\r\n") : NULL;
        if (end == NULL)
            continue;
        *end = '\0';
        request->body.data = end + 4;
        if (!cut_head(request, request->memory))
            return false;
        request->body.length = body_length(request);
        want = (size_t)(end + 4 - request->memory) + request->body.length;
        if (request->body.length > sizeof request->memory || want >= sizeof request->memory)
            return false;
    }
    return true;
}

int wire_accept(int listener, struct wire_request *request)
{
    for (;;) {
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        const int fd = accept(listener, (struct sockaddr *)&peer, &length);
        if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
            continue;
        if (fd < 0)
            return -1;
        inet_ntop(AF_INET, &peer.sin_addr, request->peer, sizeof request->peer);
        request->peer_port = ntohs(peer.sin_port);
        if (read_request(fd, request))
            return fd;
        wire_answer(fd, 400);
    }
}

/* ---- requests that go out ---- */

void wire_add_line(struct wire_lines *lines, const char *name, const char *value, size_t length)
{
    const size_t room = sizeof lines->text - lines->length;
    const int wrote =
        snprintf(lines->text + lines->length, room, "%s: %.*s\r\n", name, (int)length, value);
    if (wrote > 0 && (size_t)wrote < room)
        lines->length += (size_t)wrote;
}

/* Cut http://ADDRESS:PORT/PATH. */
static bool cut_url(const char *url, char host[16], uint16_t *port, const char **path)
{
    const char *start = url + strlen("http://");
    const char *colon = strncmp(url, "http://", strlen("http://")) == 0 ? strchr(start, ':') : NULL;
    if (colon == NULL || colon - start > 15)
        return false;
    memcpy(host, start, (size_t)(colon - start));
    host[colon - start] = '\0';
    char *end;
    *port = (uint16_t)strtoul(colon + 1, &end, 10);
    *path = end;
    return *end == '/';
}

unsigned wire_post(const char *url, const struct wire_lines *headers, struct wire_text body)
{
    struct sockaddr_in server = {.sin_family = AF_INET};
    char host[16];
    const char *path;
    uint16_t port;
    if (!cut_url(url, host, &port, &path) || inet_pton(AF_INET, host, &server.sin_addr) != 1)
        return 0;
    server.sin_port = htons(port);
    char head[512];
    const int length =
        snprintf(head, sizeof head,
                 "POST %s HTTP/1.1\r\nHost: %s:%u\r\nContent-Type: application/json\r\n"
                 "Connection: close\r\nContent-Length: %zu\r\n",
                 path, host, port, body.length);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char answer[64] = ""; /* "HTTP/1.1 200 …" */
    const bool is_answered = fd >= 0 && (size_t)length < sizeof head &&
                             connect(fd, (struct sockaddr *)&server, sizeof server) == 0 &&
                             send_all(fd, head, (size_t)length) &&
                             send_all(fd, headers->text, headers->length) &&
                             send_all(fd, "\r\n", 2) && send_all(fd, body.data, body.length) &&
                             recv(fd, answer, sizeof answer - 1, MSG_WAITALL) > 12;
    if (fd >= 0)
        close(fd);
    return is_answered ? (unsigned)strtoul(answer + 9, NULL, 10) : 0;
}

/* ---- the array of calls ---- */

/* The end of the JSON value at `at`: the first ',', ']' or '}' that is not within it. */
static const char *value_end(const char *at, const char *end)
{
    int depth = 0;
    bool in_string = false;
    for (; at < end; at++) {
        if (*at == '\\' && in_string)
            at++;
        else if (*at == '"')
            in_string = !in_string;
        else if (in_string)
            continue;
        else if (depth == 0 && strchr(",]}", *at) != NULL)
            break;
        else if (*at == '[' || *at == '{')
            depth++;
        else if (*at == ']' || *at == '}')
            depth--;
    }
    return at < end ? at : end;
}

static bool is_name(struct wire_text name, const char *known)
{
    return name.length == strlen(known) && memcmp(name.data, known, name.length) == 0;
}

bool wire_next_call(struct wire_text *rest, char url[256], struct wire_text *arguments)
{
    const char *end = rest->data + rest->length;
    const char *at = memchr(rest->data, '{', rest->length);
    url[0] = '\0';
    *arguments = (struct wire_text){"[]", 2};
    while (at != NULL && at < end && *at != '}') {
        const char *start = at + 1; /* behind '{' or ',' */
        const char *colon = memchr(start, ':', (size_t)(end - start));
        if (colon == NULL)
            break;
        at = value_end(colon + 1, end);
        const struct wire_text name = without_blanks(start, colon);
        const struct wire_text value = without_blanks(colon + 1, at);
        if (is_name(name, "\"url\"") && value.length > 2) /* without its quotes */
            snprintf(url, 256, "%.*s", (int)value.length - 2, value.data + 1);
        else if (is_name(name, "\"arguments\""))
            *arguments = value;
    }
    const char *next = at != NULL && at < end ? at + 1 : end;
    *rest = (struct wire_text){next, (size_t)(end - next)};
    return url[0] != '\0';
}

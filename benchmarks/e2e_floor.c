/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/e2e_floor.c - requests by libcurl alone, and by a socket: e2e_floor.h. */
#include "benchmarks/e2e_floor.h"
#include "benchmarks/bench.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static char *make_body(size_t bytes)
{
    char *body = malloc(bytes);
    if (body == NULL)
        bench_fail("no memory");
    memset(body, 'x', bytes);
    return body;
}

static size_t forget(char *data, size_t size, size_t count, void *state)
{
    (void)data;
    (void)state;
    return size * count;
}

void e2e_floor_libcurl(const char *url, uint64_t requests, size_t bytes)
{
    char *body = make_body(bytes);
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/x-protobuf");
    headers = curl_slist_append(headers, "Expect:");
    if (curl == NULL || headers == NULL || curl_easy_setopt(curl, CURLOPT_URL, url) != CURLE_OK ||
        curl_easy_setopt(curl, CURLOPT_NOPROXY, "*") != CURLE_OK ||
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers) != CURLE_OK ||
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body) != CURLE_OK ||
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)bytes) != CURLE_OK ||
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, forget) != CURLE_OK)
        bench_fail("libcurl cannot be used");
    for (uint64_t i = 0; i < requests; i++) {
        long status = 0;
        if (curl_easy_perform(curl) != CURLE_OK ||
            curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK || status != 200)
            bench_fail("libcurl could not send");
    }
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    free(body);
}

static void send_all(int fd, struct iovec *parts, size_t count)
{
    while (count != 0) {
        ssize_t sent = writev(fd, parts, (int)count);
        if (sent <= 0)
            bench_fail("the socket could not send");
        for (; count != 0 && (size_t)sent >= parts->iov_len; parts++, count--)
            sent -= (ssize_t)parts->iov_len;
        if (count != 0) {
            parts->iov_base = (char *)parts->iov_base + sent;
            parts->iov_len -= (size_t)sent;
        }
    }
}

void e2e_floor_socket(const char *url, uint64_t requests, size_t bytes)
{
    char *body = make_body(bytes);
    char head[256];
    char answer[1024];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const char *port = strrchr(url, ':');
    address.sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10));
    const int length = snprintf(head, sizeof head,
                                "POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                                "Content-Type: application/x-protobuf\r\n"
                                "Content-Length: %zu\r\n\r\n",
                                bytes);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        bench_fail("no connection");
    for (uint64_t i = 0; i < requests; i++) {
        struct iovec parts[] = {{head, (size_t)length}, {body, bytes}};
        send_all(fd, parts, 2);
        if (recv(fd, answer, sizeof answer, 0) <= 0)
            bench_fail("no answer");
    }
    close(fd);
    free(body);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/asking.c - the contracts are in asking.h. */
#include "tests/support/asking.h"

#include "common/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TURN_MS = 100, CONNECT_MS = 60000, HANGS_MS = 600000 };

static char lines[8192];
static char taken[sizeof lines];

void oteli_log_write(struct oteli_log_site *site, otel_log_level level, uint64_t lost,
                     const char *format, ...)
{
    (void)site;
    (void)level;
    (void)lost;
    const size_t length = strlen(lines);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(lines + length, sizeof lines - length, format, arguments);
    va_end(arguments);
    strncat(lines, "\n", sizeof lines - strlen(lines) - 1);
}

void oteli_log_share(void)
{
}

const char *asking_log(void)
{
    memcpy(taken, lines, sizeof lines);
    lines[0] = '\0';
    return taken;
}

const void *asking_message(size_t length)
{
    static uint8_t *message;
    uint8_t *longer = realloc(message, length);
    if (longer == NULL)
        abort();
    message = longer;
    memset(message, 0, length);
    for (size_t i = 0; i < 4 && length >= 5; i++)
        message[1 + i] = (uint8_t)((length - 5) >> (24 - 8 * i));
    return message;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct oteli_transport_response asking_request(struct oteli_transport *transport,
                                               const struct oteli_transport_request *request)
{
    struct oteli_transport_response answer;
    oteli_transport_start(transport, request);
    /* A turn ends with each event, so only the time says that a request hangs. */
    for (const uint64_t start = now_ms(); now_ms() - start < HANGS_MS;)
        if (oteli_transport_poll(transport, TURN_MS, &answer))
            return answer;
    oteli_transport_cancel(transport, &answer);
    return answer;
}

struct oteli_transport_response asking_post(struct oteli_transport *transport, const void *body,
                                            size_t length)
{
    return asking_request(transport, &(const struct oteli_transport_request){
                                         .body = body, .length = length, .connect_ms = CONNECT_MS});
}

struct certificates *asking_certificates;

int asking_set_up(void **state)
{
    (void)state;
    asking_certificates = certificates_new();
    certificates_issue(asking_certificates, &(const struct certificate_request){.name = "server"});
    certificates_issue(asking_certificates, &(const struct certificate_request){.name = "client"});
    return 0;
}

int asking_tear_down(void **state)
{
    (void)state;
    certificates_free(asking_certificates);
    return 0;
}

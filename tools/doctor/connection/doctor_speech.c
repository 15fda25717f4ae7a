/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_speech.c - the contracts are in
 * tools/doctor/connection/doctor_speech.h. */
#include "tools/doctor/connection/doctor_speech.h"

#include "common/clock/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The preface of HTTP/2, and an empty SETTINGS frame. */
static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";

enum doctor_speech doctor_speech_of(const unsigned char *bytes, size_t length)
{
    if (length >= 5 && memcmp(bytes, "HTTP/", 5) == 0)
        return DOCTOR_SPEECH_HTTP1;
    /* An alert or a handshake of TLS or SSL 3. */
    if (length >= 3 && (bytes[0] == 0x15 || bytes[0] == 0x16) && bytes[1] == 3)
        return DOCTOR_SPEECH_TLS;
    /* A SETTINGS frame on stream 0, as HTTP/2 begins: 3 bytes of length, type, flags, stream. */
    static const unsigned char stream[4] = {0};
    if (length >= 9 && bytes[0] == 0 && bytes[3] == 4 && memcmp(bytes + 5, stream, 4) == 0)
        return DOCTOR_SPEECH_HTTP2;
    return DOCTOR_SPEECH_UNKNOWN;
}

/* What is answered to some bytes. All of an answer has one deadline: a server that sends byte after
 * byte does not move it. */
static enum doctor_speech answer_to(const struct doctor_peer *peer, const char *bytes,
                                    size_t length, unsigned timeout_ms)
{
    const uint64_t deadline_ns = oteli_monotonic_ns() + timeout_ms * UINT64_C(1000000);
    const int fd = doctor_connect_to(peer, timeout_ms);
    enum doctor_speech speech = DOCTOR_SPEECH_UNKNOWN;
    unsigned char heard[256];
    size_t count = 0;
    if (fd < 0 || send(fd, bytes, length, MSG_NOSIGNAL) != (ssize_t)length)
        length = 0;
    while (length != 0 && speech == DOCTOR_SPEECH_UNKNOWN && count < sizeof heard &&
           oteli_monotonic_ns() < deadline_ns) {
        const ssize_t more = recv(fd, heard + count, sizeof heard - count, 0);
        if (more <= 0)
            break;
        count += (size_t)more;
        speech = doctor_speech_of(heard, count);
    }
    if (fd >= 0)
        close(fd);
    return speech;
}

enum doctor_speech doctor_speech_ask(const struct doctor_peer *peer, const char *host,
                                     unsigned timeout_ms)
{
    char request[512];
    const int length =
        snprintf(request, sizeof request,
                 "GET / HTTP/1.1\r\nHost: %.255s\r\nConnection: close\r\n\r\n", host);
    const enum doctor_speech speech = answer_to(peer, request, (size_t)length, timeout_ms);
    return speech != DOCTOR_SPEECH_UNKNOWN
               ? speech
               : answer_to(peer, preface, sizeof preface - 1, timeout_ms);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_speech.c - the contracts are in
 * tools/doctor/connection/doctor_speech.h. */
#include "tools/doctor/connection/doctor_speech.h"

#include "common/clock/clock.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 5000, HEARD = 256 };

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

static uint64_t deadline_in(unsigned timeout_ms)
{
    return oteli_monotonic_ns() + timeout_ms * UINT64_C(1000000);
}

/* false: the deadline has passed. However often one waits for the same deadline, whoever sends
 * byte after byte does not move it. */
static bool wait_for(int fd, short events, uint64_t deadline_ns)
{
    struct pollfd waiting = {.fd = fd, .events = events};
    int ready;
    do {
        const uint64_t now_ns = oteli_monotonic_ns();
        if (now_ns >= deadline_ns)
            return false;
        ready = poll(&waiting, 1, (int)((deadline_ns - now_ns + 999999) / 1000000));
    } while (ready == 0 || (ready < 0 && errno == EINTR));
    return ready == 1;
}

/* What is answered to some bytes. */
static enum doctor_speech answer_to(const struct doctor_door *door, const char *bytes,
                                    size_t length, unsigned timeout_ms)
{
    const int fd = doctor_connect_again(door, timeout_ms);
    if (fd < 0)
        return DOCTOR_SPEECH_UNKNOWN;
    unsigned char heard[HEARD];
    size_t count = 0;
    enum doctor_speech speech = DOCTOR_SPEECH_SILENT;
    const uint64_t deadline_ns = deadline_in(timeout_ms);
    if (send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length) {
        while (count < sizeof heard && wait_for(fd, POLLIN, deadline_ns)) {
            const ssize_t more = recv(fd, heard + count, sizeof heard - count, 0);
            if (more > 0)
                count += (size_t)more;
            speech = doctor_speech_of(heard, count);
            if (more <= 0 || speech != DOCTOR_SPEECH_UNKNOWN)
                break;
        }
    }
    close(fd);
    return speech;
}

/* Go on with a handshake until it has succeeded or failed. */
static bool shake_hands(SSL *ssl, int fd, unsigned timeout_ms)
{
    const uint64_t deadline_ns = deadline_in(timeout_ms);
    int result;
    int error;
    do {
        result = SSL_connect(ssl);
        error = SSL_get_error(ssl, result);
    } while (result != 1 && (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) &&
             wait_for(fd, error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline_ns));
    return result == 1;
}

/* Whether a TLS handshake gets so far that the other end has said its version; whom its
 * certificate is for does not matter here. HTTP/2 is what we offer for the inside. */
static enum doctor_speech answer_to_tls(const struct doctor_door *door, const char *host,
                                        unsigned timeout_ms)
{
    static const unsigned char offer[] = "\x02h2";
    const int fd = doctor_connect_again(door, timeout_ms);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = context != NULL ? SSL_new(context) : NULL;
    enum doctor_speech speech = DOCTOR_SPEECH_UNKNOWN;
    if (fd >= 0 && ssl != NULL && SSL_set_fd(ssl, fd) == 1 &&
        SSL_set_alpn_protos(ssl, offer, sizeof offer - 1) == 0) {
        SSL_set_tlsext_host_name(ssl, host);
        /* A server that wants a certificate breaks off, but by then it has shown its own. */
        if (shake_hands(ssl, fd, timeout_ms) || SSL_get0_peer_certificate(ssl) != NULL)
            speech = DOCTOR_SPEECH_TLS;
        const unsigned char *chosen;
        unsigned length = 0;
        SSL_get0_alpn_selected(ssl, &chosen, &length);
        if (length == 2)
            speech = DOCTOR_SPEECH_HTTP2_IN_TLS;
    }
    SSL_free(ssl);
    SSL_CTX_free(context);
    ERR_clear_error();
    if (fd >= 0)
        close(fd);
    return speech;
}

enum doctor_speech doctor_speech_ask(const struct doctor_door *door,
                                     const struct doctor_target *target, bool tls_is_fine)
{
    if (door->length == 0)
        return DOCTOR_SPEECH_UNKNOWN;
    const unsigned patience = target->timeout_ms < PATIENCE_MS ? target->timeout_ms : PATIENCE_MS;
    if (tls_is_fine || !target->is_tls) {
        const enum doctor_speech speech = answer_to_tls(door, target->host, patience);
        if (tls_is_fine || speech != DOCTOR_SPEECH_UNKNOWN)
            return speech;
    }
    char request[512];
    const int length =
        snprintf(request, sizeof request,
                 "GET / HTTP/1.1\r\nHost: %.255s\r\nConnection: close\r\n\r\n", target->host);
    const enum doctor_speech first = answer_to(door, request, (size_t)length, patience);
    if (first != DOCTOR_SPEECH_UNKNOWN && first != DOCTOR_SPEECH_SILENT)
        return first;
    const enum doctor_speech second = answer_to(door, preface, sizeof preface - 1, patience);
    return second == DOCTOR_SPEECH_UNKNOWN ? first : second;
}

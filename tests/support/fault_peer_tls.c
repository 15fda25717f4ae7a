/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/fault_peer_tls.c - the server's side of TLS by OpenSSL, between two buffers: every
 * byte that it wants to send can be counted, and kept back. The contracts are in
 * fault_peer_inside.h. */
#include "tests/support/fault_peer_inside.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

struct fault_tls_context {
    SSL_CTX *ssl;
    bool without_http2;
};

struct fault_tls {
    SSL *ssl;
    BIO *in;  /* from the socket; belongs to ssl, as the next */
    BIO *out; /* to the socket */
};

static void ask_for_clients(SSL_CTX *ssl, const char *authority)
{
    fault_must(SSL_CTX_load_verify_locations(ssl, authority, NULL) == 1);
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    /* Without one, a session that a client takes up again is refused. */
    fault_must(SSL_CTX_set_session_id_context(ssl, (const unsigned char *)"fault", 5) == 1);
}

static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_length,
                           const unsigned char *offered, unsigned offered_length, void *state)
{
    static const unsigned char both[] = "\x2h2\x8http/1.1";
    const struct fault_tls_context *context = state;
    const size_t skipped = context->without_http2 ? 3 : 0;
    (void)ssl;
    return SSL_select_next_proto((unsigned char **)(uintptr_t)chosen, chosen_length, both + skipped,
                                 (unsigned)(sizeof both - 1 - skipped), offered,
                                 offered_length) == OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_NOACK;
}

static int version(int number)
{
    return number == 12 ? TLS1_2_VERSION : number == 13 ? TLS1_3_VERSION : 0;
}

struct fault_tls_context *fault_tls_context_new(const struct fault_peer_tls *options)
{
    if (options->certificate == NULL)
        return NULL;
    struct fault_tls_context *context = calloc(1, sizeof *context);
    fault_must(context != NULL);
    context->ssl = SSL_CTX_new(TLS_server_method());
    fault_must(context->ssl != NULL);
    context->without_http2 = options->without_http2;
    fault_must(SSL_CTX_use_certificate_chain_file(context->ssl, options->certificate) == 1);
    fault_must(SSL_CTX_use_PrivateKey_file(context->ssl, options->key, SSL_FILETYPE_PEM) == 1);
    if (options->client_ca != NULL)
        ask_for_clients(context->ssl, options->client_ca);
    fault_must(SSL_CTX_set_min_proto_version(context->ssl, version(options->min_version)) == 1);
    fault_must(SSL_CTX_set_max_proto_version(context->ssl, version(options->max_version)) == 1);
    SSL_CTX_set_alpn_select_cb(context->ssl, choose_protocol, context);
    return context;
}

void fault_tls_context_free(struct fault_tls_context *context)
{
    if (context == NULL)
        return;
    SSL_CTX_free(context->ssl);
    free(context);
}

struct fault_tls *fault_tls_new(struct fault_tls_context *context)
{
    struct fault_tls *tls = calloc(1, sizeof *tls);
    fault_must(tls != NULL);
    tls->ssl = SSL_new(context->ssl);
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    fault_must(tls->ssl != NULL && tls->in != NULL && tls->out != NULL);
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    SSL_set_accept_state(tls->ssl);
    return tls;
}

void fault_tls_free(struct fault_tls *tls)
{
    if (tls == NULL)
        return;
    SSL_free(tls->ssl);
    free(tls);
}

bool fault_tls_is_ready(const struct fault_tls *tls)
{
    return SSL_is_init_finished(tls->ssl);
}

bool fault_tls_chose_http2(const struct fault_tls *tls)
{
    const unsigned char *name;
    unsigned length;
    SSL_get0_alpn_selected(tls->ssl, &name, &length);
    return length == 2 && memcmp(name, "h2", 2) == 0;
}

/* Move what is to be sent, at most *left bytes if those are counted. */
static void collect(struct fault_tls *tls, struct fault_bytes *wire, size_t *left)
{
    uint8_t piece[4096];
    for (;;) {
        const int got = BIO_read(tls->out, piece, sizeof piece);
        if (got <= 0)
            return;
        const size_t moved = (size_t)got < *left ? (size_t)got : *left;
        fault_append(wire, piece, moved);
        if (*left != SIZE_MAX)
            *left -= moved;
    }
}

bool fault_tls_receive(struct fault_tls *tls, const void *bytes, size_t length,
                       struct fault_bytes *plain, struct fault_bytes *wire, size_t *handshake_left)
{
    uint8_t piece[16 * 1024];
    size_t all = SIZE_MAX;
    size_t *left = SSL_is_init_finished(tls->ssl) ? &all : handshake_left;
    int result = 1;
    fault_must(BIO_write(tls->in, bytes, (int)length) == (int)length);
    ERR_clear_error();
    if (!SSL_is_init_finished(tls->ssl))
        result = SSL_do_handshake(tls->ssl);
    while (result > 0 && *left != 0) {
        result = SSL_read(tls->ssl, piece, sizeof piece);
        if (result > 0)
            fault_append(plain, piece, (size_t)result);
    }
    const int error = result > 0 ? SSL_ERROR_NONE : SSL_get_error(tls->ssl, result);
    collect(tls, wire, left);
    ERR_clear_error();
    return error == SSL_ERROR_NONE || error == SSL_ERROR_WANT_READ;
}

bool fault_tls_send(struct fault_tls *tls, const void *bytes, size_t length,
                    struct fault_bytes *wire)
{
    size_t all = SIZE_MAX;
    ERR_clear_error();
    const int written = SSL_write(tls->ssl, bytes, (int)length);
    collect(tls, wire, &all);
    return written == (int)length;
}

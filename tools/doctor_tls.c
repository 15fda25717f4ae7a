/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor_tls.c - the contracts are in tools/doctor_tls.h. */
#include "tools/doctor_tls.h"

#include "tools/doctor_secrets.h"

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- what OpenSSL tells --------------------------------------------------------------- */

static int place_of_watch(void)
{
    static int place = -1;
    if (place < 0)
        place = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, NULL);
    return place;
}

static struct doctor_tls_watch *watch_of(const SSL *ssl)
{
    return SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), place_of_watch());
}

static void append_name(char *out, size_t size, const char *name, size_t length)
{
    const size_t used = strlen(out);
    char shown[128];
    doctor_one_line(name, length, shown, sizeof shown);
    snprintf(out + used, size - used, "%s%s", used != 0 ? ", " : "", shown);
}

/* Whom a certificate is for: its alternative names, or without any the common name. */
static void describe_names(const X509 *certificate, char *out, size_t size)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_DNS) {
            append_name(out, size, (const char *)ASN1_STRING_get0_data(name->d.dNSName),
                        (size_t)ASN1_STRING_length(name->d.dNSName));
        } else if (name->type == GEN_IPADD) {
            const int length = ASN1_STRING_length(name->d.iPAddress);
            char address[INET6_ADDRSTRLEN];
            if ((length == 4 || length == 16) && inet_ntop(length == 4 ? AF_INET : AF_INET6,
                                                           ASN1_STRING_get0_data(name->d.iPAddress),
                                                           address, sizeof address) != NULL)
                append_name(out, size, address, strlen(address));
        }
    }
    GENERAL_NAMES_free(names);
    char common[128];
    if (out[0] == '\0' && X509_NAME_get_text_by_NID(X509_get_subject_name(certificate),
                                                    NID_commonName, common, sizeof common) > 0)
        append_name(out, size, common, strlen(common));
}

static void describe_certificate(const X509 *certificate, struct doctor_tls *seen)
{
    char issuer[200];
    X509_NAME_oneline(X509_get_issuer_name(certificate), issuer, sizeof issuer);
    doctor_one_line(issuer, strlen(issuer), seen->issuer, sizeof seen->issuer);
    seen->names[0] = '\0';
    describe_names(certificate, seen->names, sizeof seen->names);
    struct tm day;
    if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &day) == 1)
        strftime(seen->not_after, sizeof seen->not_after, "%Y-%m-%d", &day);
}

/* In the place of OpenSSL's check of the chain: the same check, and what it said. */
static int verify(X509_STORE_CTX *store, void *state)
{
    struct doctor_tls_watch *watch = state;
    const X509 *certificate = X509_STORE_CTX_get0_cert(store);
    if (certificate != NULL)
        describe_certificate(certificate, watch->seen);
    const int result = X509_verify_cert(store);
    watch->verify_error = X509_STORE_CTX_get_error(store);
    return result;
}

static void note_progress(const SSL *ssl, int where, int value)
{
    struct doctor_tls_watch *watch = watch_of(ssl);
    if (where == SSL_CB_READ_ALERT && (value >> 8) == SSL3_AL_FATAL)
        watch->alert = value & 0xff;
    if ((where & SSL_CB_HANDSHAKE_DONE) == 0)
        return;
    watch->is_done = true;
    snprintf(watch->seen->version, sizeof watch->seen->version, "%s", SSL_get_version(ssl));
}

/* Does the server ask for a certificate? */
static void note_message(int is_ours, int version, int type, const void *message, size_t length,
                         SSL *ssl, void *state)
{
    (void)version;
    (void)ssl;
    const unsigned char *bytes = message;
    struct doctor_tls_watch *watch = state;
    if (!is_ours && type == SSL3_RT_HANDSHAKE && length != 0 &&
        bytes[0] == SSL3_MT_CERTIFICATE_REQUEST)
        watch->seen->wants_certificate = true;
}

static CURLcode prepare(CURL *handle, void *context, void *state)
{
    (void)handle;
    SSL_CTX_set_ex_data(context, place_of_watch(), state);
    SSL_CTX_set_cert_verify_callback(context, verify, state);
    SSL_CTX_set_info_callback(context, note_progress);
    SSL_CTX_set_msg_callback(context, note_message);
    SSL_CTX_set_msg_callback_arg(context, state);
    return CURLE_OK;
}

void doctor_tls_watch(struct doctor_tls_watch *watch, CURL *handle)
{
    watch->alert = -1;
    watch->is_blind = curl_easy_setopt(handle, CURLOPT_SSL_CTX_FUNCTION, prepare) != CURLE_OK;
    curl_easy_setopt(handle, CURLOPT_SSL_CTX_DATA, watch);
}

/* ---- what it means -------------------------------------------------------------------- */

static bool says(const char *words, const char *phrase)
{
    return strstr(words, phrase) != NULL;
}

static enum doctor_tls_problem problem_of_chain(int error)
{
    switch (error) {
    case X509_V_OK:
        return DOCTOR_TLS_NONE;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        return DOCTOR_TLS_SELF_SIGNED;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return DOCTOR_TLS_EXPIRED;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return DOCTOR_TLS_NOT_YET_VALID;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        return DOCTOR_TLS_UNKNOWN_CA;
    default:
        return DOCTOR_TLS_OTHER;
    }
}

/* By what the server said before it hung up, or by its silence after it asked for a
 * certificate. */
static enum doctor_tls_problem problem_of_server(const struct doctor_tls_watch *watch,
                                                 const char *words)
{
    enum {
        HANDSHAKE_FAILURE = 40,
        BAD_CERTIFICATE = 42,
        CERTIFICATE_UNKNOWN = 46,
        UNKNOWN_CA = 48,
        PROTOCOL_VERSION = 70,
        NO_APPLICATION_PROTOCOL = 120,
        CERTIFICATE_REQUIRED = 116
    };
    const struct doctor_tls *seen = watch->seen;
    if (watch->alert == CERTIFICATE_REQUIRED)
        return DOCTOR_TLS_WANTS_CERTIFICATE;
    if (watch->alert == PROTOCOL_VERSION || says(words, "unsupported protocol") ||
        says(words, "no protocols available"))
        return DOCTOR_TLS_VERSION;
    if (watch->alert == NO_APPLICATION_PROTOCOL)
        return DOCTOR_TLS_NO_HTTP1;
    if (seen->wants_certificate && !seen->has_certificate)
        return DOCTOR_TLS_WANTS_CERTIFICATE;
    const bool is_about_certificate =
        watch->alert == HANDSHAKE_FAILURE || watch->alert == UNKNOWN_CA ||
        (watch->alert >= BAD_CERTIFICATE && watch->alert <= CERTIFICATE_UNKNOWN);
    if (seen->has_certificate && (is_about_certificate || watch->alert < 0) &&
        seen->wants_certificate)
        return DOCTOR_TLS_REFUSES_CERTIFICATE;
    return DOCTOR_TLS_OTHER;
}

static enum doctor_tls_problem problem_of(const struct doctor_tls_watch *watch, CURLcode code,
                                          const char *words)
{
    if (code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE)
        return DOCTOR_TLS_FILES;
    if (watch->is_blind)
        return DOCTOR_TLS_OTHER;
    if (watch->verify_error != X509_V_OK)
        return problem_of_chain(watch->verify_error);
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return DOCTOR_TLS_WRONG_HOST;
    if (watch->alert < 0 && (says(words, "wrong version number") || says(words, "http request") ||
                             says(words, "packet length too long")))
        return DOCTOR_TLS_NOT_TLS;
    return problem_of_server(watch, words);
}

void doctor_tls_conclude(struct doctor_tls_watch *watch, CURLcode code, const char *words)
{
    struct doctor_tls *seen = watch->seen;
    const bool is_about_tls = code == CURLE_SSL_CONNECT_ERROR || code == CURLE_SSL_CERTPROBLEM ||
                              code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CIPHER ||
                              code == CURLE_PEER_FAILED_VERIFICATION;
    /* With TLS 1.3 a server refuses a client when that has finished already, and often hangs up
     * so fast that the reason does not arrive. */
    const bool hung_up = code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR ||
                         code == CURLE_GOT_NOTHING || code == CURLE_HTTP2;
    const bool came_late = (code != CURLE_OK && watch->alert >= 0) ||
                           (hung_up && watch->is_done && seen->wants_certificate);
    if (is_about_tls || came_late) {
        seen->result = DOCTOR_FAILED;
        seen->problem = problem_of(watch, code, words);
        const char *chain = X509_verify_cert_error_string(watch->verify_error);
        snprintf(seen->words, sizeof seen->words, "%s",
                 watch->verify_error != X509_V_OK ? chain : words);
    } else if (watch->is_done) {
        seen->result = DOCTOR_FINE;
    }
}

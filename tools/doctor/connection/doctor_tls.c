/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_tls.c - the contracts are in
 * tools/doctor/connection/doctor_tls.h. */
#include "tools/doctor/connection/doctor_tls.h"

#include "tools/doctor/settings/doctor_redact.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* ---- what the handshake shows --------------------------------------------------------- */

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

static size_t length_of(const unsigned char *at)
{
    return (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];
}

/* The first certificate of a message Certificate, behind its head: lists and certificates are three
 * bytes of length and what they hold. TLS 1.3 has a context, empty here, in front of the list. */
static X509 *read_certificate(const unsigned char *at, size_t length)
{
    const unsigned char *const end = at + length;
    if (length >= 4 && at[0] == 0 && length_of(at) != length - 3)
        at++;
    if (end - at < 6)
        return NULL;
    const size_t size = length_of(at + 3);
    at += 6;
    return size <= (size_t)(end - at) ? d2i_X509(NULL, &at, (long)size) : NULL;
}

static void describe_certificate(struct doctor_tls_watch *watch, const unsigned char *at,
                                 size_t length)
{
    struct doctor_tls *seen = watch->seen;
    X509 *certificate = read_certificate(at, length);
    if (certificate != NULL) {
        char issuer[200];
        struct tm day;
        X509_NAME_oneline(X509_get_issuer_name(certificate), issuer, sizeof issuer);
        doctor_one_line(issuer, strlen(issuer), seen->issuer, sizeof seen->issuer);
        seen->names[0] = '\0';
        describe_names(certificate, seen->names, sizeof seen->names);
        if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &day) == 1)
            strftime(seen->not_after, sizeof seen->not_after, "%Y-%m-%d", &day);
        watch->is_for_host = X509_check_host(certificate, watch->host, 0, 0, NULL) == 1 ||
                             X509_check_ip_asc(certificate, watch->host, 0) == 1;
    }
    X509_free(certificate);
    ERR_clear_error();
}

/* A message of the handshake is its type, three bytes of length and as many more; an alert two
 * bytes, the first of which is 2 if it is fatal. Anything else is of no use here. */
static void note_received(struct doctor_tls_watch *watch, const unsigned char *bytes, size_t length)
{
    if (length == 2 && bytes[0] == SSL3_AL_FATAL)
        watch->alert = bytes[1];
    if (length < 4 || length_of(bytes + 1) != length - 4)
        return;
    if (bytes[0] == SSL3_MT_CERTIFICATE_REQUEST)
        watch->seen->wants_certificate = true;
    else if (bytes[0] == SSL3_MT_CERTIFICATE)
        describe_certificate(watch, bytes + 4, length - 4);
}

void doctor_tls_note(struct doctor_tls_watch *watch, enum oteli_observed what, const char *bytes,
                     size_t length)
{
    static const char version[] = "SSL connection using ";
    if (what == OTELI_OBSERVED_LINE)
        watch->is_at_proxy = false;
    if (watch->is_at_proxy)
        return;
    if (what == OTELI_OBSERVED_TLS_RECEIVED)
        note_received(watch, (const unsigned char *)bytes, length);
    if (what == OTELI_OBSERVED_TEXT && length > sizeof version &&
        memcmp(bytes, version, sizeof version - 1) == 0) {
        const char *begin = bytes + sizeof version - 1;
        doctor_one_line(begin, strcspn(begin, " \n"), watch->seen->version,
                        sizeof watch->seen->version);
    }
}

void doctor_tls_watch(struct doctor_tls_watch *watch, struct doctor_record *record)
{
    const struct doctor_target *target = &record->target;
    *watch = (struct doctor_tls_watch){.seen = &record->tls,
                                       .host = target->host,
                                       .is_for_host = true,
                                       .is_at_proxy = strncasecmp(target->proxy, "https:", 6) == 0,
                                       .alert = -1};
}

/* ---- what it means -------------------------------------------------------------------- */

static bool says(const char *words, const char *phrase)
{
    return strstr(words, phrase) != NULL;
}

/* What is wrong with the chain of certificates: libcurl repeats what OpenSSL says of it. */
static enum doctor_tls_problem problem_of_chain(const char *words)
{
    static const struct {
        int error;
        enum doctor_tls_problem problem;
    } known[] = {
        {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, DOCTOR_TLS_SELF_SIGNED},
        {X509_V_ERR_CERT_HAS_EXPIRED, DOCTOR_TLS_EXPIRED},
        {X509_V_ERR_CERT_NOT_YET_VALID, DOCTOR_TLS_NOT_YET_VALID},
        {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, DOCTOR_TLS_UNKNOWN_CA},
        {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, DOCTOR_TLS_UNKNOWN_CA},
        {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, DOCTOR_TLS_UNKNOWN_CA},
        {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, DOCTOR_TLS_UNKNOWN_CA},
        {X509_V_ERR_CERT_SIGNATURE_FAILURE, DOCTOR_TLS_UNKNOWN_CA},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(words, X509_verify_cert_error_string(known[i].error)) == 0)
            return known[i].problem;
    }
    return DOCTOR_TLS_OTHER;
}

/* By what the server said before it hung up, or by its silence after it asked for a
 * certificate. */
static enum doctor_tls_problem problem_of_server(const struct doctor_tls_watch *watch,
                                                 const char *words)
{
    const struct doctor_tls *seen = watch->seen;
    if (watch->alert == SSL_AD_CERTIFICATE_REQUIRED)
        return DOCTOR_TLS_WANTS_CERTIFICATE;
    if (watch->alert == SSL_AD_PROTOCOL_VERSION || says(words, "unsupported protocol") ||
        says(words, "no protocols available"))
        return DOCTOR_TLS_VERSION;
    if (watch->alert == SSL_AD_NO_APPLICATION_PROTOCOL)
        return DOCTOR_TLS_NO_HTTP1;
    if (seen->wants_certificate && !seen->has_certificate)
        return DOCTOR_TLS_WANTS_CERTIFICATE;
    const bool is_about_certificate =
        watch->alert == SSL_AD_HANDSHAKE_FAILURE || watch->alert == SSL_AD_UNKNOWN_CA ||
        (watch->alert >= SSL_AD_BAD_CERTIFICATE && watch->alert <= SSL_AD_CERTIFICATE_UNKNOWN);
    if (seen->has_certificate && (is_about_certificate || watch->alert < 0) &&
        seen->wants_certificate)
        return DOCTOR_TLS_REFUSES_CERTIFICATE;
    return DOCTOR_TLS_OTHER;
}

static enum doctor_tls_problem problem_of(const struct doctor_tls_watch *watch, bool is_tls_file,
                                          const char *words)
{
    if (is_tls_file)
        return DOCTOR_TLS_FILES;
    if (watch->alert < 0 && (says(words, "wrong version number") || says(words, "http request") ||
                             says(words, "packet length too long")))
        return DOCTOR_TLS_NOT_TLS;
    if (watch->alert < 0 && !watch->is_for_host)
        return DOCTOR_TLS_WRONG_HOST;
    return problem_of_server(watch, words);
}

void doctor_tls_conclude(struct doctor_tls_watch *watch,
                         const struct oteli_transport_response *answer)
{
    static const char of_chain[] = "SSL certificate problem: ";
    struct doctor_tls *seen = watch->seen;
    /* With TLS 1.3 a server refuses a client when that has finished already, and often hangs up
     * so fast that the reason does not arrive. */
    const bool came_late = answer->status == 0 && answer->step > OTELI_STEP_TLS &&
                           (watch->alert >= 0 || seen->wants_certificate);
    if (answer->status != 0 || (answer->step > OTELI_STEP_TLS && !came_late)) {
        seen->result = DOCTOR_FINE;
        return;
    }
    if (answer->step < OTELI_STEP_TLS)
        return;
    const char *words = answer->problem;
    seen->result = DOCTOR_FAILED;
    if (watch->is_at_proxy) {
        seen->problem = DOCTOR_TLS_OTHER;
        snprintf(seen->words, sizeof seen->words, "that of the proxy failed, %.200s", words);
        return;
    }
    const char *chain = strstr(words, of_chain);
    if (chain != NULL)
        words = chain + sizeof of_chain - 1;
    seen->problem =
        chain != NULL ? problem_of_chain(words) : problem_of(watch, answer->is_tls_file, words);
    doctor_one_line(words, strlen(words), seen->words, sizeof seen->words);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/transport_tls.c - which certificates, versions and ciphers count for a
 * request. The exporting thread; a transport owns the files' bytes. */
#include "exporters/otlp/transport/transport_parts.h"

#include <stdio.h>
#include <string.h>

#define SET(option, value) OTELI_CURL_SET(easy, option, value)

static long version_bits(int min, int max)
{
    const long least = min == 3 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2;
    const long most = max == 3   ? CURL_SSLVERSION_MAX_TLSv1_3
                      : max == 2 ? CURL_SSLVERSION_MAX_TLSv1_2
                                 : CURL_SSLVERSION_MAX_DEFAULT;
    return least | most;
}

/* curl's CA paths are compiled in, so OpenSSL does not ask the environment. A key that turned out
 * to be encrypted would have it ask for the password on the terminal, if it had none. */
bool oteli_transport_set_tls(const struct oteli_transport *transport, CURL *easy)
{
    if (!transport->is_tls)
        return true;
    const char *ciphers = transport->options.tls.ciphers;
    const long versions = version_bits(transport->options.tls.min, transport->options.tls.max);
    return SET(CURLOPT_SSLVERSION, versions) && SET(CURLOPT_PROXY_SSLVERSION, versions) &&
           SET(CURLOPT_KEYPASSWD, "") &&
           /* Connections are few and stay; and libcurl 7.88 frees a name of its cache of sessions
            * twice when it has no memory for one. */
           SET(CURLOPT_SSL_SESSIONID_CACHE, 0L) &&
           (ciphers == NULL ||
            (SET(CURLOPT_SSL_CIPHER_LIST, ciphers) && SET(CURLOPT_PROXY_SSL_CIPHER_LIST, ciphers)));
}

#if LIBCURL_VERSION_NUM >= 0x074d00
#define AS_BYTES(option) CURLOPT_##option##_BLOB

/* As bytes; or, for TLS libraries that curl cannot give bytes, the path that they come from. */
static bool set_file(struct oteli_transport *transport, enum oteli_tls_which which,
                     CURLoption as_bytes, CURLoption as_path)
{
    const struct oteli_tls_file *file = &transport->tls.files[which];
    struct curl_blob blob = {file->bytes, file->length, CURL_BLOB_COPY};
    const CURLcode code = curl_easy_setopt(transport->easy, as_bytes, &blob);
    return code == CURLE_OK || ((code == CURLE_NOT_BUILT_IN || code == CURLE_UNKNOWN_OPTION) &&
                                OTELI_CURL_SET(transport->easy, as_path, file->path));
}
#else
#define AS_BYTES(option) CURLOPT_LASTENTRY

/* This libcurl takes no bytes. */
static bool set_file(struct oteli_transport *transport, enum oteli_tls_which which,
                     CURLoption as_bytes, CURLoption as_path)
{
    (void)as_bytes;
    return OTELI_CURL_SET(transport->easy, as_path, transport->tls.files[which].path);
}
#endif

/* The user's authorities instead of the system's, which curl may have in a directory as well. */
static bool use_authorities(struct oteli_transport *transport)
{
    (void)curl_easy_setopt(transport->easy, CURLOPT_CAPATH, NULL);
    (void)curl_easy_setopt(transport->easy, CURLOPT_PROXY_CAPATH, NULL);
    return set_file(transport, OTELI_TLS_CA, AS_BYTES(CAINFO), CURLOPT_CAINFO) &&
           set_file(transport, OTELI_TLS_CA, AS_BYTES(PROXY_CAINFO), CURLOPT_PROXY_CAINFO);
}

/* A connection with other certificates is a new one: curl sees that they are not the same. */
static bool use_files(struct oteli_transport *transport)
{
    const struct oteli_tls_file *files = transport->tls.files;
    CURL *easy = transport->easy;
    return (files[OTELI_TLS_CA].path == NULL || use_authorities(transport)) &&
           (files[OTELI_TLS_CERTIFICATE].path == NULL ||
            (SET(CURLOPT_SSLCERTTYPE, "PEM") &&
             set_file(transport, OTELI_TLS_CERTIFICATE, AS_BYTES(SSLCERT), CURLOPT_SSLCERT))) &&
           (files[OTELI_TLS_KEY].path == NULL ||
            (SET(CURLOPT_SSLKEYTYPE, "PEM") &&
             set_file(transport, OTELI_TLS_KEY, AS_BYTES(SSLKEY), CURLOPT_SSLKEY)));
}

bool oteli_transport_look_at_files(struct oteli_transport *transport)
{
    if (!transport->is_tls)
        return true;
    if (oteli_tls_files_look(&transport->tls))
        transport->has_files = false;
    if (!oteli_tls_files_are_there(&transport->tls)) {
        transport->lacks_files = true;
        snprintf(transport->problem, sizeof transport->problem, "%s", transport->tls.problem);
        return false;
    }
    if (transport->has_files)
        return true;
    transport->needs_fresh = true;
    transport->has_files = use_files(transport);
    return transport->has_files;
}

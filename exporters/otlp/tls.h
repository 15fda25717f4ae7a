/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/tls.h - what a user may choose about TLS.
 *
 * Threads:  any thread; no state. */
#ifndef OTELI_OTLP_TLS_H
#define OTELI_OTLP_TLS_H

/* Files are PEM. Each may be NULL, and a version 0. */
struct oteli_tls {
    const char *ca_file; /* NULL: the system's certificates */
    const char *certificate_file;
    const char *key_file;
    int min; /* versions: 2 for TLS 1.2, which 0 means as well, and 3 for TLS 1.3 */
    int max;
    const char *ciphers; /* OpenSSL's list for TLS 1.2 */
};

#endif

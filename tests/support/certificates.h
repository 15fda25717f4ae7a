/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/certificates.h - a certificate authority that exists as long as a test, and what
 * it signs: PEM files in a directory of its own.
 *
 *     struct certificates *certificates = certificates_new();
 *     certificates_issue(certificates, &(struct certificate_request){.name = "server"});
 *     ... serve with server.pem and server.key, verify with ca.pem ...
 *     certificates_free(certificates);
 *
 * Keys are EC (P-256), so that making one takes no time. Nothing here returns an error: what
 * fails ends the program with a line that says so.
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_TESTS_CERTIFICATES_H
#define OTELI_TESTS_CERTIFICATES_H

#include <stdbool.h>
#include <stddef.h>

struct certificates;

/* The authority: ca.pem and ca.key, in a new directory under $TMPDIR or /tmp. */
struct certificates *certificates_new(void);

/* The same in a directory that is there, and stays. */
struct certificates *certificates_new_in(const char *directory);

/* Files and directory are removed, if the directory is our own. NULL is allowed. */
void certificates_free(struct certificates *certificates);

struct certificate_request {
    const char *name;  /* the files are NAME.pem and NAME.key; what was there is replaced */
    const char *hosts; /* subjectAltName as OpenSSL writes it; NULL: "DNS:localhost,
                          IP:127.0.0.1,IP:::1" */
    bool is_expired;   /* since yesterday */
};
void certificates_issue(struct certificates *certificates,
                        const struct certificate_request *request);

/* The path of a file in the directory; one of the last eight asked for. */
const char *certificates_path(struct certificates *certificates, const char *file);

#endif

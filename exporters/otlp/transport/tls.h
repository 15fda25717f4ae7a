/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/tls.h - what a user may choose about TLS, and the files of that, which
 * are read again when they have changed on disk.
 *
 * Files are replaced while they are in use. One that cannot be read, or is cut off in the middle,
 * does not count: what was read before stays in use.
 *
 * Threads:  one thread at a time. Nothing waits but for the disk. */
#ifndef OTELI_TLS_H
#define OTELI_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Files are PEM. Each may be NULL, and a version 0. */
struct oteli_tls {
    const char *ca_file; /* NULL: the system's certificates */
    const char *certificate_file;
    const char *key_file;
    int min; /* versions: 2 for TLS 1.2, which 0 means as well, and 3 for TLS 1.3 */
    int max;
    const char *ciphers; /* OpenSSL's list for TLS 1.2 */
};

enum oteli_tls_which { OTELI_TLS_CA, OTELI_TLS_CERTIFICATE, OTELI_TLS_KEY, OTELI_TLS_FILES };

struct oteli_tls_files {
    struct oteli_tls_file {
        const char *path; /* NULL: there is none to read */
        struct stat seen; /* when it was last read; st_ino is 0 before */
        bool is_fresh;    /* it was so new then that it may have changed once more unseen */
        bool is_missing;  /* it could not be used then */
        char *bytes;      /* what is in use; NULL: nothing yet. Behind it is a NUL */
        size_t length;
    } files[OTELI_TLS_FILES];
    char problem[256]; /* why one cannot be used, for as long as that is so */
};

/* Borrows the paths, and reads nothing. */
void oteli_tls_files_init(struct oteli_tls_files *files, const struct oteli_tls *tls);
void oteli_tls_files_fini(struct oteli_tls_files *files);

/* Look whether files have changed, and read those. True: what is in use has changed. */
bool oteli_tls_files_look(struct oteli_tls_files *files);

/* Whether there is something to use for each file; otherwise files->problem says what is not. */
bool oteli_tls_files_are_there(const struct oteli_tls_files *files);

/* Whether a text is PEM that is whole, with at least one certificate (or key) in it. */
bool oteli_tls_is_pem(const char *text, enum oteli_tls_which which);

#endif

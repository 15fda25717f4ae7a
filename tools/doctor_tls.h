/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor_tls.h - look over libcurl's shoulder while it does TLS: what the server shows, what
 * it wants, and why it does not work. One thread; OpenSSL is what libcurl has to be built with. */
#ifndef DOCTOR_TLS_H
#define DOCTOR_TLS_H

#include "tools/doctor_record.h"

#include <curl/curl.h>

struct doctor_tls_watch {
    struct doctor_tls *seen;
    int verify_error; /* X509_V_ERR_…; 0: none so far */
    int alert;        /* that the server sent; -1: none */
    bool is_done;     /* the handshake came to its end */
    bool is_blind;    /* this libcurl does TLS with another library: nothing is seen */
};

/* Watch the connections of a handle; `watch` stays as long as that. */
void doctor_tls_watch(struct doctor_tls_watch *watch, CURL *handle);

/* After the request: what came of TLS. `words` is what libcurl says. */
void doctor_tls_conclude(struct doctor_tls_watch *watch, CURLcode code, const char *words);

#endif

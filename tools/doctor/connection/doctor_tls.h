/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_tls.h - what TLS showed while the exporter's transport made a
 * request: the server's certificate, whether it wants one of us, and why it does not work.
 *
 * It reads the messages of the handshake, which the transport's observer gets: nothing of libcurl's
 * TLS library is touched. With a library that does not show them, what libcurl says is all there
 * is. One thread. */
#ifndef DOCTOR_TLS_H
#define DOCTOR_TLS_H

#include "exporters/otlp/transport/transport.h"
#include "tools/doctor/doctor_findings.h"

struct doctor_tls_watch {
    struct doctor_tls *seen;
    const char *host; /* that the certificate has to be for */
    bool is_for_host; /* it is, as far as is known */
    bool is_at_proxy; /* TLS is a proxy's so far */
    int alert;        /* that the server sent; -1: none */
};

/* Begin with a request to record->target: what is seen goes into record->tls. */
void doctor_tls_watch(struct doctor_tls_watch *watch, struct doctor_record *record);

/* As oteli_observer.note. */
void doctor_tls_note(struct doctor_tls_watch *watch, enum oteli_observed what, const char *bytes,
                     size_t length);

/* After the request, which has not timed out: what came of TLS. */
void doctor_tls_conclude(struct doctor_tls_watch *watch,
                         const struct oteli_transport_response *answer);

#endif

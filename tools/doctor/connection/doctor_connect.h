/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_connect.h - find the addresses of a host and connect to each. One
 * thread; every wait ends. */
#ifndef DOCTOR_CONNECT_H
#define DOCTOR_CONNECT_H

#include "tools/doctor/doctor_findings.h"

#include <sys/socket.h>

/* An address that took a connection. */
struct doctor_peer {
    struct sockaddr_storage address;
    socklen_t length; /* 0: there is none */
};

/* Look up the host to connect to (the proxy where there is one) and connect to one address after
 * the other, or to the socket of this machine. `peer` is the first that took the connection. */
void doctor_connect(struct doctor_record *record, struct doctor_peer *peer);

/* Connect. The descriptor, of which sending and receiving wait no longer either, or -1 with errno:
 * ETIMEDOUT after `timeout_ms`. */
int doctor_connect_to(const struct doctor_peer *peer, unsigned timeout_ms);

#endif

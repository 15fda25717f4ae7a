/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_connect.h - find the addresses of a host and knock at each. One
 * thread; every wait ends. */
#ifndef DOCTOR_CONNECT_H
#define DOCTOR_CONNECT_H

#include "tools/doctor/doctor_findings.h"

#include <sys/socket.h>

/* Somebody who took a connection, to be asked again. */
struct doctor_door {
    struct sockaddr_storage address;
    socklen_t length;
};

/* Look up the host to connect to (the proxy where there is one) and connect to all of its
 * addresses at the same time, or to the socket of this machine. `door` is the first that opened:
 * its length is 0 if none did. */
void doctor_connect(struct doctor_record *record, struct doctor_door *door);

/* Connect once more. The descriptor, which does not wait, or -1. */
int doctor_connect_again(const struct doctor_door *door, unsigned timeout_ms);

#endif

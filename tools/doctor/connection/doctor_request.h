/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_request.h - ask the receiver as the exporter would, with a request
 * that has no spans in it: every receiver has to take that. One thread. */
#ifndef DOCTOR_REQUEST_H
#define DOCTOR_REQUEST_H

#include "tools/doctor/connection/doctor_connect.h"
#include "tools/doctor/connection/doctor_route.h"

/* TLS, HTTP and what it carries go into the record. `peer` took a connection, and is
 * asked what it speaks if it does not answer as it should. */
void doctor_request(const struct doctor_route *route, const struct doctor_peer *peer,
                    struct doctor_record *record);

#endif

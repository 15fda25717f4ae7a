/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_request.h - ask the receiver as the exporter would, with a request
 * that has no spans in it: every receiver has to take that. One thread. */
#ifndef DOCTOR_REQUEST_H
#define DOCTOR_REQUEST_H

#include "tools/doctor/connection/doctor_connect.h"
#include "tools/doctor/connection/doctor_route.h"

/* TLS, HTTP and what it carries go into the record. `door` is where somebody answered, to be
 * asked what it speaks if it is not what it should be. */
void doctor_request(const struct doctor_route *route, const struct doctor_door *door,
                    struct doctor_record *record);

#endif

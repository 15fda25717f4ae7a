/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_request.h - ask the receiver as the exporter would, with a request
 * that has no spans in it: every receiver has to take that. One thread; every wait ends. */
#ifndef DOCTOR_REQUEST_H
#define DOCTOR_REQUEST_H

#include "tools/doctor/connection/doctor_route.h"

/* Ask, and say in record->answer what came of it. A receiver that does not answer as it should is
 * asked in other ways as well: with or without TLS, with the other protocol, at OTLP's other port,
 * at the usual path. record->instead is one that works. */
void doctor_request(const struct doctor_route *route, struct doctor_record *record);

#endif

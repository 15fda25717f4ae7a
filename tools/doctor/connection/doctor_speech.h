/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/connection/doctor_speech.h - what does the other end speak in the clear? For
 * endpoints that do not answer as they should: the port of gRPC, of another server altogether. One
 * thread; every wait ends. */
#ifndef DOCTOR_SPEECH_H
#define DOCTOR_SPEECH_H

#include "tools/doctor/connection/doctor_connect.h"

/* What bytes begin with; DOCTOR_SPEECH_UNKNOWN: nothing that we know. */
enum doctor_speech doctor_speech_of(const unsigned char *bytes, size_t length);

/* Say hello in HTTP/1 and in HTTP/2, each over a connection of its own. */
enum doctor_speech doctor_speech_ask(const struct doctor_peer *peer, const char *host,
                                     unsigned timeout_ms);

#endif

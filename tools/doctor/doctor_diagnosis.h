/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/doctor_diagnosis.h - from what was seen to one sentence: the most likely cause, and
 * what to do. A pure function: the first rule that holds wins. */
#ifndef DOCTOR_DIAGNOSIS_H
#define DOCTOR_DIAGNOSIS_H

#include "tools/doctor/findings/doctor_findings.h"

struct doctor_diagnosis {
    const char *rule; /* its name, for programs: "connect.refused". Static */
    bool is_healthy;
    char sentence[2 * DOCTOR_TEXT];
};

/* "http/protobuf" */
const char *doctor_protocol_word(otel_otlp_protocol protocol);

void doctor_diagnose(const struct doctor_record *record, struct doctor_diagnosis *diagnosis);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_files.h - the state of the files that TLS needs: are they there,
 * what is in them, until when are they valid, and does the key belong to the certificate? One
 * thread. */
#ifndef DOCTOR_FILES_H
#define DOCTOR_FILES_H

#include "tools/doctor/doctor_findings.h"

/* The files (NULL: none), and the settings that name them. */
struct doctor_tls_files {
    const char *ca;
    const char *ca_name;
    const char *certificate;
    const char *certificate_name;
    const char *key;
    const char *key_name;
};

/* Look at them, and say in record->files and record->settings what is wrong. Whether it matters is
 * another question: without TLS nobody reads them. */
void doctor_files_examine(const struct doctor_tls_files *files, struct doctor_record *record);

#endif

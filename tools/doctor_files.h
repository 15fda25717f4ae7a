/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor_files.h - the state of the files that TLS needs: are they there, what is in them,
 * until when are they valid, and does the key belong to the certificate? One thread. */
#ifndef DOCTOR_FILES_H
#define DOCTOR_FILES_H

#include "tools/doctor_record.h"

#include <otel/otlp.h>

/* The settings that name them. */
struct doctor_file_names {
    const char *ca;
    const char *certificate;
    const char *key;
};

/* Look at the files of the options, and say in record->files and record->settings what is wrong.
 * Whether it matters is another question: without TLS nobody reads them. */
void doctor_files_examine(const otel_otlp_options *options, const struct doctor_file_names *names,
                          struct doctor_record *record);

#endif

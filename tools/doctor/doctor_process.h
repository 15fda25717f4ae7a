/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/doctor_process.h - what counts in a process that runs, as its SDK publishes it
 * (sdk/lifecycle/published_settings.h). One thread. */
#ifndef DOCTOR_PROCESS_H
#define DOCTOR_PROCESS_H

#include "tools/doctor/settings/doctor_settings.h"

/* Look into record->process.pid: what counts there becomes lines of `settings`; what is wrong with
 * it, or which rule of the kernel forbids to look, goes into the record. False: no memory. */
bool doctor_process_look(struct doctor_settings *settings, struct doctor_record *record);

#endif

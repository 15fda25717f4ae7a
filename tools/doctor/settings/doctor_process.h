/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_process.h - what counts in a process that runs, as its SDK publishes
 * it (sdk/lifecycle/published_settings.h). One thread. */
#ifndef DOCTOR_PROCESS_H
#define DOCTOR_PROCESS_H

#include "tools/doctor/findings/doctor_findings.h"

/* Look into record->process.pid: what counts there is listed as settings; what is wrong with it, or
 * why the kernel does not let us look, goes into record->process. False: no memory. */
bool doctor_process_look(struct doctor_record *record);

#endif

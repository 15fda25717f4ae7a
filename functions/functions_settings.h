/* SPDX-License-Identifier: Apache-2.0 */
/* functions/functions_settings.h - OTEL_C_FUNCTIONS_*: how much of the functions is kept.
 *
 * Threads:  read once, when the library is loaded, which is before main for a library that
 *           the program is linked with. Immutable then. */
#ifndef OTELI_FUNCTIONS_SETTINGS_H
#define OTELI_FUNCTIONS_SETTINGS_H

#include "functions/frames.h"

struct oteli_function_settings {
    struct oteli_frames_limits limits;
    const char *exclude; /* a copy, or NULL: nothing is excluded */
};

/* From the environment, and from the table's defaults. What is bad counts as unset and is
 * not complained about: otel_start does, which reads the same rows. */
void oteli_function_settings_read(struct oteli_function_settings *settings);

#endif

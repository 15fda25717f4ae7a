/* SPDX-License-Identifier: Apache-2.0 */
/* config/yaml_file.h - from a path to the settings that its file has: parsed, checked, read.
 * Start/stop only. */
#ifndef OTELI_YAML_FILE_H
#define OTELI_YAML_FILE_H

#include "config/settings.h"

/* Everything that a text says, which is said to come from `file->path`; it lives in the file's
 * pool, which is the caller's also after an error.
 * OTEL_ERROR_INVALID_ARGUMENT: it has faults, and they have been logged. */
otel_status oteli_file_parse(const char *text, size_t length, struct oteli_file *file,
                             struct oteli_settings *settings);

/* The same of a file. OTEL_ERROR_SYSTEM: it cannot be read. */
otel_status oteli_file_read(struct oteli_file *file, struct oteli_settings *settings);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otel_start.h - otel_start for library otel-config, which has made the options from a
 * file. Start/stop only. */
#ifndef OTELI_OTEL_START_H
#define OTELI_OTEL_START_H

#include "common/base/internal_api.h"
#include <otel/sdk.h>
#include <stddef.h>

struct oteli_start_file;

/* otel_start without a look at OTEL_CONFIG_FILE; `file` (NULL: none) is for the message of the
 * start. */
OTELI_LENT otel_status oteli_start_as(const otel_sdk_options *options,
                                      const struct oteli_start_file *file);

#endif

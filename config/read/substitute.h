/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/substitute.h - references to the environment in a configuration file.
 *
 * Threads:  start/stop only. */
#ifndef OTELI_SUBSTITUTE_H
#define OTELI_SUBSTITUTE_H

#include "common/base/pool.h"

#include <otel/exporter.h>

/* `input` with references to the environment replaced: ${NAME}, ${env:NAME},
 * ${NAME:-default}; $$ is a $. What comes out of it is not looked at again.
 * OTEL_ERROR_INVALID_ARGUMENT: `culprit` is a reference that is none. OTEL_ERROR_UNSUPPORTED:
 * more than `*budget` bytes have been asked of the environment. OTEL_ERROR_NO_MEMORY. */
otel_status oteli_substitute(otel_slice input, struct oteli_pool *pool, size_t *budget,
                             otel_slice *output, otel_slice *culprit);

#endif

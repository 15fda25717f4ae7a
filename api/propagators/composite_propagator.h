/* SPDX-License-Identifier: Apache-2.0 */
/* api/propagators/composite_propagator.h - compositions that the SDK makes for the process. */
#ifndef OTELI_COMPOSITE_PROPAGATOR_H
#define OTELI_COMPOSITE_PROPAGATOR_H

#include "common/base/internal_api.h"
#include <otel/propagate.h>

/* The propagator of a list of names, each once, with commas between them; names that are not known
 * are left out. Equal lists are the same propagator, which stays until the library is unloaded:
 * threads may be using it while another SDK is started. NULL: no memory. Start/stop only. */
OTELI_INTERNAL_API const otel_propagator *oteli_propagator_of_list(const char *names);

void oteli_propagators_free(void);

#endif

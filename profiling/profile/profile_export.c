/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profile/profile_export.c - what an exporter says while it has a profile. The thread
 * that exports; owns nothing. */
#include "profiling/profile/profile_model.h"

#include <limits.h>

void otel_profile_drop(const otel_profile *profile, uint64_t samples)
{
    if (profile->exporting != NULL)
        profile->exporting->dropped += samples;
}

int otel_profile_meanwhile(const otel_profile *profile)
{
    const struct oteli_profile_exporting *exporting = profile->exporting;
    if (exporting == NULL || exporting->meanwhile == NULL)
        return INT_MAX;
    return exporting->meanwhile(exporting->state);
}

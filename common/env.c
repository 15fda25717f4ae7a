/* SPDX-License-Identifier: Apache-2.0 */
/* common/env.c - the door to the environment.
 *
 * The C library's environment has no lock: reading it while another thread calls setenv
 * can crash. Hence one function, called only where the program starts the SDK or makes an
 * exporter, on the thread that does it. What it returns is copied at once. */
#include "common/config.h"

#include <stdlib.h>

const char *oteli_env_get(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

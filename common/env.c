/* SPDX-License-Identifier: Apache-2.0 */
/* common/env.c - the door to the environment.
 *
 * The C library's environment has no lock: reading it while another thread calls setenv
 * can crash. Hence these functions, called only where the program starts the SDK, makes an
 * exporter or asks for the environment itself, on the thread that does it. What they return is
 * copied at once. */
#include "common/config.h"

#include <stdlib.h>
#include <unistd.h>

const char *oteli_env_get(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

const char *const *oteli_env_all(void)
{
    static const char *const none[] = {NULL};
    return environ != NULL ? (const char *const *)environ : none;
}

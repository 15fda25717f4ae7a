/* SPDX-License-Identifier: Apache-2.0 */
/* common/config/env.c - the door to the environment.
 *
 * The C library's environment has no lock: reading it while another thread calls setenv
 * can crash. Hence these functions, called only where the program starts the SDK, makes an
 * exporter or asks for the environment itself, on the thread that does it. What they return is
 * copied at once.
 *
 * In a program that runs with more rights than its caller (setuid, setgid, file capabilities) the
 * environment is the caller's choice, and nothing in it counts: a spool directory or an endpoint
 * would be an attacker's. */
#include "common/config/configuration.h"

#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

const char *oteli_env_get(const char *variable)
{
    const char *value = secure_getenv(variable);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

const char *const *oteli_env_trusted(void)
{
    static const char *const none[] = {NULL};
    return getauxval(AT_SECURE) == 0 ? oteli_env_all() : none;
}

const char *const *oteli_env_all(void)
{
    static const char *const none[] = {NULL};
    return environ != NULL ? (const char *const *)environ : none;
}

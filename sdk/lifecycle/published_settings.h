/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/published_settings.h - what counts in this process, for otel-doctor --pid: where
 * spans go, the sampler, the settings, and where each comes from. No secrets.
 *
 * Each line is the name of an empty file in memory of which one page is mapped without access:
 *
 *     /proc/PID/maps:  ... /memfd:otel-c:NN:NAME<tab>FROM<tab>VALUE (deleted)
 *
 * That can be read by the same user also where ptrace is restricted, and by root where the process
 * has dropped privileges. It needs no descriptor that a program could close, no memory and no space
 * on disk; forked children inherit it with the settings.
 *
 * Threads:  the thread that holds the lock of the current engine. */
#ifndef OTELI_PUBLISHED_SETTINGS_H
#define OTELI_PUBLISHED_SETTINGS_H

#include "common/config/configuration.h"

#define OTELI_PUBLISHED_PREFIX "otel-c:"
enum { OTELI_PUBLISHED_LINES = 64 };

/* Publish the message of the start and the settings, or these instead of what is; nothing with
 * OTEL_C_THREAD_CONTEXT=off. */
void oteli_published_put(const struct oteli_config *config, const char *message);
void oteli_published_take_back(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/resource/detectors.h - what can be found out about the process, its host, its container.
 *
 * A detector adds what it finds to facts of its own; nothing found is no error and no log line.
 * What semantic conventions advise against collecting unasked (arguments, user names) has
 * detectors of its own that are not in the default list.
 *
 * Threads:  start/stop only: some files are read, nothing is asked of the network or of NSS.
 * Source:   OpenTelemetry specification, resource/sdk.md "Detecting resource information from
 *           the environment"; semantic conventions, resource. */
#ifndef OTELI_DETECTORS_H
#define OTELI_DETECTORS_H

#include "sdk/resource/resource_builder.h"

/* Run those that `list` names, as OTEL_C_RESOURCE_DETECTORS does; NULL: none. */
void oteli_detect(struct oteli_facts *facts, const char *list);

/* The program's file name without its directories; "" if it is not known. Kept by the facts. */
const char *oteli_detect_executable(struct oteli_facts *facts);

void oteli_detect_process(struct oteli_facts *facts);
void oteli_detect_process_command(struct oteli_facts *facts);
void oteli_detect_process_owner(struct oteli_facts *facts);
void oteli_detect_os(struct oteli_facts *facts);
void oteli_detect_host(struct oteli_facts *facts); /* and the operating system */
void oteli_detect_container(struct oteli_facts *facts);
void oteli_detect_service(struct oteli_facts *facts);

/* OTEL_RESOURCE_ATTRIBUTES, all of it or, with a warning, nothing. */
void oteli_detect_variable(struct oteli_facts *facts, const char *called, const char *text);

/* The parts that read texts: */

/* The arguments in /proc/self/cmdline. */
void oteli_detect_command(struct oteli_facts *facts, otel_slice cmdline);

/* The name in /etc/passwd of a user; empty: it has none there. */
otel_slice oteli_user_name(otel_slice passwd, unsigned long user);

/* The value of a key in /etc/os-release, unquoted into `value`; false: it is not there, or too
 * long. */
bool oteli_os_release(otel_slice text, const char *key, char *value, size_t size);

/* host.arch for what uname calls the machine. */
const char *oteli_host_arch(const char *machine);

/* Whether this is what a machine-id looks like: 32 hexadecimal digits. */
bool oteli_is_machine_id(otel_slice text);

/* The id of the container in /proc/self/cgroup, and in /proc/self/mountinfo; empty: none. */
otel_slice oteli_container_in_cgroup(otel_slice cgroup);
otel_slice oteli_container_in_mounts(otel_slice mountinfo);

/* Whether a file system, or a file of one, is mounted at this path, or that is not known. */
bool oteli_may_be_mounted(const char *path);

/* The id of this process's container, in memory of the facts; empty: none is known. */
otel_slice oteli_container_id(struct oteli_facts *facts);

/* A new random UUID (version 4); false: the kernel gave no random bytes. */
enum { OTELI_UUID_SIZE = 37 };
bool oteli_uuid(char text[OTELI_UUID_SIZE]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/spool_fork_lock.h - locks of spools that this process holds, so that a
 * forked child does not. A lock belongs to the open file that its copies share: a child that goes
 * on living, without ever looking at its copy, would keep it for a parent that has ended, and
 * no process could send.
 *
 *     note ─▶ lock … unlock ─▶ forget ─▶ close          in the child, before fork returns: close
 *
 * What finds no place, or is just being noted, is closed when the child's exporter is renewed, if
 * it ever is.
 *
 * Threads:  any thread. Fork: a child begins with none. */
#ifndef OTELI_SPOOL_FORK_LOCK_H
#define OTELI_SPOOL_FORK_LOCK_H

#include <sys/stat.h>

/* This descriptor is of a file that will be locked. */
void oteli_spool_fork_lock_note(int fd, const struct stat *status);

/* It will be closed, or is something else by now. */
void oteli_spool_fork_lock_forget(int fd);

#endif

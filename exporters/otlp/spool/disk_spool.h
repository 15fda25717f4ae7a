/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/disk_spool.h - requests on disk while the receiver is away. Owns files in
 * one directory.
 *
 *     DIRECTORY/                          the program's; it must exist
 *       otel-<hash>/                      of endpoint, format and user; 0700
 *         lock                            held by the process that sends (flock)
 *         <written>-<id>-<spans>-<length>.otlp  a request, 0600; names sort by time
 *         <written>-<id>-<spans>-<length>.tmp   one that is being written
 *
 * A file is one request's plain OTLP bytes behind a head with a checksum of all (spool_file.h). It
 * gets its name when it is complete: no reader ever sees half of one, and a process that is killed
 * leaves at most a `.tmp` behind, which a process that reads the directory a minute later removes.
 * Every process may put files; one at a time may send them. The bounds are of all processes
 * together: the directory is read again when its time stamp has changed, or after a tenth of a
 * second, and the oldest go when there is no room.
 *
 * How the parts belong together: disk_spool.c decides; spool_index.h knows what there is;
 * spool_dir.h makes the system calls; spool_file.h knows names and contents; spool_count.h counts.
 *
 * What is not ours (no file, no name of ours, a newer version) stays as it is and is counted. No
 * symbolic link is followed below DIRECTORY, and nothing is written to a descriptor that the
 * program may have closed and opened for something else.
 *
 * Threads:  one thread at a time; the counts any thread. Fork: a child opens its own. */
#ifndef OTELI_DISK_SPOOL_H
#define OTELI_DISK_SPOOL_H

#include "exporters/otlp/call/request_call.h"

struct oteli_spool;

/* A request that was read and verified. The bytes are the spool's, until the next call. */
struct oteli_spool_item {
    const void *bytes;
    size_t length;
    uint32_t spans;
};

/* `format`: HTTP_JSON or HTTP_PROTOBUF, which gRPC shares. `max_bytes`, `max_age_ms`: as in
 * otel_otlp_options. NULL: no memory. Where the directory cannot be used now, that is in the log,
 * and tried again with each call. */
struct oteli_spool *oteli_spool_open(const char *directory, const char *endpoint,
                                     otel_otlp_protocol format, uint64_t max_bytes,
                                     int64_t max_age_ms);
void oteli_spool_close(struct oteli_spool *spool);

/* Warn if the directory cannot be used now. */
void oteli_spool_warn(struct oteli_spool *spool);

/* In a forked child: close its copies of a parent's descriptors, whatever the parent's thread was
 * doing. A copy of the lock would keep other processes from sending if the parent ended while it
 * sends. */
void oteli_spool_close_copies(const struct oteli_spool *parents);

/* False: it cannot be written, and the log says why. */
bool oteli_spool_put(struct oteli_spool *spool, const void *bytes, size_t length, uint32_t spans);

/* The oldest that may be sent by this process now. False: there is none, it cannot be read now,
 * or another process is sending. */
bool oteli_spool_first(struct oteli_spool *spool, struct oteli_spool_item *item);

/* What became of the one that oteli_spool_first gave last: delivered or refused, and so removed,
 * or kept for later. */
void oteli_spool_settle(struct oteli_spool *spool, enum oteli_request_call_end end,
                        uint64_t rejected);

/* Whether there is nothing to send, as far as this process knows. */
bool oteli_spool_is_empty(const struct oteli_spool *spool);

/* Whether another process is sending what there is. */
bool oteli_spool_is_taken(const struct oteli_spool *spool);

#endif

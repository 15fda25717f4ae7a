/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/spool_sender.h - how an exporter uses its spool. Owns a spool
 * (disk_spool.h), a request call for what is in it, and the knowledge whether the receiver is away.
 *
 *     there ── any attempt gets no connection, or is told to come later ──▶ away
 *     away  ── the oldest file, which is tried with back-off, is answered ─────▶ there
 *
 *  - Away: batches are put to disk at once, and no export waits for time-outs.
 *  - There: batches go directly; files are sent oldest first, one at a time, between exports.
 *  - A file that the receiver refuses is removed and counted, and holds nothing up.
 *  - What is not sent when the exporter is freed stays, for the next program.
 *
 * Nothing here waits, except for the disk.
 *
 * Threads:  one thread at a time. Fork: oteli_spool_sender_renew in the child. */
#ifndef OTELI_SPOOL_SENDER_H
#define OTELI_SPOOL_SENDER_H

#include "exporters/otlp/call/request_call.h"
#include "exporters/otlp/encode/request.h"

struct oteli_spool_sender;

struct oteli_spool_sender_options {
    const char *directory;
    const char *endpoint; /* the URL: what is kept for one goes to no other. Without secrets */
    uint64_t max_bytes;   /* as in otel_otlp_options, zero included */
    int64_t max_age_ms;   /* likewise */
    otel_otlp_compression compression;
    size_t max_request_bytes;
    uint64_t timeout_ns; /* of one request; UINT64_MAX: none */
};

/* Everything is copied, but the receiver is borrowed and outlives it; the transport is adopted in
 * any case. NULL: no memory. A directory that cannot be used now is one that can be later. */
struct oteli_spool_sender *oteli_spool_sender_new(const struct oteli_spool_sender_options *options,
                                                  const struct oteli_receiver *receiver,
                                                  struct oteli_transport *transport);

/* In a forked child: another one from what is constant in the parent's, NULL: no memory. */
struct oteli_spool_sender *oteli_spool_sender_renew(const struct oteli_spool_sender *parents,
                                                    const struct oteli_receiver *receiver);

/* Also NULL. A request on its way is broken off: its file stays. */
void oteli_spool_sender_free(struct oteli_spool_sender *spool_sender);

/* Whether to put the next batch to disk at once. */
bool oteli_spool_sender_is_away(const struct oteli_spool_sender *spool_sender);

/* What an attempt of the exporter's own has shown: NULL: the receiver answered, be it to refuse;
 * else why it is away, for the log. */
void oteli_spool_sender_note(struct oteli_spool_sender *spool_sender, const char *problem);

/* What the receiver asked for with the attempt that failed: no probe before that time. */
void oteli_spool_sender_hold_off(struct oteli_spool_sender *spool_sender, uint64_t asked_ms);

/* Put a request that was made to disk: its `plain` bytes. False: that did not work, and is in
 * the log. */
bool oteli_spool_sender_keep(struct oteli_spool_sender *spool_sender,
                             const struct oteli_request *request);

/* Go on with the files: otel_exporter.attend, and otel_exporter.finish, which is over when the
 * receiver is away, and where another process sends the files. */
int oteli_spool_sender_attend(struct oteli_spool_sender *spool_sender);
int oteli_spool_sender_finish(struct oteli_spool_sender *spool_sender);

/* What to wait for before the next oteli_spool_sender_attend; -1: only for its time. The same
 * descriptor whenever there is one. */
int oteli_spool_sender_descriptor(struct oteli_spool_sender *spool_sender);

#endif

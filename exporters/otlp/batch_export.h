/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/batch_export.h - what happens to a batch until every span of it is accounted for.
 *
 *     spans of the batch   │ slot 0: its range   │ slot 1: its range   │ not taken yet
 *                                  └ the part that its request holds
 *
 * A slot takes as many spans as go into one request, sends them, and then takes the next. A
 * request that is too large for the receiver is halved, and the slot sends its range in
 * smaller parts. One that is refused for its content is halved as well, until the span is found for
 * which it was (culprit.h). There is one slot, unless several requests may be on their way at a
 * time.
 *
 * With a spool no request waits here to be tried again: what finds the receiver away goes to disk,
 * and while it is away all the others do too. What the disk does not take goes on as without one.
 *
 * What a response means for the spans of its request (what protocol.c makes of it; how
 * request_call.c ends; what is counted here):
 *
 *     HTTP 2xx, grpc-status 0          DELIVERED   DELIVERED    delivered, or rejected by a
 *                                                               partial success
 *     429, 502, 503, 504, a gRPC code  RETRY       no time for  spooled, or dropped as
 *     to retry, no connection,                     another:
 *     no answer                                    EXHAUSTED      retry_exhausted
 *                                                  UNCONFIRMED    unconfirmed
 *     413, or a text about the size    TOO_LARGE   TOO_LARGE    sent in halves; a single span is
 *                                                               dropped as too_large
 *     400, INVALID_ARGUMENT, INTERNAL  FINAL       REFUSED      sent in halves; the culprit is
 *                                                               dropped as permanent_error
 *     any other status                 FINAL       REFUSED      dropped as permanent_error
 *     a certificate is not accepted    HOPELESS    HOPELESS     spooled, or dropped as
 *                                                               permanent_error
 *
 * What is not counted as rejected, spooled or dropped counts as delivered (sdk/worker/export.c).
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_BATCH_EXPORT_H
#define OTELI_BATCH_EXPORT_H

#include "exporters/otlp/call/culprit.h"
#include "exporters/otlp/call/request_call.h"
#include "exporters/otlp/encode/request.h"
#include "exporters/otlp/encode/size_limit.h"
#include "exporters/otlp/spool/spool_sender.h"

enum { OTELI_REQUEST_SLOTS_MAX = 16 };

struct oteli_request_slot {
    struct oteli_request_call request_call;
    struct oteli_request request;
    bool is_busy;        /* its request is on its way */
    uint64_t started_ns; /* when it was sent first */
    size_t first;        /* span of the request */
    size_t end;          /* of the slot's range of the batch */
    size_t most;         /* spans in a request: halved whenever one is too large */
    size_t suspect_end;  /* where the spans end that contain a refused one; 0: no search */
    unsigned kept_after; /* attempts after which the spool has been tried last */
};

struct oteli_batch_export {
    /* Constant. */
    const struct oteli_receiver *receiver;
    struct oteli_spool_sender *spool_sender; /* NULL: there is none */
    uint64_t timeout_ns;                     /* of a batch; UINT64_MAX: none */
    size_t max_request_bytes;
    size_t slot_count;
    struct oteli_request_slot *slots;

    struct oteli_size_limit size_limit;
    struct oteli_culprit culprit;
    bool is_away; /* the receiver, and the log has said it */

    bool is_watched; /* a program has asked for the descriptor */

    /* Of the batch that is being exported. */
    const otel_export *call; /* NULL: none */
    uint64_t deadline_ns;    /* our own; that of the call may be earlier */
    size_t next;             /* first span that no slot has taken */
};

otel_export_result oteli_batch_export_begin(struct oteli_batch_export *batch_export,
                                            otel_export *call);

/* Go on for at most `timeout_ms`. `abandon`: no time is left, and it is done after this call. */
otel_export_result oteli_batch_export_go_on(struct oteli_batch_export *batch_export,
                                            otel_export *call, int timeout_ms, bool abandon);

/* While an export is pending: as otel_exporter.descriptor. */
int oteli_batch_export_descriptor(struct oteli_batch_export *batch_export, int *timeout_ms);

#endif

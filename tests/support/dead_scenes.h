/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/dead_scenes.h - the receivers that never take a span, for every protocol for which
 * each makes sense: those of dead_peer.h where the kernel has to play a part, the others as scripts
 * of fault_peer.h.
 *
 * Threads:  that of the peer; everything here from one thread at a time. */
#ifndef OTELI_TESTS_DEAD_SCENES_H
#define OTELI_TESTS_DEAD_SCENES_H

#include "tests/support/certificates.h"
#include "tests/support/dead_peer.h"
#include "tests/support/fault_peer.h"

#include <otel/otlp.h>

enum { FOR_HTTP = 1, FOR_GRPC = 2, FOR_ALL = 3 };

struct dead_scene {
    const char *name;
    unsigned protocols;
    bool is_kernels; /* `kind` counts, else the script */
    enum dead_peer_kind kind;
    bool has_tls;
    int receive_buffer;
    struct fault_connection connection;
    struct fault_answer answer;
    bool may_end;     /* it says something final: there may be nothing left to wait for */
    bool may_receive; /* requests may come whole: their spans must count as unconfirmed, not as
                         lost for sure */
};

extern const struct dead_scene dead_scenes[];
extern const size_t dead_scene_count;

/* A peer that plays one of them. */
struct dead_stage {
    const struct dead_scene *scene;
    struct fault_peer *fault;
    struct dead_peer *kernels;
    char endpoint[160];
    char proxy[64]; /* "": none */
};

void dead_stage_start(struct dead_stage *stage, const struct dead_scene *scene,
                      otel_otlp_protocol protocol, struct certificates *certificates);
void dead_stage_stop(struct dead_stage *stage);

#endif

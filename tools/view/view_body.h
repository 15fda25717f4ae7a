/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_body.h - the body of a request, while it comes, and what is done with it then.
 *
 * The same for OTLP/HTTP and for gRPC.
 *
 * Threads:  otel-view's only thread. */
#ifndef VIEW_BODY_H
#define VIEW_BODY_H

#include "tools/view/view_inflate.h"

#include <stdbool.h>
#include <stdio.h>

enum { VIEW_WHY_BYTES = 200 }; /* of a reason, with its end */

/* Take in the OTLP bytes of a request, whole and not compressed. Returns 0, or the HTTP status of
 * the refusal, 400 or 503, and then `why`, one line. */
typedef unsigned view_take(void *state, const uint8_t *body, size_t length, char *why,
                           size_t why_size);

struct view_taker {
    view_take *take;
    void *state;
};

struct view_body {
    FILE *stream; /* of what has come; NULL: nothing, or all */
    char *bytes;
    size_t length;
    struct view_refusal refusal; /* to answer once the rest of the body has passed by */
};

/* "gzip", "zstd", "identity" or "". False: another one. */
bool view_encoding_of(const char *name, size_t length, enum view_encoding *encoding);

void view_body_add(struct view_body *body, const void *data, size_t length);

/* All of it has come: `bytes` and `length` can be read, unless there is a refusal. */
void view_body_close(struct view_body *body);
void view_body_fini(struct view_body *body);

/* Decompress what has come and give it to the taker. `why` is room for the reason. */
struct view_refusal view_body_give(const struct view_taker *taker, enum view_encoding encoding,
                                   const char *bytes, size_t length, char why[VIEW_WHY_BYTES]);

#endif

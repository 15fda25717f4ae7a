/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_http.h - an OTLP/HTTP receiver on loopback: POST /v1/traces.
 *
 * It has no thread: the owner polls `view_http_fd` and calls `view_http_run`.
 *
 * Threads:  one thread at a time. */
#ifndef VIEW_HTTP_H
#define VIEW_HTTP_H

#include "tools/view/view_body.h"

struct MHD_Daemon;

struct view_http {
    struct MHD_Daemon *daemon;
    struct view_taker taker;
    uint16_t port;
    unsigned in_flight; /* requests that are not answered to the end yet */
};

/* Listen on 127.0.0.1; port 0: any free one. False, with errno: that is not possible. */
bool view_http_start(struct view_http *http, uint16_t port, struct view_taker taker);
void view_http_stop(struct view_http *http);

int view_http_fd(const struct view_http *http);

/* How long a poll may wait at most, in milliseconds, not more than `limit_ms`. */
int view_http_timeout_ms(const struct view_http *http, int limit_ms);

/* Do what can be done without waiting. */
void view_http_run(struct view_http *http);

#endif

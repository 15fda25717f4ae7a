/* SPDX-License-Identifier: Apache-2.0 */
/* examples/relay/wire.h - as much HTTP/1.1 and JSON as relay.c and relay.cpp need: it stands for
 * the HTTP library of a real server, and knows nothing of traces. One request a connection. */
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Some bytes of a longer text; no NUL behind them. */
struct wire_text {
    const char *data;
    size_t length;
};

struct wire_header {
    const char *name;
    struct wire_text value;
};

/* A request that has come in; everything points into `memory`. */
struct wire_request {
    const char *method, *target, *version;
    struct wire_text body;
    size_t header_count;
    struct wire_header headers[64];
    char peer[16];
    uint16_t peer_port;
    char memory[65536];
};

/* Headers of a request that goes out, as lines. What does not fit is left out. */
struct wire_lines {
    size_t length;
    char text[16384];
};

/* Listen on a port of loopback; 0 takes a free one and says which. -1: errno says why not. */
int wire_listen(uint16_t *port);

/* Accept a connection and read its request; what is no request is answered here, and the next one
 * waited for. -1: wire_stop was called, or the listener has failed. */
int wire_accept(int listener, struct wire_request *request);

/* Let wire_accept return -1, in all threads. */
void wire_stop(int listener);

/* Answer, and close the connection. */
void wire_answer(int connection, unsigned status);

void wire_add_line(struct wire_lines *lines, const char *name, const char *value, size_t length);

/* POST a body to a URL, http://ADDRESS:PORT/PATH. Returns the status, 0: there was no answer. */
unsigned wire_post(const char *url, const struct wire_lines *headers, struct wire_text body);

/* Cut the next object off [{"url": "http://…", "arguments": …}, …]: its URL, and its arguments as
 * they are. `*rest` is the text of the array first. False: there is no further one. */
bool wire_next_call(struct wire_text *rest, char url[256], struct wire_text *arguments);

#ifdef __cplusplus
}
#endif
#endif

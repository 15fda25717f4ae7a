/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/polled.h - a fixture for an SDK that waits for descriptors: faked.h's, which
 * counts how often it waits, and looks whether descriptors are left behind. epoll_wait comes here
 * first (--wrap), so the program has to be linked with this file. */
#ifndef OTELI_TESTS_POLLED_H
#define OTELI_TESTS_POLLED_H

#include "tests/support/faked.h"

enum { MOST_FDS = 64, PATIENCE_MS = 60000 };

extern uint32_t looks;          /* calls of epoll_wait; atomic */
extern bool was_open[MOST_FDS]; /* before the test */

int polled_begin(void **state);
int polled_end(void **state);

/* An SDK without a thread, for batches of ten. */
otel_status polled_start_with_delay(int64_t delay_ms);
void polled_start(void);
void polled_spans(const char *name, size_t count);
void poll_once(void);

bool is_open(int fd);
void check_descriptors(void); /* those of before, and no others */
void close_unknown(void);     /* all that were not there before */
bool becomes_readable(int fd, int timeout_ms);
bool is_readable(void); /* otel_poll_fd() */

#endif

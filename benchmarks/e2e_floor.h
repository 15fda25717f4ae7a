/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/e2e_floor.h - the requests of `e2e` without anything that makes them: bodies of as
 * many bytes lie ready, and are sent one after the other on one connection, each when the one
 * before it is answered. For what is left to the sending side is libcurl, or not even that.
 *
 * Threads:  one. */
#ifndef OTELI_BENCH_E2E_FLOOR_H
#define OTELI_BENCH_E2E_FLOOR_H

#include <stddef.h>
#include <stdint.h>

/* By libcurl, as its manual shows it; and by a socket and writev. Failures end the program. */
void e2e_floor_libcurl(const char *url, uint64_t requests, size_t bytes);
void e2e_floor_socket(const char *url, uint64_t requests, size_t bytes);

#endif

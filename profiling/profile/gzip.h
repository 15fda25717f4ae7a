/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profile/gzip.h - the door to zlib: pprof files are gzipped, always.
 *
 * Threads:  any; no state. */
#ifndef OTELI_GZIP_H
#define OTELI_GZIP_H

#include <stdbool.h>
#include <stddef.h>

/* *compressed is the caller's, to free(). false: no memory, or 4 GiB and more of it. */
bool oteli_gzip(const void *bytes, size_t length, void **compressed, size_t *compressed_length);

#endif

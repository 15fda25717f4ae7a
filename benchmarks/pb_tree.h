/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/pb_tree.h - the same request through protobuf-c, the way an exporter without
 * an encoder of its own would make it: a tree of messages, its size, its bytes.
 *
 * What has nothing to do with protobuf-c is kept out of the figure: the values of the spans
 * lie ready, with strings ended by NUL as protobuf-c wants them, and the tree's nodes come
 * from one block of memory instead of from malloc. One thread at a time. */
#ifndef OTELI_BENCH_PB_TREE_H
#define OTELI_BENCH_PB_TREE_H

#include <otel/exporter.h>

struct bench_pb;

struct bench_pb *bench_pb_new(size_t most_spans);
void bench_pb_free(struct bench_pb *pb);

/* Lay the values of a batch ready. All spans must have one scope. */
void bench_pb_load(struct bench_pb *pb, const otel_batch *batch);

/* Build the tree, ask for its size, pack it. The bytes are valid until the next call. */
otel_slice bench_pb_encode(struct bench_pb *pb);

#endif

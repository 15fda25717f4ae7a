/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/worker.c - what a span costs the exporter thread, up to the bytes of a request.
 *
 * The real exporter thread runs, in the real SDK, with an exporter that encodes each batch
 * with the OTLP exporter's encoder and sends nothing. A round: the exporter is held up in
 * its first batch while the program ends many spans; then it is let go, and its thread's
 * CPU time is read there and again when a flush has brought it to the last span. In
 * between lies everything that this thread does for a span: it takes lines out of the
 * ring, turns ticks into nanoseconds, makes batches, encodes them, gives the lines back.
 *
 * Beside it the encoder alone, and protobuf-c with the same spans. All three must have
 * made the same bytes. */
#include "benchmarks/bench.h"
#include "benchmarks/pb_tree.h"
#include "exporters/otlp/encode/batch_encoder.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 512, BATCHES = 24, QUICK_BATCHES = 4, ROUNDS = 41, QUICK_ROUNDS = 3 };
enum { QUEUE_SIZE = 1 << 16, MAX_REQUEST_BYTES = 64 << 20, FLUSH_MS = 60000 };

enum mode { DRAIN_ENCODE, ENCODE, PROTOBUF_C, MODES };
static const char *const mode_names[MODES] = {"drain_encode_5attr", "encode_5attr",
                                              "protobuf_c_5attr"};

/* The exporter. The main thread touches it only while no round is under way. */
struct measuring {
    struct bench_gate gate;
    struct oteli_encoder encoder;
    struct bench_pb *pb;
    enum mode mode;
    bool is_first; /* the next batch is the one that is held up */
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t inside_ns; /* in what `mode` measures inside an export */
    uint64_t bytes;
};

static otel_slice encode(struct measuring *measuring, const otel_batch *batch)
{
    size_t count = 0;
    if (oteli_encode(&measuring->encoder, batch, 0, SIZE_MAX, &count) != OTELI_ENCODE_OK ||
        count != otel_batch_size(batch))
        bench_fail("a batch was not encoded");
    return (otel_slice){(const char *)measuring->encoder.request, measuring->encoder.request_bytes};
}

/* The batch that was held up is not counted: here everything is compared instead. */
static void compare_encoders(struct measuring *measuring, const otel_batch *batch)
{
    bench_pb_load(measuring->pb, batch);
    const otel_slice theirs = bench_pb_encode(measuring->pb);
    const otel_slice ours = encode(measuring, batch);
    if (ours.length != theirs.length || memcmp(ours.data, theirs.data, ours.length) != 0)
        bench_fail("protobuf-c makes other bytes: %zu, and we %zu", theirs.length, ours.length);
}

static otel_export_result export_batch(void *state, otel_export *call)
{
    struct measuring *measuring = state;
    if (measuring->is_first) {
        measuring->is_first = false;
        compare_encoders(measuring, call->batch);
        bench_gate_pass(&measuring->gate);
        measuring->start_ns = bench_thread_cpu_ns();
        return OTEL_EXPORT_DONE;
    }
    if (measuring->mode == DRAIN_ENCODE) {
        measuring->bytes += encode(measuring, call->batch).length;
        return OTEL_EXPORT_DONE;
    }
    if (measuring->mode == PROTOBUF_C)
        bench_pb_load(measuring->pb, call->batch);
    const uint64_t start_ns = bench_thread_cpu_ns();
    const otel_slice request = measuring->mode == PROTOBUF_C ? bench_pb_encode(measuring->pb)
                                                             : encode(measuring, call->batch);
    measuring->inside_ns += bench_thread_cpu_ns() - start_ns;
    measuring->bytes += request.length;
    return OTEL_EXPORT_DONE;
}

static otel_status flush(void *state, int64_t timeout_ms)
{
    struct measuring *measuring = state;
    (void)timeout_ms;
    measuring->end_ns = bench_thread_cpu_ns();
    return OTEL_OK;
}

static void make_spans(otel_tracer *tracer, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const otel_span span = otel_span_enter(tracer, "GET /users", NULL);
        bench_set_5_attributes(span);
        otel_span_end(span);
    }
}

/* Nanoseconds a span. */
static double run_round(struct measuring *measuring, otel_tracer *tracer, enum mode mode,
                        size_t batches)
{
    measuring->mode = mode;
    measuring->is_first = true;
    measuring->inside_ns = 0;
    measuring->bytes = 0;
    bench_gate_set(&measuring->gate, true);
    make_spans(tracer, batches * BATCH);
    bench_gate_set(&measuring->gate, false);
    bench_expect_ok(otel_flush(FLUSH_MS), "otel_flush");
    const uint64_t ns =
        mode == DRAIN_ENCODE ? measuring->end_ns - measuring->start_ns : measuring->inside_ns;
    return (double)ns / (double)((batches - 1) * BATCH);
}

static void report(enum mode mode, double *figures, unsigned rounds, double bytes)
{
    bench_sort(figures, rounds);
    bench_line_begin("worker", mode_names[mode]);
    bench_figure("ns_per_span", figures[0], 2);
    bench_figure("median_ns_per_span", bench_median(figures, rounds), 2);
    bench_figure("bytes_per_span", bytes, 1);
    bench_line_end();
}

int main(int count, char **arguments)
{
    const struct bench_options options = bench_options_read(count, arguments);
    const size_t batches = options.quick ? QUICK_BATCHES : BATCHES;
    const unsigned rounds = bench_rounds(&options, ROUNDS, QUICK_ROUNDS);
    struct measuring measuring = {.gate = BENCH_GATE_OPEN, .pb = bench_pb_new(BATCH)};
    oteli_encoder_init(&measuring.encoder, MAX_REQUEST_BYTES, 0);
    const otel_exporter exporter = OTEL_EXPORTER(.name = "measuring", .state = &measuring,
                                                 .export_batch = export_batch, .flush = flush);
    bench_expect_ok(
        otel_start_with(OTEL_SDK_OPTIONS(.service_name = "bench", .exporters = &exporter,
                                         .exporter_count = 1, .bsp_max_queue_size = QUEUE_SIZE,
                                         .bsp_max_export_batch_size = BATCH)),
        "otel_start_with");
    otel_tracer *tracer = otel_tracer_get("bench", "1.0");

    double *figures[MODES];
    for (unsigned mode = 0; mode < MODES; mode++) {
        figures[mode] = calloc(rounds, sizeof **figures);
        if (figures[mode] == NULL)
            bench_fail("no memory");
        run_round(&measuring, tracer, (enum mode)mode, batches);
    }
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned mode = 0; mode < MODES; mode++)
            figures[mode][round] = run_round(&measuring, tracer, (enum mode)mode, batches);
    const double bytes = (double)measuring.bytes / (double)((batches - 1) * BATCH);
    bench_expect_delivered((uint64_t)(rounds + 1) * MODES * batches * BATCH);
    bench_expect_ok(otel_shutdown(FLUSH_MS), "otel_shutdown");

    for (unsigned mode = 0; mode < MODES; mode++) {
        report((enum mode)mode, figures[mode], rounds, bytes);
        free(figures[mode]);
    }
    oteli_encoder_fini(&measuring.encoder);
    bench_pb_free(measuring.pb);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/pprof_made.c - write a profile of this program into a directory, as a file:
 * 70 samples in one function and under one label, 30 in another and under another.
 *
 *     pprof_made DIRECTORY STYLE        otel, datadog or pyroscope
 *     pprof_made DIRECTORY STYLE NAMES  auto, on or off, as OTEL_C_PROFILER_NAMES
 *
 * The samples are made by hand, of real addresses, so that the text that pprof makes of the file is
 * the same every time. */
#include "profiling/profile/profile_builder.h"
#include "tests/support/resolved_sample.h"

#include <stdio.h>
#include <string.h>

enum { SAMPLES_A = 70, SAMPLES_B = 30, PERIOD_NS = 10 * 1000 * 1000, IN_THE_FUNCTION = 4 };

#if defined(__has_attribute) && __has_attribute(noclone)
#define KEPT __attribute__((noinline, used, noclone))
#else
#define KEPT __attribute__((noinline, used))
#endif

static volatile unsigned sink;

KEPT static void run_query_a(void)
{
    for (unsigned i = 0; i < 1000; i++)
        sink += i;
}

KEPT static void run_query_b(void)
{
    for (unsigned i = 0; i < 1000; i++)
        sink ^= i;
}

KEPT static void serve(bool is_a)
{
    if (is_a)
        run_query_a();
    else
        run_query_b();
    sink++;
}

static const void *inside(uintptr_t function)
{
    return (const void *)(function + IN_THE_FUNCTION);
}

static bool add(struct oteli_profile_builder *builder, bool is_a)
{
    struct made_sample made;
    made_sample_begin(&made);
    made_sample_frame(&made, inside(is_a ? (uintptr_t)run_query_a : (uintptr_t)run_query_b));
    made_sample_frame(&made, inside((uintptr_t)serve));
    if (is_a)
        made_sample_label(&made, "query", "A", "http.route", "/a/{id}", NULL);
    else
        made_sample_label(&made, "query", "B", NULL);
    if (is_a)
        made_sample_span(&made, 0xa1, 0x1111111111111111, 0xa111111111111110);
    else
        made_sample_span(&made, 0xb1, 0xb222222222222222, 0xb222222222222220);
    return oteli_profile_builder_add(builder, &made.resolved);
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4)
        return 2;
    serve(true);
    struct oteli_profile_builder *builder = oteli_profile_builder_new(PERIOD_NS, 100);
    const otel_pprof_style style = strcmp(argv[2], "datadog") == 0     ? OTEL_PPROF_DATADOG
                                   : strcmp(argv[2], "pyroscope") == 0 ? OTEL_PPROF_PYROSCOPE
                                                                       : OTEL_PPROF_OTEL;
    otel_profile_exporter exporter = otel_pprof_file_exporter(argv[1], style);
    if (builder == NULL || exporter.state == NULL)
        return 1;
    for (unsigned i = 0; i < SAMPLES_A; i++)
        if (!add(builder, true) || (i < SAMPLES_B && !add(builder, false)))
            return 1;
    if (argc == 4 && strcmp(argv[3], "on") == 0)
        oteli_profile_builder_name(builder, UINT64_MAX);
    const otel_profile *profile = oteli_profile_builder_finish(builder);
    const otel_status status = exporter.export_profile(exporter.state, profile, 1000);
    exporter.free(exporter.state);
    oteli_profile_builder_free(builder);
    printf("%s\n", otel_status_string(status));
    return status != OTEL_OK;
}

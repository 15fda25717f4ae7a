/* SPDX-License-Identifier: Apache-2.0 */
/* What a pprof file holds, as another decoder reads it. */
#include "common/clock.h"
#include "profiling/gzip.h"
#include "profiling/profile_builder.h"
#include "tests/support/leaks.h"
#include "tests/support/pprof/profile.pb-c.h"
#include "tests/support/resolved_sample.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <zlib.h>

enum { PERIOD_NS = 1000 };

typedef Perftools__Profiles__Profile pprof;

/* ---- a profile, its bytes, and what they say ------------------------------------------------ */

static struct oteli_profile_builder *builder;
static struct made_sample made;

static pprof *file; /* what encode gave last */

static int begin(void **state)
{
    (void)state;
    (void)oteli_clock_start("fake");
    prctl(PR_SET_NAME, "tester");
    builder = oteli_profile_builder_new(PERIOD_NS, 100);
    assert_non_null(builder);
    made_sample_begin(&made);
    return 0;
}

static void forget(void)
{
    if (file != NULL)
        perftools__profiles__profile__free_unpacked(file, NULL);
    file = NULL;
}

static int end(void **state)
{
    (void)state;
    forget();
    oteli_profile_builder_free(builder);
    return 0;
}

static void add(void)
{
    assert_true(oteli_profile_builder_add(builder, &made.resolved));
}

static pprof *decode(const void *bytes, size_t length)
{
    enum { ROOM = 1 << 20 };
    static uint8_t room[ROOM];
    z_stream stream = {.next_in = (z_const Bytef *)bytes, .avail_in = (uInt)length};
    stream.next_out = room;
    stream.avail_out = ROOM;
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK); /* gzip, and nothing else */
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.avail_in, 0);
    inflateEnd(&stream);
    pprof *decoded = perftools__profiles__profile__unpack(NULL, stream.total_out, room);
    assert_non_null(decoded);
    return decoded;
}

static void encode_profile(const otel_profile *profile, otel_pprof_style style)
{
    void *bytes;
    size_t length;
    forget();
    assert_int_equal(otel_profile_encode_pprof(profile, style, &bytes, &length), OTEL_OK);
    file = decode(bytes, length);
    free(bytes);
}

static void encode(otel_pprof_style style)
{
    const otel_profile *profile = oteli_profile_builder_finish(builder);
    assert_non_null(profile);
    encode_profile(profile, style);
}

static const char *text_of(int64_t index)
{
    assert_in_range(index, 0, file->n_string_table - 1);
    return file->string_table[index];
}

static void assert_type(const Perftools__Profiles__ValueType *type, const char *name,
                        const char *unit)
{
    assert_string_equal(text_of(type->type), name);
    assert_string_equal(text_of(type->unit), unit);
}

/* "key=text key=number" in the order of the file; the thread's id is one that is not the same each
 * time, and left out. */
static void assert_labels(size_t sample, const char *expected)
{
    char text[1024] = "";
    const Perftools__Profiles__Sample *of = file->sample[sample];
    for (size_t i = 0; i < of->n_label; i++) {
        const Perftools__Profiles__Label *label = of->label[i];
        const size_t used = strlen(text);
        if (label->num != 0) {
            assert_int_equal(label->str, 0);
            assert_int_equal(label->num, getpid());
            snprintf(text + used, sizeof text - used, "%s* ", text_of(label->key));
        } else {
            snprintf(text + used, sizeof text - used, "%s=%s ", text_of(label->key),
                     text_of(label->str));
        }
    }
    assert_string_equal(text, expected);
}

AROUND_EACH(begin, end);

/* ---- tests ---------------------------------------------------------------------------------- */

TEST(the_head_says_what_the_numbers_are)
{
    add();
    oteli_fake_clock.monotonic_ns += 5000;

    encode(OTEL_PPROF_OTEL);

    assert_int_equal(file->n_sample_type, 2);
    assert_type(file->sample_type[0], "samples", "count");
    assert_type(file->sample_type[1], "cpu", "nanoseconds");
    assert_type(file->period_type, "cpu", "nanoseconds");
    assert_int_equal(file->period, PERIOD_NS);
    assert_int_equal(file->duration_nanos, 5000);
    assert_true(file->time_nanos > 0);
    assert_string_equal(text_of(file->default_sample_type), "cpu");
    assert_string_equal(file->string_table[0], "");
}

TEST(samples_lead_to_mappings)
{
    for (unsigned i = 0; i < 2; i++) {
        made_sample_begin(&made);
        made_sample_frame(&made, (const void *)17);
        made_sample_frame(&made, (const void *)((uintptr_t)getenv + 1));
        made_sample_frame(&made, (const void *)((uintptr_t)begin + 1));
        made.sample.periods = 3;
        add();
    }
    char program[PATH_MAX] = "";
    assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);

    encode(OTEL_PPROF_OTEL);

    assert_int_equal(file->n_sample, 1);
    const Perftools__Profiles__Sample *sample = file->sample[0];
    assert_int_equal(sample->n_value, 2);
    assert_int_equal(sample->value[0], 2);
    assert_int_equal(sample->value[1], 6 * PERIOD_NS);
    assert_int_equal(sample->n_location_id, 3);
    const uintptr_t addresses[] = {17, (uintptr_t)getenv, (uintptr_t)begin};
    for (size_t i = 0; i < file->n_location; i++) {
        const Perftools__Profiles__Location *location = file->location[i];
        assert_int_equal(sample->location_id[i], location->id);
        assert_int_equal(location->address, addresses[i]);
        assert_int_equal(location->n_line, 0);
    }
    assert_int_equal(file->location[0]->mapping_id, 0);
    assert_int_equal(file->n_mapping, 2);
    const Perftools__Profiles__Mapping *main_mapping = file->mapping[0];
    assert_int_equal(file->location[2]->mapping_id, main_mapping->id);
    assert_int_equal(file->location[1]->mapping_id, file->mapping[1]->id);
    assert_string_equal(text_of(main_mapping->filename), program);
    assert_int_equal(strlen(text_of(main_mapping->build_id)) % 2, 0);
    assert_true(strlen(text_of(main_mapping->build_id)) >= 16);
    assert_in_range((uintptr_t)begin, main_mapping->memory_start, main_mapping->memory_limit - 1);
    assert_false(main_mapping->has_functions || main_mapping->has_line_numbers);
}

TEST(names_that_the_profile_has_are_functions)
{
    const uintptr_t addresses[] = {17, (uintptr_t)begin, (uintptr_t)begin + 1, (uintptr_t)end};
    made_sample_begin(&made);
    for (size_t i = 0; i < 4; i++)
        made_sample_frame(&made, (const void *)(addresses[i] + (i != 0)));
    add();
    oteli_profile_builder_name(builder, UINT64_MAX);

    encode(OTEL_PPROF_OTEL);

    assert_int_equal(file->n_function, 2);
    assert_int_equal(file->n_mapping, 1);
    assert_true(file->mapping[0]->has_functions);
    assert_false(file->mapping[0]->has_filenames || file->mapping[0]->has_line_numbers);
    assert_int_equal(file->n_location, 4);
    assert_int_equal(file->location[0]->n_line, 0);
    for (size_t i = 1; i < 4; i++) {
        assert_int_equal(file->location[i]->address, addresses[i]);
        assert_int_equal(file->location[i]->n_line, 1);
        const Perftools__Profiles__Function *function = file->function[i / 3];
        assert_true(function->id != 0);
        assert_int_equal(file->location[i]->line[0]->function_id, function->id);
        assert_string_equal(text_of(function->name), i < 3 ? "begin" : "end");
        assert_int_equal(function->system_name, function->name);
        assert_int_equal(function->filename, 0);
    }
}

static void add_labelled(uint64_t trace, uint64_t root)
{
    made_sample_begin(&made);
    made_sample_label(&made, "http.route", "/a/{id}", "user", "7", "trace_id", "not ours", NULL);
    made_sample_span(&made, trace, 0x8000000000000001, root);
    add();
}

/* The second has no root that is known; keys of the third's program are not taken for the route. */
TEST(labels_are_called_as_the_style_says)
{
    static const char *const expected[][3] = {
        [OTEL_PPROF_OTEL] = {"trace_id=00000000000000000000000000000abc span_id=8000000000000001 "
                             "local_root_span_id=00000000000000ff http.route=/a/{id} user=7 "
                             "thread.id* thread.name=tester ",
                             "trace_id=00000000000000000000000000000abd span_id=8000000000000001 "
                             "http.route=/a/{id} user=7 thread.id* thread.name=tester ",
                             "http.route=/a span_name=b trace endpoint=c thread.id* "
                             "thread.name=tester "},
        [OTEL_PPROF_DATADOG] = {"span id=9223372036854775809 local root span id=255 "
                                "trace endpoint=/a/{id} trace_id=not ours user=7 "
                                "thread id* thread name=tester ",
                                "span id=9223372036854775809 trace endpoint=/a/{id} "
                                "trace_id=not ours user=7 thread id* thread name=tester ",
                                "trace endpoint=/a span_name=b thread id* thread name=tester "},
        [OTEL_PPROF_PYROSCOPE] = {"profile_id=00000000000000ff span_name=/a/{id} "
                                  "trace_id=not ours user=7 thread.id* thread.name=tester ",
                                  "profile_id=8000000000000001 span_name=/a/{id} "
                                  "trace_id=not ours user=7 thread.id* thread.name=tester ",
                                  "span_name=/a trace endpoint=c thread.id* thread.name=tester "}};
    add_labelled(0xabc, 0xff);
    add_labelled(0xabd, 0);
    made_sample_begin(&made);
    made_sample_label(&made, "http.route", "/a", "span_name", "b", "trace endpoint", "c", NULL);
    add();
    const otel_profile *profile = oteli_profile_builder_finish(builder);
    for (int style = OTEL_PPROF_OTEL; style <= OTEL_PPROF_PYROSCOPE; style++) {
        encode_profile(profile, (otel_pprof_style)style);
        for (size_t i = 0; i < 3; i++)
            assert_labels(i, expected[style][i]);
    }
}

TEST(no_text_is_there_twice_or_for_nothing)
{
    add_labelled(0xabc, 1);
    made_sample_begin(&made);
    made_sample_label(&made, "cpu", "samples", NULL);
    made_sample_frame(&made, (const void *)(uintptr_t)begin);
    add();

    encode(OTEL_PPROF_OTEL);

    size_t counted = 1 + 4 /* types */ + 7 /* keys */ + 6 /* values of the first */ +
                     0 /* those of the second are there */ + 2 /* path, build id */;
    assert_int_equal(file->n_string_table, counted);
    for (size_t i = 0; i < file->n_string_table; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(file->string_table[i], file->string_table[j]);
}

TEST(nothing_sampled_is_a_profile_too_and_wrong_arguments_are_refused)
{
    void *bytes;
    size_t length;
    const otel_profile *profile = oteli_profile_builder_finish(builder);
    encode_profile(profile, OTEL_PPROF_OTEL);
    assert_int_equal(file->n_sample, 0);
    assert_int_equal(file->n_sample_type, 2);

    assert_int_equal(otel_profile_encode_pprof(NULL, OTEL_PPROF_OTEL, &bytes, &length),
                     OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_profile_encode_pprof(profile, OTEL_PPROF_OTEL, NULL, &length),
                     OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_profile_encode_pprof(profile, OTEL_PPROF_OTEL, &bytes, NULL),
                     OTEL_ERROR_INVALID_ARGUMENT);
}

TEST(without_memory_there_are_no_bytes)
{
    add_labelled(0xabc, 1);
    made_sample_begin(&made);
    made_sample_frame(&made, (const void *)(uintptr_t)begin);
    add();
    oteli_profile_builder_name(builder, UINT64_MAX);
    const otel_profile *profile = oteli_profile_builder_finish(builder);
    bool all_tried = false;
    for (size_t nth = 1; !all_tried; nth++) {
        void *bytes = NULL;
        size_t length;
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        const otel_status status =
            otel_profile_encode_pprof(profile, OTEL_PPROF_OTEL, &bytes, &length);
        all_tried = !oteli_leaks_failed();
        oteli_leaks_fail_at(0);
        /* What is given back at the end may as well be kept. */
        assert_true(status == OTEL_OK || (!all_tried && status == OTEL_ERROR_NO_MEMORY));
        if (status == OTEL_OK)
            perftools__profiles__profile__free_unpacked(decode(bytes, length), NULL);
        free(bytes);
        oteli_leaks_check();
    }
}

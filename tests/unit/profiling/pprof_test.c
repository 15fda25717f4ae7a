/* SPDX-License-Identifier: Apache-2.0 */
/* What a pprof file holds, as another decoder reads it; and how profiles come into a directory:
 * whole, one by one, under names that nothing else has there. */
#include "common/clock/clock.h"
#include "pprof/profile.pb-c.h"
#include "profiling/profile/profile_builder.h"
#include "tests/support/leaks.h"
#include "tests/support/resolved_sample.h"
#include "tests/support/said.h"
#include "tests/support/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <otel/otel.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { PERIOD_NS = 1000, PATH_SIZE = 256 };

typedef Perftools__Profiles__Profile pprof;

/* ---- a profile, its bytes, and what they say ------------------------------------------------ */

static struct oteli_profile_builder *builder;
static struct made_sample made;

static pprof *file;                    /* what encode gave last */
static otel_profile_exporter exporter; /* of files, if there is one */
static char directory[PATH_SIZE];      /* of the test */

static int begin(void **state)
{
    (void)state;
    said_begin(OTEL_LOG_WARN);
    unsetenv("OTEL_RESOURCE_ATTRIBUTES");
    setenv("OTEL_SERVICE_NAME", "shop", 1);
    snprintf(directory, sizeof directory, "/tmp/otel-c-pprof-XXXXXX");
    assert_non_null(mkdtemp(directory));
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

static void remove_directory(void)
{
    struct dirent **entries;
    char path[2 * PATH_SIZE + PATH_SIZE];
    const int count = scandir(directory, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
        unlink(path);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    rmdir(directory);
}

static int end(void **state)
{
    (void)state;
    forget();
    if (exporter.state != NULL)
        exporter.free(exporter.state);
    exporter.state = NULL;
    oteli_profile_builder_free(builder);
    remove_directory();
    said_end();
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

TEST(samples_lead_to_mappings_and_functions)
{
    const uintptr_t addresses[] = {17, (uintptr_t)getenv, (uintptr_t)begin, (uintptr_t)begin + 1,
                                   (uintptr_t)end};
    char program[PATH_MAX] = "";
    assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
    for (int has_names = 0; has_names < 2; has_names++) {
        for (unsigned i = 0; i < 2; i++) {
            made_sample_begin(&made);
            for (size_t k = 0; k < 5; k++)
                made_sample_frame(&made, (const void *)(addresses[k] + (k != 0)));
            made.sample.periods = 3;
            add();
        }
        if (has_names)
            oteli_profile_builder_name(builder, UINT64_MAX);

        encode(OTEL_PPROF_OTEL);

        assert_int_equal(file->n_sample, 1);
        const Perftools__Profiles__Sample *sample = file->sample[0];
        assert_int_equal(sample->n_value, 2);
        assert_int_equal(sample->value[0], 2);
        assert_int_equal(sample->value[1], 6 * PERIOD_NS);
        assert_int_equal(sample->n_location_id, 5);
        assert_int_equal(file->n_location, 5);
        assert_int_equal(file->n_mapping, 2);
        const Perftools__Profiles__Mapping *of_program = file->mapping[0];
        for (size_t i = 0; i < 5; i++) {
            const Perftools__Profiles__Location *location = file->location[i];
            assert_int_equal(sample->location_id[i], location->id);
            assert_int_equal(location->address, addresses[i]);
            assert_int_equal(location->mapping_id, i == 0   ? 0
                                                   : i == 1 ? file->mapping[1]->id
                                                            : of_program->id);
            assert_int_equal(location->n_line, has_names && i != 0);
        }
        assert_string_equal(text_of(of_program->filename), program);
        assert_int_equal(strlen(text_of(of_program->build_id)) % 2, 0);
        assert_true(strlen(text_of(of_program->build_id)) >= 16);
        assert_in_range((uintptr_t)begin, of_program->memory_start, of_program->memory_limit - 1);
        assert_int_equal(of_program->has_functions, has_names);
        assert_false(of_program->has_filenames || of_program->has_line_numbers);
        assert_int_equal(file->n_function, has_names ? 3 : 0);
        for (size_t i = 2; has_names && i < 5; i++) {
            const Perftools__Profiles__Function *function = file->function[i / 4 + 1];
            assert_true(function->id != 0);
            assert_int_equal(file->location[i]->line[0]->function_id, function->id);
            assert_string_equal(text_of(function->name), i < 4 ? "begin" : "end");
            assert_int_equal(function->system_name, function->name);
            assert_int_equal(function->filename, 0);
        }
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

/* ---- files ---------------------------------------------------------------------------------- */

static const otel_profile *profile;

/* From here on there is a profile of a sample, and an exporter to the directory. */
static void open_directory(void)
{
    add_labelled(0xabc, 1);
    made_sample_begin(&made);
    made_sample_frame(&made, (const void *)(uintptr_t)begin);
    add();
    oteli_profile_builder_name(builder, UINT64_MAX);
    profile = oteli_profile_builder_finish(builder);
    exporter = otel_pprof_file_exporter(directory, OTEL_PPROF_OTEL);
}

static void close_exporter(void)
{
    if (exporter.state != NULL)
        exporter.free(exporter.state);
    exporter.state = NULL;
}

static otel_status export_file(void)
{
    return exporter.export_profile(exporter.state, profile, 1000);
}

/* The names in the directory, hidden ones too, sorted, each with a blank behind it, and this
 * process's id as "*". */
static void assert_listed(const char *expected)
{
    char names[1024] = "";
    char id[16];
    struct dirent **entries;
    const int count = scandir(directory, &entries, NULL, alphasort);
    const size_t length = (size_t)snprintf(id, sizeof id, "-%d-", (int)getpid());
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        const char *at = strstr(name, id);
        if (at != NULL)
            snprintf(strchr(names, '\0'), 300, "%.*s-*-%s ", (int)(at - name), name, at + length);
        else if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            snprintf(strchr(names, '\0'), 300, "%s ", name);
        free(entries[i]);
    }
    free(entries);
    assert_string_equal(names, expected);
}

/* First: the log says a line of one kind once in ten seconds. */
TEST(where_files_cannot_be_is_said_at_once)
{
    char missing[2 * PATH_SIZE];
    char expected[3 * PATH_SIZE];
    snprintf(missing, sizeof missing, "%s/none", directory);
    snprintf(expected, sizeof expected, "profiles cannot be written in %s: %s\n", missing,
             strerror(ENOENT));
    open_directory();
    close_exporter();

    exporter = otel_pprof_file_exporter(missing, OTEL_PPROF_OTEL);
    assert_non_null(exporter.state);
    assert_string_equal(said, expected);
    assert_int_equal(export_file(), OTEL_ERROR_EXPORT_FAILED);
    assert_non_null(strstr(said, "a profile cannot be written in"));
    assert_int_equal(mkdir(missing, 0755), 0);
    assert_int_equal(export_file(), OTEL_OK);
    close_exporter();
    snprintf(expected, sizeof expected, "%s/shop-%d-1.pb.gz", missing, (int)getpid());
    assert_int_equal(unlink(expected), 0);
    assert_int_equal(rmdir(missing), 0);

    exporter = otel_pprof_file_exporter("/dev/null", OTEL_PPROF_OTEL);
    assert_non_null(
        strstr(said, "profiles cannot be written in /dev/null, which is no directory\n"));
    assert_int_equal(export_file(), OTEL_ERROR_EXPORT_FAILED);
    close_exporter();
    exporter = otel_pprof_file_exporter("http://localhost:4318", OTEL_PPROF_OTEL);
    assert_non_null(strstr(said, "a URL goes into OTEL_C_PROFILER_ENDPOINT"));
}

/* And a number that is taken is not taken again. */
TEST(each_profile_is_a_file_that_is_what_encode_gives)
{
    void *bytes;
    size_t length;
    char path[PATH_SIZE + 64];
    char read_back[4096];
    open_directory();
    const otel_profile_exporter other = otel_pprof_file_exporter(directory, OTEL_PPROF_OTEL);

    assert_int_equal(export_file(), OTEL_OK);
    assert_int_equal(other.export_profile(other.state, profile, 1000), OTEL_OK);
    assert_int_equal(export_file(), OTEL_OK);
    exporter.wake(exporter.state);
    other.free(other.state);

    assert_listed("shop-*-1.pb.gz shop-*-2.pb.gz shop-*-3.pb.gz ");
    assert_int_equal(otel_profile_encode_pprof(profile, OTEL_PPROF_OTEL, &bytes, &length), OTEL_OK);
    snprintf(path, sizeof path, "%s/shop-%d-2.pb.gz", directory, (int)getpid());
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, read_back, sizeof read_back), length);
    assert_memory_equal(read_back, bytes, length);
    close(fd);
    free(bytes);
    assert_string_equal(said, "");
    profile = oteli_profile_builder_finish(builder); /* of nothing: no file */
    assert_int_equal(export_file(), OTEL_OK);
    assert_listed("shop-*-1.pb.gz shop-*-2.pb.gz shop-*-3.pb.gz ");
}

TEST(the_service_is_that_of_the_environment_or_the_program)
{
    static const struct {
        const char *name, *attributes, *listed;
    } table[] = {
        {"../a b/\xc3\xa4.c", NULL, "_._a_b__.c-*-1.pb.gz "},
        {"-rf \xf0\x9f\x94\xa5$(x);\n", NULL, "_rf____x___-*-1.pb.gz "},
        {"unknown_service_is_fine", NULL, "unknown_service_is_fine-*-1.pb.gz "},
        {NULL, "a=b, service.name = market ,c=d", "market-*-1.pb.gz "},
        {NULL, "a=b,service.name=", "unit-profiling-*-1.pb.gz "},
        {NULL, NULL, "unit-profiling-*-1.pb.gz "},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        (void)end(NULL);
        (void)begin(NULL);
        unsetenv("OTEL_SERVICE_NAME");
        if (table[i].name != NULL)
            setenv("OTEL_SERVICE_NAME", table[i].name, 1);
        if (table[i].attributes != NULL)
            setenv("OTEL_RESOURCE_ATTRIBUTES", table[i].attributes, 1);
        open_directory();
        assert_int_equal(export_file(), OTEL_OK);
        assert_listed(table[i].listed);
    }
}

/* The last one that looks at names: the SDK that ran last stays the one whose name counts. */
TEST(the_service_is_that_of_the_sdk_whenever_it_starts)
{
    char name[256];
    char expected[512];
    open_directory();
    assert_int_equal(export_file(), OTEL_OK);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';

    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.service_name = "by/code")), OTEL_OK);
    assert_int_equal(export_file(), OTEL_OK);
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    assert_int_equal(export_file(), OTEL_OK);
    const otel_attribute given = otel_attribute_of("service.name", otel_value_string(name));
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.resource = &given, .resource_count = 1)),
                     OTEL_OK);
    assert_int_equal(export_file(), OTEL_OK);
    assert_int_equal(otel_shutdown(60000), OTEL_OK);

    snprintf(expected, sizeof expected,
             "by_code-*-2.pb.gz by_code-*-3.pb.gz %.127s-*-4.pb.gz shop-*-1.pb.gz ", name);
    assert_listed(expected);
}

TEST(of_a_file_that_does_not_fit_nothing_stays)
{
    struct rlimit before;
    open_directory();
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {16, before.rlim_max};
    sigset_t too_large;
    sigset_t mask;
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ); /* as in the profiler's thread, where all are blocked */
    sigprocmask(SIG_BLOCK, &too_large, &mask);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);

    const otel_status status = export_file();

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN); /* forgets the one that waits */
    sigprocmask(SIG_SETMASK, &mask, NULL);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, OTEL_ERROR_EXPORT_FAILED);
    assert_listed("");
}

TEST(without_memory_there_are_no_bytes_and_no_file)
{
    bool all_tried = false;
    open_directory();
    for (size_t nth = 1; !all_tried; nth++) {
        void *bytes = NULL;
        size_t length;
        close_exporter();
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        exporter = otel_pprof_file_exporter(directory, OTEL_PPROF_OTEL);
        otel_status status = exporter.state != NULL ? export_file() : OTEL_ERROR_NO_MEMORY;
        if (status == OTEL_OK)
            status = otel_profile_encode_pprof(profile, OTEL_PPROF_OTEL, &bytes, &length);
        all_tried = !oteli_leaks_failed();
        /* What is given back at the end may as well be kept. */
        assert_true(status == OTEL_OK || (!all_tried && status == OTEL_ERROR_NO_MEMORY));
        if (status == OTEL_OK)
            perftools__profiles__profile__free_unpacked(decode(bytes, length), NULL);
        free(bytes);
        close_exporter();
        oteli_leaks_check();
    }
}

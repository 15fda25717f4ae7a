/* SPDX-License-Identifier: Apache-2.0 */
/* How profiles come into a directory: whole, one by one, under names that nothing else has there. */
#include "profiling/profile_builder.h"
#include "tests/support/leaks.h"
#include "tests/support/resolved_sample.h"
#include "tests/support/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <otel/otel.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 256 };

static struct oteli_profile_builder *builder;
static const otel_profile *profile;
static char directory[PATH_SIZE];
static char logged[1024];

static void take_log(void *state, otel_log_level level, const char *message)
{
    (void)state;
    if (level <= OTEL_LOG_WARN)
        snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s\n", message);
}

static int begin(void **state)
{
    (void)state;
    struct made_sample made;
    logged[0] = '\0';
    otel_log_set_handler(take_log, NULL);
    unsetenv("OTEL_RESOURCE_ATTRIBUTES");
    setenv("OTEL_SERVICE_NAME", "shop", 1);
    snprintf(directory, sizeof directory, "/tmp/otel-c-pprof-XXXXXX");
    assert_non_null(mkdtemp(directory));
    builder = oteli_profile_builder_new(1000, 10);
    made_sample_begin(&made);
    made_sample_frame(&made, (const void *)(uintptr_t)begin);
    assert_true(oteli_profile_builder_add(builder, &made.resolved));
    profile = oteli_profile_builder_finish(builder);
    assert_non_null(profile);
    return 0;
}

/* The names in the directory, hidden ones too, sorted and each with a blank behind it. */
static void list(char *names, size_t size)
{
    struct dirent **entries;
    const int count = scandir(directory, &entries, NULL, alphasort);
    names[0] = '\0';
    for (int i = 0; i < count; i++) {
        const size_t used = strlen(names);
        if (strcmp(entries[i]->d_name, ".") != 0 && strcmp(entries[i]->d_name, "..") != 0)
            snprintf(names + used, size - used, "%s ", entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

static void assert_listed(const char *format, ...)
{
    char expected[1024];
    char names[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(expected, sizeof expected, format, arguments);
    va_end(arguments);
    list(names, sizeof names);
    assert_string_equal(names, expected);
}

static int end(void **state)
{
    (void)state;
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
    oteli_profile_builder_free(builder);
    otel_log_set_handler(NULL, NULL);
    return 0;
}

static otel_status export_to(const otel_profile_exporter *exporter)
{
    return exporter->export_profile(exporter->state, profile, 1000);
}

AROUND_EACH(begin, end);

/* First: the log says a line of one kind once in ten seconds. */
TEST(a_directory_that_is_missing_is_said_at_once)
{
    char missing[2 * PATH_SIZE];
    char expected[3 * PATH_SIZE];
    snprintf(missing, sizeof missing, "%s/none", directory);
    snprintf(expected, sizeof expected, "profiles cannot be written in %s: %s\n", missing,
             strerror(ENOENT));

    otel_profile_exporter exporter = otel_pprof_file_exporter(missing, OTEL_PPROF_OTEL);

    assert_non_null(exporter.state);
    assert_string_equal(logged, expected);
    assert_int_equal(export_to(&exporter), OTEL_ERROR_EXPORT_FAILED);
    assert_non_null(strstr(logged, "a profile cannot be written in"));
    assert_int_equal(mkdir(missing, 0755), 0);
    assert_int_equal(export_to(&exporter), OTEL_OK);
    exporter.free(exporter.state);
    snprintf(expected, sizeof expected, "%s/shop-%d-1.pb.gz", missing, (int)getpid());
    assert_int_equal(unlink(expected), 0);
    assert_int_equal(rmdir(missing), 0);
}

TEST(each_profile_is_a_file_that_is_what_encode_gives)
{
    void *bytes;
    size_t length;
    char path[PATH_SIZE + 64];
    char read_back[4096];
    oteli_leaks_begin();
    otel_profile_exporter exporter = otel_pprof_file_exporter(directory, OTEL_PPROF_OTEL);
    assert_non_null(exporter.state);

    assert_int_equal(export_to(&exporter), OTEL_OK);
    assert_int_equal(export_to(&exporter), OTEL_OK);
    exporter.wake(exporter.state);
    exporter.free(exporter.state);

    const int id = getpid();
    assert_listed("shop-%d-1.pb.gz shop-%d-2.pb.gz ", id, id);
    assert_int_equal(otel_profile_encode_pprof(profile, OTEL_PPROF_OTEL, &bytes, &length), OTEL_OK);
    snprintf(path, sizeof path, "%s/shop-%d-2.pb.gz", directory, id);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, read_back, sizeof read_back), length);
    assert_memory_equal(read_back, bytes, length);
    close(fd);
    free(bytes);
    assert_string_equal(logged, "");
    oteli_leaks_check();
}

TEST(a_number_that_is_taken_is_not_taken_again)
{
    otel_profile_exporter first = otel_pprof_file_exporter(directory, OTEL_PPROF_OTEL);
    otel_profile_exporter second = otel_pprof_file_exporter(directory, OTEL_PPROF_OTEL);

    assert_int_equal(export_to(&first), OTEL_OK);
    assert_int_equal(export_to(&second), OTEL_OK);
    assert_int_equal(export_to(&first), OTEL_OK);

    const int id = getpid();
    assert_listed("shop-%d-1.pb.gz shop-%d-2.pb.gz shop-%d-3.pb.gz ", id, id, id);
    first.free(first.state);
    second.free(second.state);
}

TEST(a_profile_of_nothing_is_no_file)
{
    otel_profile_exporter exporter = otel_pprof_file_exporter(directory, OTEL_PPROF_OTEL);
    profile = oteli_profile_builder_finish(builder);
    assert_int_equal(export_to(&exporter), OTEL_OK);
    assert_listed("%s", "");
    exporter.free(exporter.state);
}

static void assert_service(const char *expected)
{
    otel_profile_exporter exporter = otel_pprof_file_exporter(directory, OTEL_PPROF_OTEL);
    char path[2 * PATH_SIZE];
    assert_int_equal(export_to(&exporter), OTEL_OK);
    assert_listed("%s-%d-1.pb.gz ", expected, (int)getpid());
    snprintf(path, sizeof path, "%s/%s-%d-1.pb.gz", directory, expected, (int)getpid());
    assert_int_equal(unlink(path), 0);
    exporter.free(exporter.state);
}

TEST(the_service_is_that_of_the_environment_or_the_program)
{
    setenv("OTEL_SERVICE_NAME", "../a b/\xc3\xa4.c", 1);
    assert_service("_._a_b__.c");
    setenv("OTEL_SERVICE_NAME", "-rf \xf0\x9f\x94\xa5$(x);\n", 1);
    assert_service("_rf____x___");
    setenv("OTEL_SERVICE_NAME", "unknown_service_is_fine", 1);
    assert_service("unknown_service_is_fine");
    unsetenv("OTEL_SERVICE_NAME");
    setenv("OTEL_RESOURCE_ATTRIBUTES", "a=b, service.name = market ,c=d", 1);
    assert_service("market");
    setenv("OTEL_RESOURCE_ATTRIBUTES", "a=b,service.name=", 1);
    assert_service("unit-profiling");
    unsetenv("OTEL_RESOURCE_ATTRIBUTES");
    assert_service("unit-profiling");
}

/* The last one that looks at names: the SDK that ran last stays the one whose name counts. */
TEST(the_service_is_that_of_the_sdk_whenever_it_starts)
{
    char name[256];
    const int id = getpid();
    otel_profile_exporter exporter = otel_pprof_file_exporter(directory, OTEL_PPROF_OTEL);
    assert_int_equal(export_to(&exporter), OTEL_OK);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';

    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.service_name = "by/code")), OTEL_OK);
    assert_int_equal(export_to(&exporter), OTEL_OK);
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    assert_int_equal(export_to(&exporter), OTEL_OK);
    const otel_attribute given = {"service.name", otel_value_string(name)};
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.resource = &given, .resource_count = 1)),
                     OTEL_OK);
    assert_int_equal(export_to(&exporter), OTEL_OK);
    assert_int_equal(otel_shutdown(60000), OTEL_OK);

    assert_listed("by_code-%d-2.pb.gz by_code-%d-3.pb.gz %.127s-%d-4.pb.gz shop-%d-1.pb.gz ", id,
                  id, name, id, id);
    exporter.free(exporter.state);
}

TEST(what_is_no_directory_is_said_at_once)
{
    otel_profile_exporter exporter = otel_pprof_file_exporter("/dev/null", OTEL_PPROF_OTEL);
    assert_string_equal(logged, "profiles cannot be written in /dev/null, which is no directory\n");
    assert_int_equal(export_to(&exporter), OTEL_ERROR_EXPORT_FAILED);
    exporter.free(exporter.state);
}

TEST(where_a_url_belongs_is_said)
{
    otel_profile_exporter exporter =
        otel_pprof_file_exporter("http://localhost:4318", OTEL_PPROF_OTEL);
    assert_non_null(strstr(logged, "a URL goes into OTEL_C_PROFILER_ENDPOINT"));
    exporter.free(exporter.state);
}

TEST(of_a_file_that_does_not_fit_nothing_stays)
{
    struct rlimit before;
    otel_profile_exporter exporter = otel_pprof_file_exporter(directory, OTEL_PPROF_OTEL);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {16, before.rlim_max};
    sigset_t too_large;
    sigset_t mask;
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ); /* as in the profiler's thread, where all are blocked */
    sigprocmask(SIG_BLOCK, &too_large, &mask);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);

    const otel_status status = export_to(&exporter);

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN); /* forgets the one that waits */
    sigprocmask(SIG_SETMASK, &mask, NULL);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, OTEL_ERROR_EXPORT_FAILED);
    assert_listed("%s", "");
    exporter.free(exporter.state);
}

TEST(without_memory_there_is_no_file)
{
    bool all_tried = false;
    for (size_t nth = 1; !all_tried; nth++) {
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        otel_profile_exporter exporter = otel_pprof_file_exporter(directory, OTEL_PPROF_OTEL);
        const otel_status status =
            exporter.state != NULL ? export_to(&exporter) : OTEL_ERROR_NO_MEMORY;
        all_tried = !oteli_leaks_failed();
        oteli_leaks_fail_at(0);
        assert_true(status == OTEL_OK || (!all_tried && status == OTEL_ERROR_NO_MEMORY));
        if (exporter.state != NULL)
            exporter.free(exporter.state);
        oteli_leaks_check();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/config_loaded_test.c - a program that knows nothing of otel-config, which
 * otel_start loads because OTEL_CONFIG_FILE is set. */
#include <otel/otel.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/otel-loaded-XXXXXX.yaml";
static char error[512];

static void note(void *state, otel_log_level level, const char *message)
{
    (void)state;
    if (level == OTEL_LOG_ERROR && error[0] == '\0') /* the first says why */
        snprintf(error, sizeof error, "%s", message);
}

static void write_file(const char *exporter)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file,
            "file_format: \"1.1\"\ntracer_provider:\n  processors:\n"
            "    - batch: {exporter: {%s: }}\n",
            exporter);
    fclose(file);
    setenv("OTEL_CONFIG_FILE", path, 1);
}

/* spec: D3 configuration/sdk-environment-variables.md#declarative-configuration MUST stable */
static void test_D3_otel_start_loads_the_library_for_files(void **state)
{
    (void)state;
    write_file("console");

    assert_int_equal(otel_start(NULL), OTEL_OK);
    const otel_span span = otel_span_enter(otel_tracer_get("test", NULL), "a", NULL);
    assert_true(otel_span_is_recording(span));
    otel_span_end(span);

    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    assert_string_equal(error, "");
}

static void test_its_errors_are_those_of_the_file(void **state)
{
    (void)state;
    char expected[256];
    write_file("konsole");

    assert_int_equal(otel_start(NULL), OTEL_ERROR_INVALID_ARGUMENT);

    snprintf(expected, sizeof expected,
             "%s:4:26: tracer_provider.processors[0].batch.exporter.konsole is no span exporter "
             "that this build knows",
             path);
    assert_string_equal(error, expected);
    assert_int_equal(otel_shutdown(0), OTEL_ERROR_NOT_STARTED);
}

static int begin(void **state)
{
    (void)state;
    const int fd = mkstemps(path, 5);
    otel_log_set_handler(note, NULL);
    return fd < 0 || close(fd) != 0;
}

static int end(void **state)
{
    (void)state;
    otel_log_set_handler(NULL, NULL);
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_D3_otel_start_loads_the_library_for_files),
        cmocka_unit_test(test_its_errors_are_those_of_the_file),
    };
    return cmocka_run_group_tests_name("config_loaded", tests, begin, end);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a file of settings is said with its place, and with what is needed to mend it;
 * what is wrong with an option of the program, by the option's name. */
#include "blackbox.h"
#include <otel/config.h>
#include <stdlib.h>
#include <unistd.h>

#define HEAD "file_format: \"1.1\"\n"
#define EXPORTER(exporter) \
    HEAD "tracer_provider: {processors: [{batch: {exporter: {" exporter "}}}]}\n"
#define CONSOLE EXPORTER("console: ")

static char path[64];
static char said[8192];

static void listen(void *unused, otel_log_level level, const char *message)
{
    (void)unused;
    const size_t length = strlen(said);
    if (level <= OTEL_LOG_WARN)
        snprintf(said + length, sizeof said - length, "%s\n", message);
}

static int make_file(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/yaml_test.%ld.yaml", (long)getpid());
    otel_log_set_handler(listen, NULL);
    return 0;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    said[0] = '\0';
}

static otel_status check(const char *text)
{
    write_file(text);
    return otel_check_file(path);
}

static void assert_said(const char *text)
{
    if (strstr(said, text) == NULL)
        fail_msg("not said: %s, but: %s", text, said);
}

static void a_path_that_cannot_be_opened_is_named_with_its_reason(void **state)
{
    (void)state;
    write_file(EXPORTER("otlp_file/development: {output_stream: \"file:///nowhere/spans.jsonl\"}"));
    assert_int_equal(otel_start_from_file(path, NULL), OTEL_ERROR_SYSTEM);
    assert_said(
        ":2:52: this exporter cannot be made: /nowhere/spans.jsonl: No such file or directory");
}

static void every_unknown_propagator_is_named(void **state)
{
    (void)state;
    assert_int_equal(
        check(CONSOLE "propagator: {composite_list: \"b3,xray,tracecontext,ottrace\"}\n"),
        OTEL_ERROR_INVALID_ARGUMENT);
    assert_said(":3:30: propagator.composite_list has \"xray\", which is not in this build");
    assert_said(":3:30: propagator.composite_list has \"ottrace\", which is not in this build");

    assert_int_equal(check(CONSOLE "propagator: {composite_list: \"b3, none ,tracecontext,\"}\n"),
                     OTEL_OK);
    assert_string_equal(said, "");
}

static void a_list_of_headers_with_another_entry_is_a_fault_that_shows_no_value(void **state)
{
    (void)state;
    static const char *const bad[] = {"k=v,secret", "k=v,a b=secret", "secret", "k=secret%0A"};
    char text[256];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(text, sizeof text, EXPORTER("otlp_http: {headers_list: \"%s\"}"), bad[i]);
        assert_int_equal(check(text), OTEL_ERROR_INVALID_ARGUMENT);
        assert_said("otlp_http.headers_list has an entry that is not name=value");
        assert_null(strstr(said, "secret"));
    }
    assert_int_equal(check(EXPORTER("otlp_grpc: {headers_list: \"k=v,l\"}")),
                     OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(check(EXPORTER("otlp_http: {headers_list: \"k=v, l=a%20b,,m=\"}")), OTEL_OK);
    assert_int_equal(check(EXPORTER("otlp_http: {headers_list: }")), OTEL_OK);
}

static void a_batch_above_its_queue_is_said_once(void **state)
{
    (void)state;
    static const char two_processors[] =
        HEAD "tracer_provider:\n"
             "  processors:\n"
             "    - batch: {max_queue_size: 100, exporter: {console: }}\n"
             "    - batch: {max_queue_size: 100, exporter: {console: }}\n";
    write_file(two_processors);
    assert_int_equal(otel_start_from_file(path, NULL), OTEL_OK);
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    static const char line[] =
        "a batch of 512 spans does not fit in a queue of 100; using batches of 100";
    assert_said(line);
    assert_null(strstr(strstr(said, line) + 1, line));
    assert_null(strstr(said, "OTEL_BSP_"));
}

static void entities_of_the_program_are_not_called_by_the_variable(void **state)
{
    (void)state;
    said[0] = '\0';
    assert_int_equal(
        otel_start_with(OTEL_SDK_OPTIONS(.entities = "thing{", .traces_exporter = "none")),
        OTEL_OK);
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    assert_said("otel_sdk_options.entities: \"thing{\" is malformed");
    assert_null(strstr(said, "OTEL_ENTITIES"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_that_cannot_be_opened_is_named_with_its_reason),
        cmocka_unit_test(every_unknown_propagator_is_named),
        cmocka_unit_test(a_list_of_headers_with_another_entry_is_a_fault_that_shows_no_value),
        cmocka_unit_test(a_batch_above_its_queue_is_said_once),
        cmocka_unit_test(entities_of_the_program_are_not_called_by_the_variable),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/resource_test.c - specification of sdk/resource.h. */
#include "sdk/resource.h"

#include "tests/support/leaks.h"

#include <otel/otel.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct oteli_config config;
static size_t warnings;

static void count_warning(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)message;
    warnings += level == OTEL_LOG_WARN;
}

static int begin(void **state)
{
    (void)state;
    memset(&config, 0, sizeof config);
    warnings = 0;
    otel_log_set_handler(count_warning, NULL);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    oteli_leaks_check();
    otel_log_set_handler(NULL, NULL);
    return 0;
}

/* The value of a key as text; "-" if it is not there, "!" if it is there twice. */
static const char *value_of(const struct oteli_resource *resource, const char *key)
{
    static char text[256];
    otel_slice rest = {resource->otlp, resource->otlp_length};
    otel_attribute_view attribute;
    strcpy(text, "-");
    while (otel_attribute_next(&rest, OTEL_FIELD_RESOURCE_ATTRIBUTE, &attribute)) {
        if (attribute.key.length != strlen(key) ||
            memcmp(attribute.key.data, key, strlen(key)) != 0)
            continue;
        if (strcmp(text, "-") != 0)
            return "!";
        if (attribute.value.type == OTEL_VALUE_INT)
            snprintf(text, sizeof text, "int %lld", (long long)attribute.value.integer);
        else
            snprintf(text, sizeof text, "%.*s", (int)attribute.value.slice.length,
                     attribute.value.slice.data);
    }
    return text;
}

static struct oteli_resource make(const char *variable, const char *service_name,
                                  const otel_attribute *attributes, size_t count)
{
    struct oteli_resource resource;
    config.resource_attributes = (char *)(uintptr_t)variable;
    config.service_name = (char *)(uintptr_t)service_name;
    assert_int_equal(oteli_resource_init(&resource, &config, attributes, count), OTEL_OK);
    return resource;
}

static void test_the_sdk_and_the_process_are_always_there(void **state)
{
    (void)state;
    char pid[32];
    snprintf(pid, sizeof pid, "int %d", (int)getpid());
    struct oteli_resource resource = make(NULL, NULL, NULL, 0);

    assert_string_equal(value_of(&resource, "telemetry.sdk.name"), "otel-c");
    assert_string_equal(value_of(&resource, "telemetry.sdk.language"), "c");
    assert_string_equal(value_of(&resource, "telemetry.sdk.version"), OTEL_VERSION);
    assert_string_equal(value_of(&resource, "process.pid"), pid);
    assert_string_equal(value_of(&resource, "process.executable.name"), "resource_test");
    oteli_resource_fini(&resource);
}

static void test_the_service_name_has_an_order(void **state)
{
    (void)state;
    const otel_attribute code = otel_attribute_of("service.name", otel_value_string("code"));
    static const struct {
        const char *variable;
        const char *service_name;
        size_t count;
        const char *expected;
    } table[] = {
        {NULL, NULL, 0, "unknown_service:resource_test"}, {"service.name=list", NULL, 0, "list"},
        {"service.name=list", "own", 0, "own"},           {NULL, "own", 0, "own"},
        {"service.name=list", "own", 1, "code"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct oteli_resource resource =
            make(table[i].variable, table[i].service_name, &code, table[i].count);
        assert_string_equal(value_of(&resource, "service.name"), table[i].expected);
        oteli_resource_fini(&resource);
    }
}

static void test_members_are_trimmed_and_percent_decoded(void **state)
{
    (void)state;
    struct oteli_resource resource =
        make(" a=1, b = x%20y%2Cz ,c=%C3%A4,d=,e%3Df=g=h", NULL, NULL, 0);

    assert_string_equal(value_of(&resource, "a"), "1");
    assert_string_equal(value_of(&resource, "b"), "x y,z");
    assert_string_equal(value_of(&resource, "c"), "\xc3\xa4");
    assert_string_equal(value_of(&resource, "d"), "");
    assert_string_equal(value_of(&resource, "e=f"), "g=h");
    assert_int_equal(warnings, 0);
    oteli_resource_fini(&resource);
}

static void test_one_malformed_member_spoils_the_variable_with_one_warning(void **state)
{
    (void)state;
    static const char *const malformed[] = {"a=1,b",     "a=1,=2",    "a=1,b=%", "a=1,b=%4",
                                            "a=1,b=%zz", "a=1,%zz=b", "b=%0,a=1"};
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        warnings = 0;
        struct oteli_resource resource = make(malformed[i], "own", NULL, 0);
        assert_string_equal(value_of(&resource, "a"), "-");
        assert_string_equal(value_of(&resource, "b"), "-");
        assert_string_equal(value_of(&resource, "service.name"), "own");
        assert_int_equal(warnings, 1);
        oteli_resource_fini(&resource);
    }
}

static void test_code_beats_everything_and_keeps_its_types(void **state)
{
    (void)state;
    const otel_attribute code[] = {
        otel_attribute_of("process.pid", otel_value_int(7)),
        otel_attribute_of("a", otel_value_string("first")),
        otel_attribute_of("a", otel_value_string("last")),
        otel_attribute_of("telemetry.sdk.name", otel_value_string("mine")),
    };
    struct oteli_resource resource = make("a=variable,process.pid=x", NULL, code, 4);

    assert_string_equal(value_of(&resource, "process.pid"), "int 7");
    assert_string_equal(value_of(&resource, "a"), "last");
    assert_string_equal(value_of(&resource, "telemetry.sdk.name"), "mine");
    oteli_resource_fini(&resource);
}

static void test_a_variable_of_too_many_members_is_a_mistake(void **state)
{
    (void)state;
    enum { MEMBERS = 1100 };
    char *variable = calloc(MEMBERS, 8);
    assert_non_null(variable);
    for (unsigned i = 0; i < MEMBERS; i++)
        sprintf(variable + strlen(variable), "k%u=1,", i);
    struct oteli_resource resource = make(variable, NULL, NULL, 0);

    assert_string_equal(value_of(&resource, "k0"), "-");
    assert_int_equal(warnings, 1);
    oteli_resource_fini(&resource);
    free(variable);
}

static void test_without_memory_there_is_an_error_and_no_leak(void **state)
{
    (void)state;
    config.resource_attributes = (char *)(uintptr_t) "a=1,b=2";
    for (size_t nth = 1;; nth++) {
        struct oteli_resource resource;
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        const otel_status status = oteli_resource_init(&resource, &config, NULL, 0);
        const bool has_failed = oteli_leaks_failed();
        assert_int_equal(status, has_failed ? OTEL_ERROR_NO_MEMORY : OTEL_OK);
        oteli_resource_fini(&resource);
        oteli_leaks_check();
        if (!has_failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, begin, end)
        TEST(the_sdk_and_the_process_are_always_there),
        TEST(the_service_name_has_an_order),
        TEST(members_are_trimmed_and_percent_decoded),
        TEST(one_malformed_member_spoils_the_variable_with_one_warning),
        TEST(code_beats_everything_and_keeps_its_types),
        TEST(a_variable_of_too_many_members_is_a_mistake),
        TEST(without_memory_there_is_an_error_and_no_leak),
#undef TEST
    };
    return cmocka_run_group_tests_name("resource", tests, NULL, NULL);
}

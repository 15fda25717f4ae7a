/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/resource_test.c - specification of sdk/resource.h. */
#include "sdk/resource.h"
#include "tests/support/unit.h"

#include "tests/support/warnings.h"

#include <otel/otel.h>
#include <otel/semconv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static struct oteli_config config;
static int begin(void **state)
{
    memset(&config, 0, sizeof config);
    return warnings_begin(state);
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

AROUND_EACH(begin, warnings_end);

/* spec: R2 resource/sdk.md#sdk-provided-resource-attributes MUST stable */
TEST(R2_the_sdk_and_a_service_name_are_always_there)
{
    struct oteli_resource resource = make(NULL, NULL, NULL, 0);

    assert_string_equal(value_of(&resource, "service.name"), "unknown_service:unit-sdk");
    assert_string_equal(value_of(&resource, "telemetry.sdk.name"), "otel-c");
    assert_string_equal(value_of(&resource, "telemetry.sdk.language"), "c");
    assert_string_equal(value_of(&resource, "telemetry.sdk.version"), OTEL_VERSION);
    assert_string_equal(value_of(&resource, "process.pid"), "-");
    assert_null(resource.schema_url);
    oteli_resource_fini(&resource);
}

static char *const all_detectors =
    (char *)(uintptr_t) "process,process_command,process_owner,host,os,container,service";

/* spec: R6 resource/sdk.md#detecting-resource-information-from-the-environment MUST stable */
TEST(R6_detectors_add_what_they_find_and_their_schema)
{
    char pid[32];
    struct utsname names;
    snprintf(pid, sizeof pid, "int %d", (int)getpid());
    assert_int_equal(uname(&names), 0);
    config.resource_detectors = all_detectors;
    struct oteli_resource resource = make(NULL, NULL, NULL, 0);

    assert_string_equal(value_of(&resource, "process.pid"), pid);
    assert_string_equal(value_of(&resource, "process.executable.name"), "unit-sdk");
    assert_non_null(strstr(value_of(&resource, "process.executable.path"), "/unit-sdk"));
    assert_string_equal(value_of(&resource, "host.name"), names.nodename);
    assert_string_equal(value_of(&resource, "host.arch"), oteli_host_arch(names.machine));
    assert_string_equal(value_of(&resource, "os.type"), "linux");
    assert_int_equal(strlen(value_of(&resource, "service.instance.id")), 36);
    assert_non_null(strstr(value_of(&resource, "process.command"), "unit-sdk"));
    assert_string_equal(resource.schema_url, OTEL_SEMCONV_SCHEMA_URL);
    assert_int_equal(warnings, 0);
    oteli_resource_fini(&resource);
}

/* spec: R6 resource/sdk.md#resource-detector-name SHOULD development */
TEST(R6_each_detector_has_a_name_and_only_those_named_run)
{
    static const struct {
        const char *detectors;
        const char *there;
        const char *not_there;
    } table[] = {
        {"process", "process.pid", "process.command"},
        {"os", "os.type", "host.name"},
        {"host", "os.type", "process.pid"},
        {"service", "service.instance.id", "os.type"},
        {"process_command", "process.command", "process.pid"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        config.resource_detectors = (char *)(uintptr_t)table[i].detectors;
        struct oteli_resource resource = make(NULL, NULL, NULL, 0);
        assert_string_not_equal(value_of(&resource, table[i].there), "-");
        assert_string_equal(value_of(&resource, table[i].not_there), "-");
        oteli_resource_fini(&resource);
    }
    config.resource_detectors = (char *)(uintptr_t) "none";
    struct oteli_resource resource = make(NULL, NULL, NULL, 0);
    assert_null(resource.schema_url);
    oteli_resource_fini(&resource);
}

/* spec: R1 resource/sdk.md#create MUST stable */
TEST(R1_attributes_and_schema_url_of_code_are_the_resource)
{
    const otel_attribute code[] = {
        otel_attribute_of("deployment.environment.name", otel_value_string("test")),
        otel_attribute_of(NULL, otel_value_string("no key")),
        otel_attribute_of("", otel_value_string("no key")),
    };
    config.resource_schema_url = "https://example.com/schemas/1";
    struct oteli_resource resource = make(NULL, NULL, code, 3);

    assert_string_equal(value_of(&resource, "deployment.environment.name"), "test");
    assert_string_equal(value_of(&resource, ""), "-");
    assert_string_equal(resource.schema_url, "https://example.com/schemas/1");
    oteli_resource_fini(&resource);
}

/* spec: R4 resource/sdk.md#merge MUST stable */
TEST(R4_two_schemas_are_a_warning_and_no_url)
{
    config.resource_detectors = (char *)(uintptr_t) "process";
    config.resource_schema_url = "https://example.com/schemas/1";
    struct oteli_resource resource = make(NULL, NULL, NULL, 0);

    assert_null(resource.schema_url);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(last_warning, "https://example.com/schemas/1"));
    oteli_resource_fini(&resource);
    config.resource_schema_url = OTEL_SEMCONV_SCHEMA_URL;
    resource = make(NULL, NULL, NULL, 0);
    assert_string_equal(resource.schema_url, OTEL_SEMCONV_SCHEMA_URL);
    assert_int_equal(warnings, 1);
    oteli_resource_fini(&resource);
}

TEST(a_schema_url_that_is_no_utf8_is_mended)
{
    config.resource_schema_url = "a\xff";
    struct oteli_resource resource = make(NULL, NULL, NULL, 0);

    assert_string_equal(resource.schema_url, "a\xef\xbf\xbd");
    oteli_resource_fini(&resource);
}

/* spec: L8 common/README.md#attribute-limits MUST stable */
TEST(L8_limits_do_not_concern_resources)
{
    enum { MANY = 300, LONG = 5000 };
    static char keys[MANY][8];
    static char text[LONG + 1];
    otel_attribute code[MANY];
    memset(text, 'x', LONG);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(keys[i], sizeof keys[i], "k%u", i);
        code[i] = otel_attribute_of(keys[i], otel_value_string(text));
    }
    config.span_attribute_count_limit = 1;
    config.attribute_count_limit = 1;
    config.span_attribute_value_length_limit = 1;
    config.attribute_value_length_limit = 1;
    struct oteli_resource resource = make(NULL, NULL, code, MANY);

    otel_slice rest = {resource.otlp, resource.otlp_length};
    otel_attribute_view attribute;
    size_t whole = 0;
    while (otel_attribute_next(&rest, OTEL_FIELD_RESOURCE_ATTRIBUTE, &attribute))
        whole += attribute.key.data[0] == 'k' && attribute.value.slice.length == LONG;
    assert_int_equal(whole, MANY);
    oteli_resource_fini(&resource);
}

/* spec: R7 entities/entity-propagation.md#specifying-entity-information-via-an-environment-variable MUST development */
TEST(R7_entities_are_between_detectors_and_what_is_said)
{
    config.resource_detectors = (char *)(uintptr_t) "host";
    config.entities = (char *)(uintptr_t) "host{host.id=7}[host.name=entity];"
                                          "service{service.name=entity}[service.version=1]";
    struct oteli_resource resource = make("a=b", NULL, NULL, 0);
    assert_string_equal(value_of(&resource, "host.name"), "entity");
    assert_string_equal(value_of(&resource, "service.name"), "entity");
    assert_int_equal(warnings, 0);
    oteli_resource_fini(&resource);

    resource = make("service.name=said", NULL, NULL, 0);
    assert_string_equal(value_of(&resource, "service.name"), "said");
    assert_string_equal(value_of(&resource, "service.version"), "-");
    assert_int_equal(warnings, 1);
    oteli_resource_fini(&resource);
}

/* Another process is another instance, but only where nobody has said what it is. */
TEST(a_renewed_resource_has_an_instance_of_its_own)
{
    char parents[64];
    struct oteli_resource renewed;
    config.entities = (char *)(uintptr_t) "host{host.id=7}";
    config.resource_detectors = all_detectors;
    struct oteli_resource resource = make("a=b", NULL, NULL, 0);
    snprintf(parents, sizeof parents, "%s", value_of(&resource, "service.instance.id"));

    assert_int_equal(oteli_resource_renew(&renewed, &resource), OTEL_OK);

    assert_int_equal(strlen(value_of(&renewed, "service.instance.id")), 36);
    assert_string_not_equal(value_of(&renewed, "service.instance.id"), parents);
    assert_string_equal(value_of(&renewed, "service.instance.id"), renewed.instance);
    assert_string_equal(value_of(&renewed, "a"), "b");
    assert_string_equal(renewed.schema_url, resource.schema_url);
    assert_int_equal(renewed.otlp_length, resource.otlp_length); /* entities and all */
    oteli_resource_fini(&renewed);
    oteli_resource_fini(&resource);

    resource = make("service.instance.id=mine", NULL, NULL, 0);
    assert_int_equal(oteli_resource_renew(&renewed, &resource), OTEL_OK);
    assert_string_equal(value_of(&renewed, "service.instance.id"), "mine");
    oteli_resource_fini(&renewed);
    oteli_resource_fini(&resource);
}

/* spec: R5 resource/sdk.md#specifying-resource-information-via-an-environment-variable MUST stable */
TEST(R5_the_service_name_has_an_order)
{
    const otel_attribute code = otel_attribute_of("service.name", otel_value_string("code"));
    static const struct {
        const char *variable;
        const char *service_name;
        size_t count;
        const char *expected;
    } table[] = {
        {NULL, NULL, 0, "unknown_service:unit-sdk"}, {"service.name=list", NULL, 0, "list"},
        {"service.name=list", "own", 0, "own"},      {NULL, "own", 0, "own"},
        {"service.name=list", "own", 1, "code"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct oteli_resource resource =
            make(table[i].variable, table[i].service_name, &code, table[i].count);
        assert_string_equal(value_of(&resource, "service.name"), table[i].expected);
        oteli_resource_fini(&resource);
    }
}

TEST(members_are_trimmed_and_percent_decoded)
{
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

/* spec: R5 resource/sdk.md#specifying-resource-information-via-an-environment-variable SHOULD stable */
TEST(R5_one_malformed_member_spoils_the_variable_with_one_warning)
{
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

/* spec: R3 resource/sdk.md#merge MUST stable */
TEST(R3_code_beats_everything_and_keeps_its_types)
{
    const otel_attribute code[] = {
        otel_attribute_of("process.pid", otel_value_int(7)),
        otel_attribute_of("b", otel_value_string("")),
        otel_attribute_of("c", otel_value_empty()),
        otel_attribute_of("a", otel_value_string("first")),
        otel_attribute_of("a", otel_value_string("last")),
        otel_attribute_of("telemetry.sdk.name", otel_value_string("mine")),
    };
    struct oteli_resource resource =
        make("a=variable,b=variable,c=variable,process.pid=x", NULL, code, 6);

    assert_string_equal(value_of(&resource, "process.pid"), "int 7");
    assert_string_equal(value_of(&resource, "a"), "last");
    assert_string_equal(value_of(&resource, "b"), "");
    assert_string_equal(value_of(&resource, "c"), "");
    assert_string_equal(value_of(&resource, "telemetry.sdk.name"), "mine");
    oteli_resource_fini(&resource);
}

TEST(a_variable_of_too_many_members_is_a_mistake)
{
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

TEST(without_memory_there_is_an_error_and_no_leak)
{
    config.resource_attributes = (char *)(uintptr_t) "a=1,b=2";
    config.resource_detectors = all_detectors;
    config.entities = (char *)(uintptr_t) "host{host.id=7}[host.name=entity]@a:b";
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

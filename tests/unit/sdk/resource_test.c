/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/resource_test.c - specification of sdk/resource/resource.h, of how resources are
 * merged (sdk/resource/resource_builder.h), and of who is being traced for those who say it beside
 * spans (sdk/lifecycle/resource_snapshot.h). */
#include "sdk/lifecycle/resource_snapshot.h"
#include "sdk/resource/resource.h"
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
static struct oteli_resource resource; /* of `make`, until the next */

static int begin(void **state)
{
    memset(&config, 0, sizeof config);
    memset(&resource, 0, sizeof resource);
    return warnings_begin(state);
}

static int end(void **state)
{
    oteli_resource_fini(&resource);
    return warnings_end(state);
}

/* The value of a key as text; "-" if it is not there, "!" if it is there twice. */
static const char *value_in(const void *otlp, size_t length, const char *key)
{
    static char text[256];
    otel_slice rest = {otlp, length};
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

static const char *value_of(const char *key)
{
    return value_in(resource.otlp, resource.otlp_length, key);
}

/* Lines of key, blank, value. */
static void assert_values(const char *lines)
{
    while (*lines != '\0') {
        char key[64], value[128];
        const int length = (int)strcspn(lines, "\n");
        const int key_length = (int)strcspn(lines, " ");
        snprintf(key, sizeof key, "%.*s", key_length, lines);
        snprintf(value, sizeof value, "%.*s", length - key_length - 1, lines + key_length + 1);
        if (strcmp(value_of(key), value) != 0)
            fail_msg("%s is \"%s\", not \"%s\"", key, value_of(key), value);
        lines += length + (lines[length] == '\n');
    }
}

static void make(const char *variable, const char *service_name, const otel_attribute *attributes,
                 size_t count)
{
    oteli_resource_fini(&resource);
    config.resource_attributes = (char *)(uintptr_t)variable;
    config.service_name = (char *)(uintptr_t)service_name;
    assert_int_equal(oteli_resource_init(&resource, &config, attributes, count), OTEL_OK);
}

static void make_with_detectors(const char *detectors)
{
    config.resource_detectors = (char *)(uintptr_t)detectors;
    make(NULL, NULL, NULL, 0);
}

AROUND_EACH(begin, end);

/* ---- sdk/lifecycle/resource_snapshot.h
 * -------------------------------------------------------------------------------- */

static void assert_service(const struct oteli_resource_snapshot *identity, const char *expected)
{
    assert_string_equal(value_in(identity->resource, identity->resource_length, "service.name"),
                        expected);
}

static void start_as(const char *service)
{
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.service_name = service)), OTEL_OK);
}

/* The first of them: no SDK has been started. */
TEST_WITH(NULL, NULL, without_an_sdk_it_is_what_the_environment_says)
{
    struct oteli_resource_snapshot identity = {0};
    setenv("OTEL_SERVICE_NAME", "by-environment", 1);

    assert_int_equal(oteli_resource_snapshot_renew(&identity), OTEL_OK);

    assert_service(&identity, "by-environment");
    assert_int_equal(identity.generation, 0);
    const char *first = identity.resource;
    setenv("OTEL_SERVICE_NAME", "later", 1);
    assert_int_equal(oteli_resource_snapshot_renew(&identity), OTEL_OK);
    assert_ptr_equal(identity.resource, first);
    oteli_resource_snapshot_fini(&identity);
}

TEST_WITH(NULL, NULL, it_follows_the_sdk_that_runs_and_stays_when_that_has_stopped_or_memory_has)
{
    struct oteli_resource_snapshot identity = {0};
    start_as("first");
    assert_int_equal(oteli_resource_snapshot_renew(&identity), OTEL_OK);
    assert_service(&identity, "first");
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    assert_int_equal(oteli_resource_snapshot_renew(&identity), OTEL_OK);
    assert_service(&identity, "first");
    start_as("second");
    oteli_leaks_begin();
    oteli_leaks_fail_at(1);
    const otel_status status = oteli_resource_snapshot_renew(&identity);
    assert_true(oteli_leaks_failed());
    oteli_leaks_check();
    assert_int_equal(status, OTEL_ERROR_NO_MEMORY);
    assert_service(&identity, "first");

    assert_int_equal(oteli_resource_snapshot_renew(&identity), OTEL_OK);

    assert_service(&identity, "second");
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    oteli_resource_snapshot_fini(&identity);
}

/* ---- sdk/resource/resource.h
 * -------------------------------------------------------------------------------- */

/* spec: R2 resource/sdk.md#sdk-provided-resource-attributes MUST stable */
TEST(R2_the_sdk_and_a_service_name_are_always_there)
{
    make(NULL, NULL, NULL, 0);

    assert_values("service.name unknown_service:unit-sdk\n"
                  "telemetry.sdk.name otel-c\n"
                  "telemetry.sdk.language c\n");
    assert_string_equal(value_of("telemetry.sdk.version"), OTEL_VERSION);
    assert_string_equal(value_of("process.pid"), "-");
    assert_null(resource.schema_url);
}

static const char all_detectors[] =
    "process,process_command,process_owner,host,os,container,service";

/* spec: R6 resource/sdk.md#detecting-resource-information-from-the-environment MUST stable */
TEST(R6_detectors_add_what_they_find_and_their_schema)
{
    char pid[32];
    struct utsname names;
    snprintf(pid, sizeof pid, "int %d", (int)getpid());
    assert_int_equal(uname(&names), 0);
    make_with_detectors(all_detectors);

    assert_string_equal(value_of("process.pid"), pid);
    assert_string_equal(value_of("process.executable.name"), "unit-sdk");
    assert_non_null(strstr(value_of("process.executable.path"), "/unit-sdk"));
    assert_string_equal(value_of("host.name"), names.nodename);
    assert_string_equal(value_of("host.arch"), oteli_host_arch(names.machine));
    assert_string_equal(value_of("os.type"), "linux");
    assert_int_equal(strlen(value_of("service.instance.id")), 36);
    assert_non_null(strstr(value_of("process.command"), "unit-sdk"));
    assert_string_equal(resource.schema_url, OTEL_SEMCONV_SCHEMA_URL);
    assert_int_equal(warnings, 0);
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
    make(NULL, NULL, code, 3);

    assert_string_equal(value_of("deployment.environment.name"), "test");
    assert_string_equal(value_of(""), "-");
    assert_string_equal(resource.schema_url, "https://example.com/schemas/1");
    config.resource_schema_url = "a\xff"; /* which is mended */
    make(NULL, NULL, NULL, 0);
    assert_string_equal(resource.schema_url, "a\xef\xbf\xbd");
}

TEST(keys_of_code_end_where_their_lengths_say)
{
    static const char keys[] = "shop.floorservice.namehost";
    const otel_attribute code[] = {
        otel_attribute_n(keys, 10, otel_value_string("3")),
        otel_attribute_n(keys + 10, 12, otel_value_string("till")),
        otel_attribute_n(keys, 0, otel_value_string("no key")),
        otel_attribute_n(keys, 4, otel_value_string("a")),
        otel_attribute_of("shop", otel_value_string("b")),
    };
    make("shop=c", NULL, code, 5);

    assert_string_equal(value_of("shop.floor"), "3");
    assert_string_equal(value_of("service.name"), "till");
    assert_string_equal(value_of("shop"), "b");
    assert_string_equal(value_of(""), "-");
}

/* spec: R4 resource/sdk.md#merge MUST stable */
TEST(R4_two_schemas_are_a_warning_and_no_url)
{
    config.resource_schema_url = "https://example.com/schemas/1";
    make_with_detectors("process");

    assert_null(resource.schema_url);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(last_warning, "https://example.com/schemas/1"));
    config.resource_schema_url = OTEL_SEMCONV_SCHEMA_URL;
    make(NULL, NULL, NULL, 0);
    assert_string_equal(resource.schema_url, OTEL_SEMCONV_SCHEMA_URL);
    assert_int_equal(warnings, 1);
}

/* spec: R7 entities/entity-propagation.md#specifying-entity-information-via-an-environment-variable
 * MUST development */
TEST(R7_entities_are_between_detectors_and_what_is_said)
{
    config.resource_detectors = (char *)(uintptr_t) "host";
    config.entities = (char *)(uintptr_t) "host{host.id=7}[host.name=entity];"
                                          "service{service.name=entity}[service.version=1]";
    make("a=b", NULL, NULL, 0);
    assert_values("host.name entity\n"
                  "service.name entity\n");
    assert_int_equal(warnings, 0);

    make("service.name=said,host.id=7", NULL, NULL, 0); /* of which one is another */
    assert_values("service.name said\n"
                  "service.version -\n"
                  "host.name entity\n");
    assert_int_equal(warnings, 1);
}

#define SOMEBODYS "00000000-0000-4000-8000-000000000000"

/* Another process is another instance, but only where the program has not said what it is. */
TEST(a_renewed_resource_has_an_instance_of_its_own)
{
    char parents[64];
    struct oteli_resource renewed;
    config.entities = (char *)(uintptr_t) "host{host.id=7}";
    config.resource_detectors = (char *)(uintptr_t)all_detectors;
    const otel_attribute others = otel_attribute_of("another.pid", otel_value_int(getpid()));
    make("a=b", NULL, &others, 1);
    snprintf(parents, sizeof parents, "%s", value_of("service.instance.id"));

    assert_int_equal(oteli_resource_renew(&renewed, &resource), OTEL_OK);

    assert_string_equal(renewed.schema_url, resource.schema_url);
    assert_int_equal(renewed.otlp_length, resource.otlp_length); /* entities and all */
    oteli_resource_fini(&resource);
    resource = renewed;
    assert_int_equal(strlen(value_of("service.instance.id")), 36);
    assert_string_not_equal(value_of("service.instance.id"), parents);
    assert_string_equal(value_of("service.instance.id"), renewed.instance);
    assert_string_equal(value_of("a"), "b");
    assert_string_not_equal(value_of("another.pid"), "-");

    make("service.instance.id=" SOMEBODYS, NULL, NULL, 0);
    assert_int_equal(oteli_resource_renew(&renewed, &resource), OTEL_OK);
    oteli_resource_fini(&resource);
    resource = renewed;
    assert_string_equal(value_of("service.instance.id"), SOMEBODYS);
}

/* spec: R5 resource/sdk.md#specifying-resource-information-via-an-environment-variable MUST
 * stable */
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
        make(table[i].variable, table[i].service_name, &code, table[i].count);
        assert_string_equal(value_of("service.name"), table[i].expected);
    }
}

TEST(members_are_trimmed_and_percent_decoded)
{
    make(" a=1, b = x%20y%2Cz ,c=%C3%A4,d=,e%3Df=g=h", NULL, NULL, 0);

    assert_values("a 1\n"
                  "b x y,z\n"
                  "c \xc3\xa4\n"
                  "d \n");
    assert_string_equal(value_of("e=f"), "g=h");
    assert_int_equal(warnings, 0);
}

/* spec: R5 resource/sdk.md#specifying-resource-information-via-an-environment-variable SHOULD
 * stable */
TEST(R5_one_malformed_member_spoils_the_variable_with_one_warning)
{
    static char many[6 * 1025 + 1]; /* one more than may be */
    for (size_t i = 0; i < 1025; i++)
        snprintf(many + strlen(many), 8, "%sa=1", i != 0 ? "," : "");
    const char *const malformed[] = {"a=1,b",     "a=1,=2",    "a=1,b=%",  "a=1,b=%4",
                                     "a=1,b=%zz", "a=1,%zz=b", "b=%0,a=1", many};
    make(many + 4, NULL, NULL, 0);
    assert_string_equal(value_of("a"), "1");
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        warnings = 0;
        make(malformed[i], "own", NULL, 0);
        assert_string_equal(value_of("a"), "-");
        assert_string_equal(value_of("b"), "-");
        assert_string_equal(value_of("service.name"), "own");
        assert_int_equal(warnings, 1);
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
    make("a=variable,b=variable,c=variable,process.pid=x", NULL, code, 6);

    assert_values("process.pid int 7\n"
                  "a last\n"
                  "b \n"
                  "c \n"
                  "telemetry.sdk.name mine\n");
}

TEST(a_variable_of_too_many_members_is_a_mistake)
{
    enum { MEMBERS = 1100 };
    char *variable = calloc(MEMBERS, 8);
    assert_non_null(variable);
    for (unsigned i = 0; i < MEMBERS; i++)
        sprintf(variable + strlen(variable), "k%u=1,", i);
    make(variable, NULL, NULL, 0);

    assert_string_equal(value_of("k0"), "-");
    assert_int_equal(warnings, 1);
    free(variable);
}

TEST(without_memory_there_is_an_error_and_no_leak)
{
    config.resource_attributes = (char *)(uintptr_t) "a=1,b=2";
    config.resource_detectors = (char *)(uintptr_t)all_detectors;
    config.entities = (char *)(uintptr_t) "host{host.id=7}[host.name=entity]@a:b";
    otel_status status = OTEL_ERROR_NO_MEMORY;
    for (size_t nth = 1; status != OTEL_OK; nth++) {
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        status = oteli_resource_init(&resource, &config, NULL, 0);
        assert_int_equal(status, oteli_leaks_failed() ? OTEL_ERROR_NO_MEMORY : OTEL_OK);
        oteli_resource_fini(&resource);
        memset(&resource, 0, sizeof resource);
        oteli_leaks_check();
    }
}

/* ---- sdk/resource/resource_builder.h
 * ------------------------------------------------------------------------------------ */

static struct oteli_facts facts_of(const char *key, const char *value, const char *schema_url)
{
    struct oteli_facts facts = {.schema_url = schema_url};
    oteli_facts_set_text(&facts, key, (otel_slice){value, strlen(value)});
    return facts;
}

/* spec: R4 resource/sdk.md#merge MUST stable */
TEST(R4_the_schema_url_is_that_of_the_only_one_that_has_any)
{
    static const struct {
        const char *old, *updating, *third;
        const char *result; /* NULL: none, and a warning if two are given */
    } table[] = {
        {NULL, "x", NULL, "x"}, {"", "x", "", "x"},       {"x", NULL, NULL, "x"},
        {"x", "", "x", "x"},    {"x", "x", NULL, "x"},    {"x", "y", NULL, NULL},
        {"x", "y", "y", NULL},  {NULL, NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        warnings = 0;
        struct oteli_facts old = facts_of("a", "1", table[i].old);
        struct oteli_facts updating = facts_of("b", "2", table[i].updating);
        struct oteli_facts third = facts_of("c", "3", table[i].third);

        oteli_facts_merge(&old, &updating);
        oteli_facts_merge(&old, &third);

        if (table[i].result != NULL)
            assert_string_equal(old.schema_url, table[i].result);
        else
            assert_null(old.schema_url);
        assert_int_equal(warnings, table[i].result == NULL && table[i].old != NULL);
        assert_int_equal(old.count, 3);
        oteli_facts_fini(&old);
    }
}

TEST(a_file_that_is_not_there_says_nothing)
{
    struct oteli_facts facts = {0};

    assert_int_equal(oteli_facts_read(&facts, "/no/such/file").length, 0);
    assert_true(oteli_facts_read(&facts, "/proc/self/status").length > 0);
    assert_int_equal(oteli_facts_read(&facts, "/proc").length, 0); /* a directory */

    assert_false(facts.failed);
    oteli_facts_fini(&facts);
}

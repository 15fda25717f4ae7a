/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/entities_test.c - specification of sdk/entities.h. */
#include "sdk/entities.h"
#include "common/wire.h"
#include "tests/support/unit.h"

#include "tests/support/warnings.h"

#include <stdio.h>
#include <string.h>

/* The entities as text: type{key=value …}[key=value …]@url; those that are out are not there. */
static const char *parsed(const char *text)
{
    static char out[2000];
    struct oteli_facts memory = {0};
    struct oteli_entities entities;
    size_t at = 0;
    out[0] = '\0';
    oteli_entities_parse(&entities, &memory, "OTEL_ENTITIES", text);
    for (size_t i = 0; i < entities.count; i++) {
        const struct oteli_entity *entity = &entities.list[i];
        if (entity->is_out)
            continue;
        at += (size_t)snprintf(out + at, sizeof out - at, "%s{", entity->type);
        for (size_t k = 0; k < entity->count; k++) {
            const struct oteli_entity_fact *fact = &entity->facts[k];
            if (k == entity->identifying)
                at += (size_t)snprintf(out + at, sizeof out - at, "}[");
            if (!fact->is_out)
                at += (size_t)snprintf(out + at, sizeof out - at, " %s=%.*s", fact->key,
                                       (int)fact->value.length, fact->value.data);
        }
        at +=
            (size_t)snprintf(out + at, sizeof out - at, "%s@%s;",
                             entity->identifying == entity->count ? "}" : "]", entity->schema_url);
    }
    oteli_facts_fini(&memory);
    return out;
}

AROUND_EACH(warnings_begin, warnings_end);

/* spec: R7 entities/entity-propagation.md#examples MUST development */
TEST(R7_the_examples_of_the_specification)
{
    static const char *const table[][2] = {
        {"service{service.name=my-app,service.instance.id=instance-1}[service.version=1.0.0]",
         "service{ service.name=my-app service.instance.id=instance-1}[ service.version=1.0.0]@;"},
        {"service{service.name=a}@https://opentelemetry.io/schemas/1.21.0;"
         "host{host.id=host-123}[host.name=web]",
         "service{ service.name=a}@https://opentelemetry.io/schemas/1.21.0;"
         "host{ host.id=host-123}[ host.name=web]@;"},
        {";service{service.name=app1};;host{host.id=host-123};",
         "service{ service.name=app1}@;host{ host.id=host-123}@;"},
        {"service{service.name=my%2Capp,service.instance.id=inst-1}[config=key%3Dvalue%5Bprod%5D]",
         "service{ service.name=my,app service.instance.id=inst-1}[ config=key=value[prod]]@;"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        assert_string_equal(parsed(table[i][0]), table[i][1]);
    assert_int_equal(warnings, 0);
}

/* spec: R7 entities/entity-propagation.md#error-handling SHOULD development */
TEST(R7_what_is_malformed_is_left_out_with_a_warning)
{
    static const char *const malformed[] = {
        "x",          "{a=1}",       "1x{a=1}",     "x{}",       "x{a=1",    "x{a}",
        "x{=1}",      "x{a=1}y",     "x{a=1}[b=2",  "x{a=1}[b]", "x{a=%4}",  "x{a=%zz}",
        "x{a=1,a=2}", "x{a=1}[a=2]", "x{a={b}}",    "x{1a=1}",   "x y{a=1}", "x{a=b=c}",
        "x{a=1}@",    "x{a=1}{b=2}", "x[a=1]{b=2}", "x{a=1}]",   "x{a[=1}",  "@a:b",
    };
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        char text[100];
        warnings = 0;
        snprintf(text, sizeof text, "%s;host{id=1}", malformed[i]);
        if (strcmp(malformed[i], "x{a=1}@") == 0) { /* no URL is no fault */
            assert_string_equal(parsed(text), "x{ a=1}@;host{ id=1}@;");
            continue;
        }
        assert_string_equal(parsed(text), "host{ id=1}@;");
        assert_int_equal(warnings, 1);
    }
}

/* spec: R7 entities/entity-propagation.md#error-handling SHOULD development */
TEST(R7_a_bad_schema_url_alone_is_ignored)
{
    assert_string_equal(parsed("service{service.name=app1}@invalid-url"),
                        "service{ service.name=app1}@;");
    assert_int_equal(warnings, 1);
    assert_string_equal(parsed("x{a=1}@urn:b"), "x{ a=1}@urn:b;");
    assert_int_equal(warnings, 1);
}

/* spec: R7 entities/entity-propagation.md#error-handling SHOULD development */
TEST(R7_of_two_the_last_counts)
{
    assert_string_equal(parsed("s{n=1}[v=1.0];s{n=1}[v=2.0]"), "s{ n=1}[ v=2.0]@;");
    assert_string_equal(parsed("s{n=1};s{n=2}"), "s{ n=2}@;");
    assert_int_equal(warnings, 2);
    assert_string_equal(parsed("s{n=1}[v=1];t{m=1}[v=2]"), "s{ n=1}[]@;t{ m=1}[ v=2]@;");
    assert_int_equal(warnings, 3);
    assert_string_equal(parsed("s{n=1}[v=1];t{m=1}[n=2]"), "t{ m=1}[ n=2]@;");
    assert_int_equal(warnings, 4);
    assert_string_equal(parsed("s{n=1}[v=1];t{m=1}[n=1]"), "s{ n=1}[ v=1]@;t{ m=1}[ n=1]@;");
    assert_int_equal(warnings, 4);
}

/* spec: R7 resource/data-model.md#merging-entities-into-a-resource MUST development */
TEST(R7_a_loose_attribute_of_another_value_removes_the_entity)
{
    struct oteli_facts memory = {0};
    struct oteli_facts loose = {0};
    struct oteli_facts facts = {0};
    struct oteli_entities entities;
    oteli_facts_set(&loose, "host.id", otel_value_string("h2"));
    oteli_facts_set(&loose, "process.pid", otel_value_string("12345"));
    oteli_entities_parse(&entities, &memory, "OTEL_ENTITIES",
                         "host{host.id=H1}[host.name=n];process{process.pid=12345}");

    oteli_entities_yield(&entities, &loose);
    oteli_entities_apply(&entities, &facts);

    assert_true(entities.list[0].is_out);
    assert_false(entities.list[1].is_out);
    assert_null(oteli_facts_get(&facts, "host.name"));
    assert_non_null(oteli_facts_get(&facts, "process.pid"));
    oteli_facts_fini(&facts);
    oteli_facts_fini(&loose);
    oteli_facts_fini(&memory);
}

TEST(they_are_written_as_the_protocol_has_them)
{
    static const char expected[] = "\x1a\x12\x0a\x03"
                                   "u:v\x12\x01s\x1a\x02id\x22\x01x\x22\x01y";
    struct oteli_facts memory = {0};
    struct oteli_entities entities;
    uint8_t bytes[64];
    oteli_entities_parse(&entities, &memory, "OTEL_ENTITIES", "s{id=1}[x=2,y=3]@u:v");

    const size_t size = oteli_entities_size(&entities);
    const uint8_t *at = oteli_entities_put(bytes, &entities);

    assert_int_equal(size, sizeof expected - 1);
    assert_int_equal(at - bytes, size);
    assert_memory_equal(bytes, expected, size);
    oteli_facts_fini(&memory);
}

TEST(too_many_are_cut_with_a_warning)
{
    enum { MANY = 100 };
    static char text[MANY * 16];
    struct oteli_facts memory = {0};
    struct oteli_entities entities;
    for (unsigned i = 0; i < MANY; i++)
        sprintf(text + strlen(text), "t%u{a%u=1};", i, i);

    oteli_entities_parse(&entities, &memory, "OTEL_ENTITIES", text);

    assert_int_equal(entities.count, 64);
    assert_int_equal(warnings, 1);
    oteli_facts_fini(&memory);
}

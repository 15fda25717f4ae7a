/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/detectors_test.c - specification of what a resource is read out of: the files of a
 * system (sdk/resource/detectors.h), and OTEL_ENTITIES (sdk/resource/entities.h). */
#include "common/wire.h"
#include "sdk/resource/detectors.h"
#include "sdk/resource/entities.h"

#include "tests/support/unit.h"
#include "tests/support/warnings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HALF "0123456789abcdef0123456789abcdef"

static otel_slice slice_of(const char *text)
{
    return (otel_slice){text, strlen(text)};
}

static void assert_slice(otel_slice slice, const char *expected)
{
    assert_int_equal(slice.length, strlen(expected));
    assert_memory_equal(slice.data, expected, slice.length);
}

AROUND_EACH(warnings_begin, warnings_end);

static void assert_found(otel_slice (*find)(otel_slice), const char *const (*rows)[2], size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_slice(find(slice_of(rows[i][0])), rows[i][1]);
}

/* spec: R6 resource/sdk.md#detecting-resource-information-from-the-environment MUST stable */
TEST(R6_a_control_group_names_its_container)
{
    static const char *const rows[][2] = {
        {"0::/system.slice/docker-" ID ".scope\n", ID},
        {"0::/machine.slice/libpod-" ID ".scope", ID},
        {"13:name=systemd:/kubepods/besteffort/pod9f0/" ID "\n", ID},
        {"12:pids:/docker/" ID "\n11:cpu:/docker/" ID "\n", ID},
        {"4:memory:/\n0::/kubepods-burstable-pod1.slice:cri-containerd:" ID "\n", ID},
        {"0::/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope\n", ID},
        {"9:cpu:/ecs/" HALF "-3141592653\n", HALF "-3141592653"},
        {"", ""},
        {"\n\n", ""},
        {"0::/\n", ""},
        {"0::/user.slice/user-1000.slice/session-3.scope\n", ""},
        {"0::/docker-" ID ".scope/inner\n", ""},
        {"0::/docker-0123456789ABCDEF" HALF "0123456789abcdef.scope\n", ""},
        {"0::/docker-g123456789abcdef" HALF "0123456789abcdef.scope\n", ""},
        {"0::/docker-" ID "0.scope\n", ""},
        {"0::/ecs/" HALF "-\n", ""},
    };
    assert_found(oteli_container_in_cgroup, rows, sizeof rows / sizeof rows[0]);
}

/* spec: R6 resource/sdk.md#detecting-resource-information-from-the-environment MUST stable */
TEST(R6_mounted_files_name_the_container_where_groups_are_hidden)
{
    static const char *const rows[][2] = {
        {"600 500 0:50 / / rw - overlay overlay rw\n630 600 8:1 /var/lib/docker/containers/" ID
         "/resolv.conf /etc/resolv.conf rw - ext4 /dev/sda1 rw\n",
         ID},
        {"1 2 0:3 /containers/storage/overlay-containers/" ID
         "/userdata/hosts /etc/hosts rw - tmpfs tmpfs rw",
         ID},
        {"", ""},
        {"1 2 8:1 /containers/" ID "/hostname /srv/hostname rw - ext4 /dev/sda1 rw\n", ""},
        {"1 2 8:1 / /etc/hosts rw - ext4 /var/lib/docker/containers/" ID "/x rw\n", ""},
        {"1 2 8:1 /sandboxes/" ID "/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n", ""},
        {"1 2 8:1 /containers/" ID " /etc/hosts ", ""},
        {"containers/" ID "/ /etc/hosts ", ""},
    };
    assert_found(oteli_container_in_mounts, rows, sizeof rows / sizeof rows[0]);
}

TEST(mounts_are_read_only_where_a_file_may_be_one)
{
    assert_true(oteli_may_be_mounted("/proc"));
    assert_false(oteli_may_be_mounted("/proc/self/mountinfo/hosts"));
    assert_false(oteli_may_be_mounted("/no such file"));
}

TEST(a_machine_id_is_32_digits)
{
    assert_true(oteli_is_machine_id(slice_of("0123456789abcdef0123456789ABCDEF")));
    assert_false(oteli_is_machine_id(slice_of("uninitialized")));
    assert_false(oteli_is_machine_id(slice_of("0123456789abcdef0123456789abcdeg")));
    assert_false(oteli_is_machine_id(slice_of("")));
}

TEST(machines_have_the_names_of_the_conventions)
{
    static const char *const rows[][2] = {{"x86_64", "amd64"},
                                          {"aarch64", "arm64"},
                                          {"armv7l", "arm32"},
                                          {"ppc64le", "ppc64"},
                                          {"riscv64", "riscv64"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(oteli_host_arch(rows[i][0]), rows[i][1]);
}

TEST(os_release_is_read_with_its_quotes)
{
    static const char text[] = "# a comment\nNAME=\"A \\\"good\\\" one\"\nVERSION_ID=12\n"
                               "NICK='a\\b'\nEMPTY=\nLONG=12345678901234567890";
    static const char *const rows[][2] = {{"NAME", "A \"good\" one"},
                                          {"VERSION_ID", "12"},
                                          {"NICK", "a\\b"},
                                          {"EMPTY", NULL},
                                          {"LONG", NULL},
                                          {"VERSION", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char value[16];
        const bool is_there = oteli_os_release(slice_of(text), rows[i][0], value, sizeof value);
        assert_int_equal(is_there, rows[i][1] != NULL);
        if (is_there)
            assert_string_equal(value, rows[i][1]);
    }
}

TEST(a_user_is_found_by_number)
{
    static const char text[] = "root:x:0:0::/root:/bin/sh\nbad line\nnoid:x::1::\nann:x:1000:1:::";
    assert_slice(oteli_user_name(slice_of(text), 0), "root");
    assert_slice(oteli_user_name(slice_of(text), 1000), "ann");
    assert_slice(oteli_user_name(slice_of(text), 1), "");
    assert_slice(oteli_user_name(slice_of(""), 0), "");
}

TEST(arguments_are_kept_apart)
{
    struct oteli_facts facts = {0};
    oteli_detect_command(&facts, (otel_slice){"cmd\0-a\0b c\0\0d", 13});

    assert_string_equal(oteli_facts_get(&facts, "process.command")->as.string, "cmd");
    const otel_value *arguments = oteli_facts_get(&facts, "process.command_args");
    assert_int_equal(arguments->length, 5);
    assert_string_equal(arguments->as.strings[1], "-a");
    assert_string_equal(arguments->as.strings[2], "b c");
    assert_string_equal(arguments->as.strings[3], "");
    assert_string_equal(arguments->as.strings[4], "d");
    oteli_facts_fini(&facts);

    oteli_detect_command(&facts, (otel_slice){"", 0});
    assert_int_equal(facts.count, 0);
    oteli_facts_fini(&facts);
}

/* RFC 9562: 8-4-4-4-12 digits, version 4, variant 10. */
TEST(instances_have_random_ids_of_version_4)
{
    char one[OTELI_UUID_SIZE];
    char other[OTELI_UUID_SIZE];
    unsigned seen = 0; /* bits of the digits behind the version */
    assert_true(oteli_uuid(one));
    assert_true(oteli_uuid(other));

    assert_string_not_equal(one, other);
    assert_int_equal(strlen(one), 36);
    for (size_t i = 0; i < 36; i++) {
        const char kind = "hhhhhhhh-hhhh-4hhh-vhhh-hhhhhhhhhhhh"[i];
        const char itself[] = {kind, '\0'};
        assert_non_null(strchr(kind == 'h'   ? "0123456789abcdef"
                               : kind == 'v' ? "89ab"
                                             : itself,
                               one[i]));
    }
    for (unsigned i = 0; i < 64; i++, assert_true(oteli_uuid(one))) {
        assert_int_equal(one[14], '4');
        seen |= (unsigned)strtoul(one + 15, NULL, 16);
    }
    assert_int_equal(seen, 0xfff);
    assert_non_null(strchr("89ab", one[19]));
}

/* ---- OTEL_ENTITIES
 * ------------------------------------------------------------------------------- */

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
        "x",           "{a=1}",       "1x{a=1}",    "x{}",       "x{a=1",    "x{a}",
        "x{=1}",       "x{a=1}y",     "x{a=1}[b=2", "x{a=1}[b]", "x{a=%4}",  "x{a=%zz}",
        "x{a=1,a=2}",  "x{a=1}[a=2]", "x{a={b}}",   "x{1a=1}",   "x y{a=1}", "x{a=b=c}",
        "x{a=1}{b=2}", "x[a=1]{b=2}", "x{a=1}]",    "x{a[=1}",   "@a:b",
    };
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        char text[100];
        warnings = 0;
        snprintf(text, sizeof text, "%s;host{id=1}", malformed[i]);
        assert_string_equal(parsed(text), "host{ id=1}@;");
        assert_int_equal(warnings, 1);
    }
}

/* spec: R7 entities/entity-propagation.md#error-handling SHOULD development */
TEST(R7_of_two_the_last_counts_and_a_bad_schema_url_alone_is_ignored)
{
    static const char *const rows[][2] = {
        {"s{n=1}[v=1.0];s{n=1}[v=2.0]", "s{ n=1}[ v=2.0]@;"},
        {"s{n=1};s{n=2}", "s{ n=2}@;"},
        {"s{n=1}[v=1];t{m=1}[v=2]", "s{ n=1}[]@;t{ m=1}[ v=2]@;"},
        {"s{n=1}[v=1];t{m=1}[n=2]", "t{ m=1}[ n=2]@;"},
        {"service{n=1}@invalid-url", "service{ n=1}@;"}, /* which alone is ignored */
        {"service{n=1}@urn:", "service{ n=1}@;"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(parsed(rows[i][0]), rows[i][1]);
        assert_int_equal(warnings, i + 1);
    }
    warnings = 0;
    assert_string_equal(parsed("s{n=1}[v=1];t{m=1}[n=1]"), "s{ n=1}[ v=1]@;t{ m=1}[ n=1]@;");
    assert_string_equal(parsed("x{a=1}@"), "x{ a=1}@;"); /* no URL is no fault */
    assert_string_equal(parsed("x{a=1}@urn:b"), "x{ a=1}@urn:b;");
    assert_int_equal(warnings, 0);
}

TEST(they_are_written_as_the_protocol_has_them)
{
    static const char expected[] = "\x1a\x12\x0a\x03"
                                   "u:v\x12\x01s\x1a\x02id\x22\x01x\x22\x01y"
                                   "\x1a\x06\x12\x01t\x1a\x01n";
    struct oteli_facts memory = {0};
    struct oteli_entities entities;
    uint8_t bytes[64];
    oteli_entities_parse(&entities, &memory, "OTEL_ENTITIES", "s{id=1}[x=2,y=3]@u:v;t{n=1}");

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

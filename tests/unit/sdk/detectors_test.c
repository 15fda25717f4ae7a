/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/detectors_test.c - specification of sdk/detectors/detectors.h: what is read out of
 * the files of a system. */
#include "sdk/detectors/detectors.h"

#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <stdlib.h>
#include <string.h>

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static int begin(void **state)
{
    (void)state;
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    oteli_leaks_check();
    return 0;
}

static otel_slice slice_of(const char *text)
{
    return (otel_slice){text, strlen(text)};
}

static void assert_slice(otel_slice slice, const char *expected)
{
    assert_int_equal(slice.length, strlen(expected));
    assert_memory_equal(slice.data, expected, slice.length);
}

AROUND_EACH(begin, end);

/* spec: R6 resource/sdk.md#detecting-resource-information-from-the-environment MUST stable */
TEST(R6_a_control_group_names_its_container)
{
    static const char *const groups[] = {
        "0::/system.slice/docker-" ID ".scope\n",
        "0::/machine.slice/libpod-" ID ".scope",
        "13:name=systemd:/kubepods/besteffort/pod9f0/" ID "\n",
        "12:pids:/docker/" ID "\n11:cpu:/docker/" ID "\n",
        "4:memory:/\n0::/kubepods-burstable-pod1.slice:cri-containerd:" ID "\n",
        "0::/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope\n",
    };
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        assert_slice(oteli_container_in_cgroup(slice_of(groups[i])), ID);
    assert_slice(oteli_container_in_cgroup(
                     slice_of("9:cpu:/ecs/0123456789abcdef0123456789abcdef-3141592653\n")),
                 "0123456789abcdef0123456789abcdef-3141592653");
}

TEST(other_control_groups_name_none)
{
    static const char *const groups[] = {
        "",
        "\n\n",
        "0::/\n",
        "0::/user.slice/user-1000.slice/session-3.scope\n",
        "0::/docker-" ID ".scope/inner\n",
        "0::/docker-0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef.scope\n",
        "0::/docker-" ID "0.scope\n",
        "0::/ecs/0123456789abcdef0123456789abcdef-\n",
    };
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        assert_slice(oteli_container_in_cgroup(slice_of(groups[i])), "");
}

/* spec: R6 resource/sdk.md#detecting-resource-information-from-the-environment MUST stable */
TEST(R6_mounted_files_name_the_container_where_groups_are_hidden)
{
    assert_slice(oteli_container_in_mounts(slice_of("600 500 0:50 / / rw - overlay overlay rw\n"
                                                    "630 600 8:1 /var/lib/docker/containers/" ID
                                                    "/resolv.conf /etc/resolv.conf "
                                                    "rw - ext4 /dev/sda1 rw\n")),
                 ID);
    assert_slice(
        oteli_container_in_mounts(slice_of("1 2 0:3 /containers/storage/overlay-containers/" ID
                                           "/userdata/hosts /etc/hosts rw - tmpfs tmpfs rw")),
        ID);
}

TEST(other_mounts_name_none)
{
    static const char *const mounts[] = {
        "",
        "1 2 8:1 /containers/" ID "/hostname /srv/hostname rw - ext4 /dev/sda1 rw\n",
        "1 2 8:1 / /etc/hosts rw - ext4 /var/lib/docker/containers/" ID "/x rw\n",
        "1 2 8:1 /sandboxes/" ID "/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n",
        "1 2 8:1 /containers/" ID " /etc/hosts ",
        "containers/" ID "/ /etc/hosts ",
    };
    for (size_t i = 0; i < sizeof mounts / sizeof mounts[0]; i++)
        assert_slice(oteli_container_in_mounts(slice_of(mounts[i])), "");
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
    assert_string_equal(oteli_host_arch("x86_64"), "amd64");
    assert_string_equal(oteli_host_arch("aarch64"), "arm64");
    assert_string_equal(oteli_host_arch("armv7l"), "arm32");
    assert_string_equal(oteli_host_arch("ppc64le"), "ppc64");
    assert_string_equal(oteli_host_arch("riscv64"), "riscv64");
}

TEST(os_release_is_read_with_its_quotes)
{
    static const char text[] = "# a comment\nNAME=\"A \\\"good\\\" one\"\nVERSION_ID=12\n"
                               "NICK='a\\b'\nEMPTY=\nLONG=12345678901234567890";
    char value[16];
    assert_true(oteli_os_release(slice_of(text), "NAME", value, sizeof value));
    assert_string_equal(value, "A \"good\" one");
    assert_true(oteli_os_release(slice_of(text), "VERSION_ID", value, sizeof value));
    assert_string_equal(value, "12");
    assert_true(oteli_os_release(slice_of(text), "NICK", value, sizeof value));
    assert_string_equal(value, "a\\b");
    assert_false(oteli_os_release(slice_of(text), "EMPTY", value, sizeof value));
    assert_false(oteli_os_release(slice_of(text), "LONG", value, sizeof value));
    assert_false(oteli_os_release(slice_of(text), "VERSION", value, sizeof value));
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
    oteli_detect_command(&facts, (otel_slice){"cmd\0-a\0\0b c", 11});

    assert_string_equal(oteli_facts_get(&facts, "process.command")->as.string, "cmd");
    const otel_value *arguments = oteli_facts_get(&facts, "process.command_args");
    assert_int_equal(arguments->length, 4);
    assert_string_equal(arguments->as.strings[1], "-a");
    assert_string_equal(arguments->as.strings[2], "");
    assert_string_equal(arguments->as.strings[3], "b c");
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
    assert_true(oteli_uuid(one));
    assert_true(oteli_uuid(other));

    assert_string_not_equal(one, other);
    assert_int_equal(strlen(one), 36);
    for (size_t i = 0; i < 36; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23)
            assert_int_equal(one[i], '-');
        else
            assert_non_null(strchr("0123456789abcdef", one[i]));
    }
    assert_int_equal(one[14], '4');
    assert_non_null(strchr("89ab", one[19]));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/resource/host.c - host.* and os.*: see detectors.h. Start/stop only. */
#include "common/text/text.h"
#include "sdk/resource/detectors.h"

#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* What semantic conventions and the kernel call the same machine. */
const char *oteli_host_arch(const char *machine)
{
    static const struct {
        const char *begin; /* of the kernel's name */
        const char *arch;
    } names[] = {
        {"x86_64", "amd64"}, {"aarch64", "arm64"}, {"arm", "arm32"}, {"i386", "x86"},
        {"i486", "x86"},     {"i586", "x86"},      {"i686", "x86"},  {"ppc64", "ppc64"},
        {"ppc", "ppc32"},    {"s390x", "s390x"},   {"ia64", "ia64"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(machine, names[i].begin, strlen(names[i].begin)) == 0)
            return names[i].arch;
    return machine;
}

bool oteli_is_machine_id(otel_slice text)
{
    for (size_t i = 0; i < text.length; i++) {
        const char c = oteli_to_lower(text.data[i]);
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
    }
    return text.length == 32;
}

static void add_machine_id(struct oteli_facts *facts)
{
    static const char *const paths[] = {"/etc/machine-id", "/var/lib/dbus/machine-id"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        otel_slice text = oteli_facts_read(facts, paths[i]);
        while (text.length != 0 && text.data[text.length - 1] == '\n')
            text.length--;
        if (oteli_is_machine_id(text)) {
            oteli_facts_set_text(facts, "host.id", text);
            return;
        }
    }
}

/* Containers have the machine id of their image, if any, which is no host's. */
static bool is_in_container(struct oteli_facts *facts)
{
    return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
           oteli_container_id(facts).length != 0;
}

/* Take the quotes off a value of os-release, and the backslashes out of it. */
static bool unquote(otel_slice text, char *value, size_t size)
{
    const char quote = text.length != 0 ? text.data[0] : '\0';
    const bool is_quoted = quote == '"' || quote == '\'';
    size_t length = 0;
    for (size_t i = is_quoted; i < text.length; i++) {
        char c = text.data[i];
        if (is_quoted && c == quote)
            break;
        if (c == '\\' && quote != '\'' && i + 1 < text.length)
            c = text.data[++i];
        if (length + 1 >= size)
            return false;
        value[length++] = c;
    }
    value[length] = '\0';
    return length != 0;
}

bool oteli_os_release(otel_slice text, const char *key, char *value, size_t size)
{
    otel_slice line;
    while (oteli_piece_next(&text, '\n', &line)) {
        otel_slice name;
        otel_slice rest;
        if (oteli_cut(line, '=', &name, &rest) && oteli_is_text(name, key))
            return unquote(rest, value, size);
    }
    return false;
}

static void add_release(struct oteli_facts *facts, otel_slice release, const char *key,
                        const char *attribute)
{
    char value[256];
    if (oteli_os_release(release, key, value, sizeof value))
        oteli_facts_set_text(facts, attribute, oteli_slice_of(value));
}

void oteli_detect_os(struct oteli_facts *facts)
{
    struct utsname names;
    oteli_facts_set(facts, "os.type", otel_value_string("linux"));
    if (uname(&names) == 0)
        oteli_facts_set_text(facts, "os.build_id", oteli_slice_of(names.release));
    otel_slice release = oteli_facts_read(facts, "/etc/os-release");
    if (release.length == 0)
        release = oteli_facts_read(facts, "/usr/lib/os-release");
    add_release(facts, release, "NAME", "os.name");
    add_release(facts, release, "VERSION_ID", "os.version");
    add_release(facts, release, "PRETTY_NAME", "os.description");
    add_release(facts, release, "BUILD_ID", "os.build_id");
}

void oteli_detect_host(struct oteli_facts *facts)
{
    struct utsname names;
    if (uname(&names) == 0) {
        oteli_facts_set_text(facts, "host.name", oteli_slice_of(names.nodename));
        oteli_facts_set_text(facts, "host.arch", oteli_slice_of(oteli_host_arch(names.machine)));
    }
    if (!is_in_container(facts))
        add_machine_id(facts);
    oteli_detect_os(facts);
}

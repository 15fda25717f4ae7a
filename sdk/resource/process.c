/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/resource/process.c - process.*: see detectors.h. Start/stop only. */
#include "common/text/text.h"
#include "sdk/resource/detectors.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The path of the program, also after its file was replaced; empty if it is not known. */
static otel_slice executable_path(struct oteli_facts *facts)
{
    static const char gone[] = " (deleted)";
    char path[PATH_MAX];
    const ssize_t read = readlink("/proc/self/exe", path, sizeof path);
    size_t length = read > 0 ? (size_t)read : 0;
    const size_t mark = sizeof gone - 1;
    if (length > mark && memcmp(path + length - mark, gone, mark) == 0)
        length -= mark;
    const char *copy = oteli_facts_copy(facts, (otel_slice){path, length});
    return copy != NULL ? (otel_slice){copy, length} : (otel_slice){"", 0};
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

const char *oteli_detect_executable(struct oteli_facts *facts)
{
    return base_of(executable_path(facts).data);
}

/* The C library stands for the runtime: "glibc 2.36". Others do not say what they are. */
static void add_runtime(struct oteli_facts *facts)
{
    char text[64];
    const size_t size = confstr(_CS_GNU_LIBC_VERSION, text, sizeof text);
    otel_slice name;
    otel_slice version;
    if (size < 2 || size > sizeof text || !oteli_cut(oteli_slice_of(text), ' ', &name, &version))
        return;
    oteli_facts_set_text(facts, "process.runtime.name", name);
    oteli_facts_set_text(facts, "process.runtime.version", version);
}

void oteli_detect_process(struct oteli_facts *facts)
{
    oteli_facts_set(facts, "process.pid", otel_value_int(getpid()));
    const otel_slice path = executable_path(facts);
    const char *name = base_of(path.data);
    if (name[0] != '\0') {
        oteli_facts_set(facts, "process.executable.name", otel_value_string(name));
        oteli_facts_set(facts, "process.executable.path",
                        otel_value_string_n(path.data, path.length));
    }
    add_runtime(facts);
}

void oteli_detect_command(struct oteli_facts *facts, otel_slice cmdline)
{
    size_t count = 0;
    for (size_t i = 0; i < cmdline.length; i++)
        count += cmdline.data[i] == '\0';
    count += cmdline.length != 0 && cmdline.data[cmdline.length - 1] != '\0';
    const char **arguments = count != 0 ? oteli_facts_keep(facts, count * sizeof *arguments) : NULL;
    if (arguments == NULL)
        return;
    const char *at = cmdline.data;
    for (size_t i = 0; i < count; i++) {
        arguments[i] = at;
        at += strlen(at) + 1;
    }
    oteli_facts_set(facts, "process.command", otel_value_string(arguments[0]));
    oteli_facts_set(facts, "process.command_args", otel_value_string_array(arguments, count));
}

void oteli_detect_process_command(struct oteli_facts *facts)
{
    oteli_detect_command(facts, oteli_facts_read(facts, "/proc/self/cmdline"));
}

otel_slice oteli_user_name(otel_slice passwd, unsigned long user)
{
    otel_slice line;
    while (oteli_piece_next(&passwd, '\n', &line)) {
        otel_slice name;
        otel_slice password;
        otel_slice id;
        otel_slice rest;
        int64_t number;
        if (oteli_cut(line, ':', &name, &rest) && oteli_cut(rest, ':', &password, &rest) &&
            oteli_cut(rest, ':', &id, &rest) && oteli_parse_whole(id, &number) &&
            (uint64_t)number == user)
            return name;
    }
    return (otel_slice){"", 0};
}

/* NSS knows more users than the file, but may have to ask a server for them. */
void oteli_detect_process_owner(struct oteli_facts *facts)
{
    const otel_slice passwd = oteli_facts_read(facts, "/etc/passwd");
    const otel_slice name = oteli_user_name(passwd, geteuid());
    if (name.length != 0)
        oteli_facts_set_text(facts, "process.owner", name);
}

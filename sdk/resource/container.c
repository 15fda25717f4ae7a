/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/resource/container.c - container.id: see detectors.h. Start/stop only.
 *
 * Runtimes name the control group of a container after it, where the process can see that name
 * (version 1, and version 2 without a namespace of its own):
 *
 *     0::/system.slice/docker-<id>.scope          Docker, Podman (libpod-), CRI-O (crio-)
 *     1:name=systemd:/kubepods/besteffort/pod<uid>/<id>
 *     0::/kubepods-pod<uid>.slice:cri-containerd:<id>
 *
 * Otherwise it can see where the files that runtimes mount into it come from:
 *
 *     … /var/lib/docker/containers/<id>/hostname /etc/hostname …
 *     … /var/lib/containers/storage/overlay-containers/<id>/userdata/hosts /etc/hosts …
 *
 * containerd's such files are of the whole pod (…/sandboxes/<id>/…), so they say nothing. */
#include "common/text/text.h"
#include "sdk/resource/detectors.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { ID_LENGTH = 64, TASK_ID_LENGTH = 32 };

static size_t hex_digits(otel_slice text)
{
    size_t at = 0;
    while (at < text.length && ((text.data[at] >= '0' && text.data[at] <= '9') ||
                                (text.data[at] >= 'a' && text.data[at] <= 'f')))
        at++;
    return at;
}

static bool is_id(otel_slice text)
{
    return text.length == ID_LENGTH && hex_digits(text) == ID_LENGTH;
}

/* As on AWS Fargate: 32 digits of the task, a dash, a number. */
static bool is_task_id(otel_slice text)
{
    if (text.length < TASK_ID_LENGTH + 2 || hex_digits(text) != TASK_ID_LENGTH ||
        text.data[TASK_ID_LENGTH] != '-')
        return false;
    for (size_t i = TASK_ID_LENGTH + 1; i < text.length; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    return true;
}

/* The id in the last part of a control group's path. */
static otel_slice id_of(otel_slice part)
{
    static const char scope[] = ".scope";
    const size_t suffix = sizeof scope - 1;
    if (is_task_id(part))
        return part;
    if (part.length > suffix && memcmp(part.data + part.length - suffix, scope, suffix) == 0)
        part.length -= suffix;
    for (size_t i = part.length; i > 0; i--)
        if (part.data[i - 1] == '-' || part.data[i - 1] == ':') {
            part = (otel_slice){part.data + i, part.length - i};
            break;
        }
    return is_id(part) ? part : (otel_slice){"", 0};
}

otel_slice oteli_container_in_cgroup(otel_slice cgroup)
{
    otel_slice line;
    while (oteli_piece_next(&cgroup, '\n', &line)) {
        size_t begin = line.length;
        while (begin > 0 && line.data[begin - 1] != '/')
            begin--;
        const otel_slice id = id_of((otel_slice){line.data + begin, line.length - begin});
        if (id.length != 0)
            return id;
    }
    return (otel_slice){"", 0};
}

/* The id behind "containers/" in one line, if a directory is named so. */
static otel_slice id_in_line(otel_slice line)
{
    static const char folder[] = "containers/";
    const size_t length = sizeof folder - 1;
    for (size_t i = 1; i + length + ID_LENGTH < line.length; i++) {
        if (memcmp(line.data + i, folder, length) != 0 ||
            (line.data[i - 1] != '/' && line.data[i - 1] != '-'))
            continue;
        const otel_slice id = {line.data + i + length, ID_LENGTH};
        if (is_id(id) && id.data[ID_LENGTH] == '/')
            return id;
    }
    return (otel_slice){"", 0};
}

otel_slice oteli_container_in_mounts(otel_slice mountinfo)
{
    static const char *const points[] = {" /etc/hostname ", " /etc/hosts ", " /etc/resolv.conf "};
    otel_slice line;
    while (oteli_piece_next(&mountinfo, '\n', &line)) {
        for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
            const char *point = memmem(line.data, line.length, points[i], strlen(points[i]));
            const size_t before = point != NULL ? (size_t)(point - line.data) : 0;
            const otel_slice id = id_in_line((otel_slice){line.data, before});
            if (id.length != 0)
                return id;
        }
    }
    return (otel_slice){"", 0};
}

bool oteli_may_be_mounted(const char *path)
{
#ifdef STATX_ATTR_MOUNT_ROOT
    struct statx status;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &status) != 0)
        return errno != ENOENT && errno != ENOTDIR;
    if ((status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0)
        return (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
#else
    (void)path;
#endif
    return true;
}

/* The kernel writes down all mounts when that file is read, which are thousands on some hosts. */
otel_slice oteli_container_id(struct oteli_facts *facts)
{
    const otel_slice id = oteli_container_in_cgroup(oteli_facts_read(facts, "/proc/self/cgroup"));
    if (id.length != 0 ||
        !(oteli_may_be_mounted("/etc/hostname") || oteli_may_be_mounted("/etc/hosts") ||
          oteli_may_be_mounted("/etc/resolv.conf")))
        return id;
    return oteli_container_in_mounts(oteli_facts_read(facts, "/proc/self/mountinfo"));
}

void oteli_detect_container(struct oteli_facts *facts)
{
    const otel_slice id = oteli_container_id(facts);
    if (id.length != 0)
        oteli_facts_set_text(facts, "container.id", id);
}

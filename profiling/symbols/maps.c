/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/maps.c - the contracts are in maps.h. Any thread; owns nothing. */
#include "profiling/symbols/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A path may have four characters for each of its own. */
enum { LINE_MAX_BYTES = 4 * PATH_MAX + 256, BUFFER_BYTES = LINE_MAX_BYTES + 4096 };

struct text {
    const char *at;
    const char *end;
};

/* Digits of this base, and then `mark`, or, without one, the end or a blank. */
static bool take_number(struct text *text, unsigned base, char mark, uint64_t *number)
{
    static const char digits[] = "0123456789abcdef";
    const char *const start = text->at;
    uint64_t value = 0;
    for (; text->at < text->end; text->at++) {
        const char *digit = memchr(digits, *text->at, base);
        if (digit == NULL)
            break;
        if (value > (UINT64_MAX - (base - 1)) / base)
            return false;
        value = value * base + (uint64_t)(digit - digits);
    }
    if (text->at == start)
        return false;
    *number = value;
    if (mark == '\0')
        return text->at == text->end || *text->at == ' ';
    return text->at < text->end && *text->at++ == mark;
}

/* rwxp and a blank. */
static bool take_permissions(struct text *text, bool *is_executable)
{
    enum { PERMISSIONS = 5 };
    if (text->end - text->at < PERMISSIONS || text->at[PERMISSIONS - 1] != ' ')
        return false;
    *is_executable = text->at[2] == 'x';
    text->at += PERMISSIONS;
    return true;
}

static bool take_path(struct text *text, char path[PATH_MAX])
{
    size_t length = 0;
    while (text->at < text->end && *text->at == ' ')
        text->at++;
    while (text->at < text->end) {
        const bool is_newline = text->end - text->at >= 4 && memcmp(text->at, "\\012", 4) == 0;
        if (*text->at == '\0' || length + 1 >= PATH_MAX)
            return false;
        path[length++] = *text->at;
        if (is_newline)
            path[length - 1] = '\n';
        text->at += is_newline ? 4 : 1;
    }
    path[length] = '\0';
    return true;
}

bool oteli_maps_parse(const char *line, size_t length, struct oteli_maps_range *range)
{
    struct text text = {line, line + length};
    uint64_t major = 0;
    uint64_t minor = 0;
    if (!take_number(&text, 16, '-', &range->start) ||
        !take_number(&text, 16, ' ', &range->limit) ||
        !take_permissions(&text, &range->is_executable) ||
        !take_number(&text, 16, ' ', &range->file_offset) || !take_number(&text, 16, ':', &major) ||
        !take_number(&text, 16, ' ', &minor) || !take_number(&text, 10, '\0', &range->inode) ||
        !take_path(&text, range->path))
        return false;
    range->device_major = (uint32_t)major;
    range->device_minor = (uint32_t)minor;
    return range->start < range->limit && major <= UINT32_MAX && minor <= UINT32_MAX;
}

/* Hand out the lines that are whole; gives how many bytes those are. */
static size_t hand_out(const char *buffer, size_t used, oteli_maps_take *take, void *state)
{
    struct oteli_maps_range range;
    size_t done = 0;
    for (const char *end; (end = memchr(buffer + done, '\n', used - done)) != NULL;) {
        const size_t length = (size_t)(end - buffer) - done;
        if (oteli_maps_parse(buffer + done, length, &range))
            take(state, &range);
        done += length + 1;
    }
    return done;
}

bool oteli_maps_read(const char *file, oteli_maps_take *take, void *state)
{
    char buffer[BUFFER_BYTES];
    const int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t used = 0;
    ssize_t got;
    do {
        got = read(fd, buffer + used, sizeof buffer - used);
        if (got < 0 && errno == EINTR)
            continue;
        used += got > 0 ? (size_t)got : 0;
        const size_t done = hand_out(buffer, used, take, state);
        used -= done;
        memmove(buffer, buffer + done, used);
        if (used == sizeof buffer)
            used = 0; /* no line is so long */
    } while (got > 0 || (got < 0 && errno == EINTR));
    close(fd);
    return got == 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/published_settings.c - the contracts are in sdk/lifecycle/published_settings.h. */
#include "sdk/lifecycle/published_settings.h"

#include "sdk/process_context/process_context.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LINE_BYTES = 250, /* what the kernel takes as a name, with the NUL */
    PIECE_BYTES = 220 /* of a message, in a line */
};

static void *lines[OTELI_PUBLISHED_LINES];
static size_t count;

/* An oteli_config_teller. */
static void put_line(const void *unused, const char *name, const char *value, const char *from)
{
    (void)unused;
    char line[LINE_BYTES];
    if (count == OTELI_PUBLISHED_LINES)
        return;
    snprintf(line, sizeof line, OTELI_PUBLISHED_PREFIX "%02zu:%s\t%s\t%s", count, name, from,
             value);
    const int file = oteli_memory_file(line);
    if (file < 0)
        return;
    void *page = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE, file, 0);
    close(file);
    if (page != MAP_FAILED)
        lines[count++] = page;
}

void oteli_published_put(const struct oteli_config *config, const char *message)
{
    const int saved_errno = errno;
    oteli_published_take_back();
    if (strcmp(config->thread_context, "on") == 0) {
        put_line(NULL, "otel-c", OTEL_VERSION, "");
        for (; *message != '\0'; message += strnlen(message, PIECE_BYTES - 1)) {
            char piece[PIECE_BYTES];
            snprintf(piece, sizeof piece, "%s", message);
            put_line(NULL, "message", piece, "");
        }
        oteli_config_tell(config, put_line, NULL);
    }
    errno = saved_errno;
}

void oteli_published_take_back(void)
{
    while (count != 0)
        munmap(lines[--count], 1);
}

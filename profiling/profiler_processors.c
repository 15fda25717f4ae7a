/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profiler_processors.c - the contracts are in profiler_processors.h. The profiler's
 * thread. */
#include "profiling/profiler_processors.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 4096 }; /* what the kernel gives of such a file */

/* "3" or "3-5", up to a comma or the end. NULL: it is neither. */
static const char *parse_range(struct oteli_processors *processors, const char *text)
{
    char *end;
    if (*text < '0' || *text > '9')
        return NULL;
    const unsigned long first = strtoul(text, &end, 10);
    unsigned long last = first;
    if (*end == '-') {
        text = end + 1;
        last = strtoul(text, &end, 10);
        if (end == text)
            return NULL;
    }
    if (last < first || last >= OTELI_PROCESSORS_MOST)
        return NULL;
    for (unsigned long number = first; number <= last; number++)
        oteli_processors_add(processors, (unsigned)number);
    return *end == ',' ? end + 1 : end;
}

bool oteli_processors_parse(struct oteli_processors *processors, const char *text)
{
    *processors = (struct oteli_processors){{0}};
    do
        text = parse_range(processors, text);
    while (text != NULL && *text != '\0' && *text != '\n');
    return text != NULL;
}

static bool read_online(struct oteli_processors *processors)
{
    char text[TEXT_BYTES + 1];
    const int file = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    const ssize_t length = read(file, text, TEXT_BYTES);
    close(file);
    if (length <= 0)
        return false;
    text[length] = '\0';
    return oteli_processors_parse(processors, text);
}

void oteli_processors_online(struct oteli_processors *processors)
{
    if (read_online(processors))
        return;
    const long count = sysconf(_SC_NPROCESSORS_CONF);
    *processors = (struct oteli_processors){{0}};
    for (long number = 0; number < count && number < OTELI_PROCESSORS_MOST; number++)
        oteli_processors_add(processors, (unsigned)number);
}

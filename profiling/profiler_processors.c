/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profiler_processors.c - the contracts are in profiler_processors.h. The profiler's
 * thread. */
#include "profiling/profiler_processors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 4096 }; /* what the kernel gives of such a file */

bool oteli_processors_parse(struct oteli_processors *processors, const char *text)
{
    *processors = (struct oteli_processors){{0}};
    for (;;) {
        char *end;
        const unsigned long first = strtoul(text, &end, 10);
        unsigned long last = first;
        if (end == text)
            return false;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (last < first || last >= OTELI_PROCESSORS_MOST)
            return false;
        for (unsigned long number = first; number <= last; number++)
            oteli_processors_add(processors, (unsigned)number);
        if (*end != ',')
            return *end == '\n' || *end == '\0';
        text = end + 1;
    }
}

static bool read_online(struct oteli_processors *processors)
{
    char text[TEXT_BYTES + 1];
    FILE *file = fopen("/sys/devices/system/cpu/online", "re");
    if (file == NULL)
        return false;
    const bool is_read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    return is_read && oteli_processors_parse(processors, text);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_process.c - the contract is in
 * tools/doctor/settings/doctor_process.h. */
#include "tools/doctor/settings/doctor_process.h"

#include "sdk/lifecycle/published_settings.h"
#include "tools/doctor/settings/doctor_settings.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text of a line of /proc/PID/maps that is one of ours, and its number; NULL: it is none. */
static char *published_text(char *line, size_t *number)
{
    static const char prefix[] = "/memfd:" OTELI_PUBLISHED_PREFIX;
    static const char end[] = " (deleted)\n";
    char *text = strchr(line, '/');
    const size_t length = strlen(line);
    if (text == NULL || strncmp(text, prefix, sizeof prefix - 1) != 0 || length < sizeof end ||
        strcmp(line + length - (sizeof end - 1), end) != 0)
        return NULL;
    line[length - (sizeof end - 1)] = '\0';
    *number = strtoul(text + sizeof prefix - 1, &text, 10);
    return *number < OTELI_PUBLISHED_LINES && *text == ':' ? text + 1 : NULL;
}

static void take_line(char *text, struct doctor_record *record)
{
    struct doctor_process *process = &record->process;
    const char *name = strsep(&text, "\t");
    const char *from = strsep(&text, "\t");
    const size_t used = strlen(process->message);
    if (text == NULL)
        return;
    process->state = DOCTOR_PROCESS_SPEAKS;
    if (strcmp(name, "message") == 0)
        snprintf(process->message + used, sizeof process->message - used, "%s", text);
    else
        doctor_settings_add(record, name, text, from);
}

bool doctor_process_look(struct doctor_record *record)
{
    struct doctor_process *process = &record->process;
    char *texts[OTELI_PUBLISHED_LINES] = {NULL};
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/maps", process->pid);
    FILE *maps = fopen(path, "re");
    if (maps == NULL) {
        snprintf(process->words, sizeof process->words, "%s", strerror(errno));
        process->state = kill((pid_t)process->pid, 0) != 0 && errno == ESRCH
                             ? DOCTOR_PROCESS_ABSENT
                             : DOCTOR_PROCESS_FORBIDDEN;
        return true;
    }
    process->state = DOCTOR_PROCESS_SILENT;
    bool fine = true;
    char *line = NULL;
    size_t size = 0;
    size_t number;
    while (fine && getline(&line, &size, maps) > 0) {
        const char *text = published_text(line, &number);
        if (text == NULL || texts[number] != NULL)
            continue;
        texts[number] = strdup(text);
        fine = texts[number] != NULL;
    }
    for (size_t i = 0; i < OTELI_PUBLISHED_LINES; i++) {
        if (texts[i] != NULL)
            take_line(texts[i], record);
        free(texts[i]);
    }
    free(line);
    fclose(maps);
    return fine;
}

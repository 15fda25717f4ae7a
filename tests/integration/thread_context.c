/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/thread_context.c - starts a program that plays the scene of
 * thread_context_scene.h, and reads it from outside at each of its points.
 *
 *     thread_context WAY OBJECT PROGRAM [PLUGIN]
 *
 * WAY is how the variable is to be found: linker or offset; or invisible. OBJECT is a part of the
 * name of the file that is to define it, or "-".
 *
 * Threads:  one. */
#include "tests/support/context_reader.h"

#include <otel/base.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE = 4096, POINTS_AT_LEAST = 25 };

static const char *way, *object;
static const char *point = "the start";
static struct context_reader *reader;
static unsigned faults;
static uint64_t last_published;
static pid_t last_process;

__attribute__((format(printf, 1, 2))) static void fault(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", point);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, " %s\n", reader ? context_reader_why(reader) : "");
    va_end(arguments);
    faults++;
}

static void print_hex(char *text, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sprintf(text + 2 * i, "%02x", bytes[i]);
}

/* What is visible of a thread, in the words of the scene. */
static enum context_found describe(pid_t thread, char text[64], struct context_record *record)
{
    enum context_found found = context_reader_thread(reader, thread, record);
    strcpy(text, "none");
    if (found == CONTEXT_FOUND) {
        print_hex(text, record->trace_id, 16);
        text[32] = ':';
        print_hex(text + 33, record->span_id, 8);
        sprintf(text + 49, ":%02x", record->flags);
    }
    return found;
}

/* One "THREAD:what it is working for" of the line. */
static void check_thread(const char *word)
{
    struct context_record record;
    char text[64], *expected;
    pid_t thread = (pid_t)strtol(word, &expected, 10);
    expected++;
    enum context_found found = describe(thread, text, &record);
    if (strcmp(way, "invisible") == 0) {
        if (found != CONTEXT_INVISIBLE)
            fault("thread %d is visible", thread);
        return;
    }
    if (found == CONTEXT_FAULT || found == CONTEXT_INVISIBLE) {
        fault("thread %d is not to be read: %d", thread, found);
        return;
    }
    if (strcmp(text, expected) != 0) {
        fault("thread %d has %s instead of %s", thread, text, expected);
        return;
    }
    if (found != CONTEXT_FOUND)
        return;
    if (record.is_by_linker != (strcmp(way, "linker") == 0))
        fault("it is not found by %s", way);
    if (!strstr(record.object, object))
        fault("it is found in %s, and not in %s", record.object, object);
    if (record.attributes_size)
        fault("there are attributes");
    context_reader_misplace(reader, 8);
    if (describe(thread, text, &record) == CONTEXT_FOUND && strcmp(text, expected) == 0)
        fault("thread %d has the same eight bytes further on", thread);
    context_reader_misplace(reader, 0);
}

static void check_process(pid_t process, const char *service)
{
    struct context_process found;
    enum context_found is = context_reader_process(reader, &found);
    if (strcmp(service, "none") == 0) {
        if (is != CONTEXT_INVISIBLE)
            fault("the process has a context: %d", is);
        return;
    }
    if (is != CONTEXT_FOUND) {
        fault("the process has no context: %d", is);
        return;
    }
    if (strcmp(found.service_name, service) != 0)
        fault("service.name is \"%s\"", found.service_name);
    if (strcmp(found.schema, "tlsdesc_v1_dev") != 0)
        fault("threadlocal.schema_version is \"%s\"", found.schema);
    if (found.resource_count < 4)
        fault("the resource has only %zu attributes", found.resource_count);
    if (process == last_process && found.published_at != last_published)
        fault("it was published again");
    if (last_process && process != last_process && found.published_at == last_published)
        fault("the child has what its parent had published");
    last_process = process;
    last_published = found.published_at;
}

/* Threads that the scene does not speak of are otel-c's, and have nothing. */
static void check_others(const char *line)
{
    pid_t threads[64];
    size_t count = context_reader_threads(reader, threads, 64);
    for (size_t i = 0; i < count && i < 64; i++) {
        struct context_record record;
        char word[24], text[64];
        snprintf(word, sizeof word, " %d:", threads[i]);
        if (!strstr(line, word) && describe(threads[i], text, &record) == CONTEXT_FOUND)
            fault("thread %d has %s", threads[i], text);
    }
}

static void check_point(char *line)
{
    static char name[64];
    char service[64], *rest, whole[LINE];
    int process, status, used = 0;
    snprintf(whole, sizeof whole, "%s", line);
    if (sscanf(line, "%63s %d %63s %d%n", name, &process, service, &status, &used) != 4) {
        fault("it says %s", line);
        return;
    }
    point = name;
    reader = context_reader_open(process);
    if (!reader) {
        fault("it cannot be attached to: %s", strerror(errno));
        return;
    }
    check_process(process, service);
    for (char *word = strtok_r(line + used, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        check_thread(word);
    check_others(whole);
    int expected = strcmp(way, "invisible") == 0 ? OTEL_ERROR_UNSUPPORTED : OTEL_OK;
    if (status != expected)
        fault("the selftest answers %d", status);
    context_reader_close(reader);
    reader = NULL;
}

static pid_t start(char **command, FILE **from, FILE **to)
{
    int in[2], out[2];
    if (pipe(in) || pipe(out))
        return -1;
    pid_t child = fork();
    if (child == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        for (int i = 3; i < 10; i++)
            close(i);
        execv(command[0], command);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    *from = fdopen(out[0], "r");
    *to = fdopen(in[1], "w");
    return *from && *to ? child : -1;
}

int main(int count, char **arguments)
{
    char line[LINE] = "";
    FILE *from, *to;
    unsigned points = 0;
    int status = 0;
    if (count < 4)
        return 2;
    way = arguments[1];
    object = strcmp(arguments[2], "-") == 0 ? "" : arguments[2];
    pid_t child = start(arguments + 3, &from, &to);
    if (child < 0)
        return 1;
    while (fgets(line, sizeof line, from) && strcmp(line, "done\n") != 0) {
        line[strcspn(line, "\n")] = '\0';
        check_point(line);
        points++;
        if (fputs("go\n", to) < 0 || fflush(to))
            break;
    }
    point = "the end";
    if (strcmp(line, "done\n") != 0)
        fault("the scene ended early");
    if (points < POINTS_AT_LEAST)
        fault("there were only %u points", points);
    if (waitpid(child, &status, 0) != child || status != 0)
        fault("the program ended with %d", status);
    printf("%u points, %u faults\n", points, faults);
    return faults > 0;
}

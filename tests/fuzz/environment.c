/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/environment.c - an environment of any texts, one on each line: what it says can be
 * read and listed, and a child's environment is what it was but for the variables that carry
 * the context. */
#include "tests/fuzz/fuzz.h"
#include <otel/propagate.h>

enum { VARIABLES = 64, TEXT = 16 * 1024 };

static bool is_carried(const char *variable)
{
    return strncmp(variable, "TRACEPARENT=", 12) == 0 ||
           strncmp(variable, "TRACESTATE=", 11) == 0 || strncmp(variable, "BAGGAGE=", 8) == 0;
}

static void check_name(void *state, const char *name, size_t length)
{
    size_t *count = state;
    ++*count;
    if (length == 0 || strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") < length ||
        (name[0] >= '0' && name[0] <= '9') || name[length] != '=')
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT + 1];
    static otel_composite_propagator composite;
    const otel_propagator *const parts[] = {otel_propagator_trace_context(),
                                            otel_propagator_baggage()};
    const char *environment[VARIABLES + 1];
    size_t count = 0;
    size = size < TEXT ? size : TEXT;
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *line = text, *rest = text; count < VARIABLES && line != NULL;) {
        rest = strchr(line, '\n');
        environment[count++] = line;
        if (rest != NULL)
            *rest++ = '\0';
        line = rest;
    }
    environment[count] = NULL;

    otel_propagator_set(otel_propagator_compose(&composite, parts, 2));
    const otel_carrier_reader reader = {otel_environment_get, otel_environment_list, environment};
    const otel_context empty = {0};
    const otel_context context = otel_extract_from(&empty, &reader);
    size_t names = 0;
    otel_environment_list(environment, check_name, &names);
    fuzz_check(names <= count);

    char **child = otel_environment_for_child(&context, environment);
    fuzz_check(child != NULL);
    char **at = child;
    for (size_t i = 0; i < count; i++) {
        if (is_carried(environment[i]))
            continue;
        fuzz_check(strcmp(environment[i], *at++) == 0);
    }
    for (; *at != NULL; at++)
        fuzz_check(is_carried(*at));
    free(child);
    return 0;
}

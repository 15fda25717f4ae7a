/* SPDX-License-Identifier: Apache-2.0 */
/* api/propagators/environment_carrier.c - environment variables as a carrier. Any thread that may
 * read the environment.
 *
 * A header's name becomes a variable's: x-b3-traceid is X_B3_TRACEID. What is in a value is the
 * propagators' matter.
 *
 * Source: OpenTelemetry specification, context/env-carriers.md. */
#include "common/config/configuration.h"
#include <otel/propagate.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The character at `i` of the variable for this name, which may be one longer. */
static char normalized(const char *name, size_t i)
{
    if (name[0] == '\0' || (name[0] >= '0' && name[0] <= '9')) {
        if (i == 0)
            return '_';
        i--;
    }
    const char c = name[i];
    if (c >= 'a' && c <= 'z')
        return (char)(c - 'a' + 'A');
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
}

static size_t normalized_length(const char *name)
{
    const size_t length = strlen(name);
    return length + (length == 0 || (name[0] >= '0' && name[0] <= '9'));
}

/* The value in a `name=value` text, if the name is the variable for `header`; or NULL. */
static const char *value_of(const char *variable, const char *header)
{
    const size_t length = normalized_length(header);
    for (size_t i = 0; i < length; i++)
        if (variable[i] != normalized(header, i))
            return NULL;
    return variable[length] == '=' ? variable + length + 1 : NULL;
}

const char *otel_environment_get(void *carrier, const char *name, size_t index, size_t *length)
{
    const char *const *at = carrier != NULL ? carrier : oteli_env_trusted();
    for (; index == 0 && *at != NULL; at++) {
        const char *value = value_of(*at, name);
        if (value != NULL) {
            *length = strlen(value);
            return value;
        }
    }
    return NULL;
}

/* Whether the first `length` characters are a name that normalizing leaves as it is. */
static bool is_normalized(const char *name, size_t length)
{
    if (length == 0 || (name[0] >= '0' && name[0] <= '9'))
        return false;
    for (size_t i = 0; i < length; i++)
        if (normalized(name, i) != name[i])
            return false;
    return true;
}

void otel_environment_list(void *carrier, otel_visit_header *visit, void *state)
{
    for (const char *const *at = carrier != NULL ? carrier : oteli_env_trusted(); *at != NULL;
         at++) {
        const char *end = strchr(*at, '=');
        if (end != NULL && is_normalized(*at, (size_t)(end - *at)))
            visit(state, *at, (size_t)(end - *at));
    }
}

otel_context otel_extract_environment(const otel_context *context)
{
    const otel_carrier_reader reader = {otel_environment_get, otel_environment_list, NULL};
    return otel_extract_from(context, &reader);
}

/* --- for a child --- */

/* Variables that the propagator has set: `name=value`, each with its NUL, one behind the
 * other. */
struct additions {
    char *data;
    size_t length;
    size_t count;
    bool has_failed;
};

static void add(void *carrier, const char *name, const char *value, size_t length)
{
    struct additions *additions = carrier;
    const size_t name_length = normalized_length(name);
    char *data = realloc(additions->data, additions->length + name_length + 1 + length + 1);
    if (data == NULL) {
        additions->has_failed = true;
        return;
    }
    additions->data = data;
    char *at = data + additions->length;
    for (size_t i = 0; i < name_length; i++)
        *at++ = normalized(name, i);
    *at++ = '=';
    memcpy(at, value, length);
    at[length] = '\0';
    additions->length = (size_t)(at - data) + length + 1;
    additions->count++;
}

/* Whether the propagator has set this variable, at `from` or behind it. */
static bool is_set(const struct additions *additions, const char *variable, size_t from)
{
    const char *end = strchr(variable, '=');
    const size_t name = end != NULL ? (size_t)(end - variable) + 1 : 0;
    for (size_t at = from; at < additions->length && name != 0;
         at += strlen(additions->data + at) + 1)
        if (strncmp(additions->data + at, variable, name) == 0)
            return true;
    return false;
}

/* Whether a variable of the parent's gives way to what the propagator has set, or did not set
 * this time. */
static bool gives_way(const char *variable, const struct additions *additions)
{
    const char *const *fields = otel_propagator_fields(otel_propagator_get());
    for (; *fields != NULL; fields++)
        if (value_of(variable, *fields) != NULL)
            return true;
    return is_set(additions, variable, 0);
}

/* Add a variable to a block, of which `*text` is the end. */
static char **put(char **pointer, char **text, const char *variable)
{
    const size_t size = strlen(variable) + 1;
    *pointer = memcpy(*text, variable, size);
    *text += size;
    return pointer + 1;
}

/* One block: the pointers, and behind them the texts. */
static char **join(const char *const *environment, const struct additions *additions)
{
    size_t count = additions->count + 1;
    size_t bytes = additions->length;
    for (const char *const *at = environment; *at != NULL; at++) {
        bytes += strlen(*at) + 1;
        count++;
    }
    char **const block = malloc(count * sizeof *block + bytes);
    if (block == NULL)
        return NULL;
    char **pointer = block;
    char *text = (char *)(block + count);
    for (const char *const *at = environment; *at != NULL; at++)
        if (!gives_way(*at, additions))
            pointer = put(pointer, &text, *at);
    for (size_t at = 0; at < additions->length;) {
        const char *variable = additions->data + at;
        at += strlen(variable) + 1;
        if (!is_set(additions, variable,
                    at)) /* of a name that is set twice the last value counts */
            pointer = put(pointer, &text, variable);
    }
    *pointer = NULL;
    return block;
}

char **otel_environment_for_child(const otel_context *context, const char *const *environment)
{
    const int saved_errno = errno;
    struct additions additions = {.data = NULL};
    otel_inject(context, add, &additions);
    char **block = NULL;
    if (!additions.has_failed)
        block = join(environment != NULL ? environment : oteli_env_all(), &additions);
    free(additions.data);
    errno = saved_errno;
    return block;
}

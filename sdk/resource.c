/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/resource.c - gather the resource's attributes and encode them. Start/stop only. */
#include "sdk/resource.h"
#include "api/values.h"
#include "common/log.h"
#include "common/text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1024 }; /* attributes of OTEL_RESOURCE_ATTRIBUTES; more is a mistake */

/* A growing list; the strings it points to live until it is encoded. */
struct list {
    otel_attribute *attributes;
    size_t count;
    size_t capacity;
    bool failed;
};

static void add(struct list *list, const char *key, otel_value value)
{
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity == 0 ? 32 : list->capacity * 2;
        otel_attribute *more = realloc(list->attributes, capacity * sizeof *more);
        if (more == NULL) {
            list->failed = true;
            return;
        }
        list->attributes = more;
        list->capacity = capacity;
    }
    list->attributes[list->count++] = otel_attribute_of(key, value);
}

/* What the process says about itself. The texts are filled in and must outlive the list. */
struct process {
    char path[PATH_MAX];
    char unknown_service[PATH_MAX];
};

static void add_process(struct list *list, struct process *process)
{
    const ssize_t length = readlink("/proc/self/exe", process->path, sizeof process->path - 1);
    process->path[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(process->path, '/');
    const char *name = slash != NULL ? slash + 1 : process->path;
    snprintf(process->unknown_service, sizeof process->unknown_service, "unknown_service%s%.*s",
             name[0] != '\0' ? ":" : "", PATH_MAX / 2, name);

    add(list, "service.name", otel_value_string(process->unknown_service));
    add(list, "telemetry.sdk.language", otel_value_string("c"));
    add(list, "telemetry.sdk.name", otel_value_string("otel-c"));
    add(list, "telemetry.sdk.version", otel_value_string(OTEL_VERSION));
    add(list, "process.pid", otel_value_int(getpid()));
    if (name[0] != '\0') {
        add(list, "process.executable.name", otel_value_string(name));
        add(list, "process.executable.path", otel_value_string(process->path));
    }
}

/* Decode `member` (key=value) into `text` and add it; false: it is malformed. */
static bool add_member(struct list *list, otel_slice member, char **text)
{
    otel_slice key;
    otel_slice value;
    size_t key_length;
    size_t value_length;
    if (!oteli_cut(member, '=', &key, &value) || key.length == 0)
        return false;
    char *at = *text;
    if (!oteli_percent_decode(key.data, key.length, at, &key_length) || key_length == 0)
        return false;
    at[key_length] = '\0';
    char *value_at = at + key_length + 1;
    if (!oteli_percent_decode(value.data, value.length, value_at, &value_length))
        return false;
    value_at[value_length] = '\0';
    *text = value_at + value_length + 1;
    add(list, at, otel_value_string_n(value_at, value_length));
    return true;
}

/* Any malformed member spoils the whole variable: half of it would mislead. */
static void add_environment(struct list *list, const char *variable, char *text)
{
    const size_t before = list->count;
    otel_slice rest = oteli_slice_of(variable);
    otel_slice member;
    while (oteli_list_next(&rest, &member)) {
        if (!add_member(list, member, &text) || list->count - before > MOST) {
            OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                             "OTEL_RESOURCE_ATTRIBUTES is malformed at \"%.*s\"; "
                             "none of it is used",
                             (int)(member.length < 100 ? member.length : 100), member.data);
            list->count = before;
            return;
        }
    }
}

static bool encode(struct oteli_resource *resource, const struct list *list)
{
    uint32_t dropped;
    const size_t size =
        oteli_key_values_size(list->attributes, list->count, UINT32_MAX, SIZE_MAX, &dropped);
    resource->otlp = malloc(size);
    if (resource->otlp == NULL)
        return false;
    resource->otlp_length = size;
    resource->pid = getpid();
    oteli_key_values_put((uint8_t *)resource->otlp, OTEL_FIELD_RESOURCE_ATTRIBUTE, list->attributes,
                         list->count, UINT32_MAX, SIZE_MAX);
    return true;
}

otel_status oteli_resource_init(struct oteli_resource *resource, const struct oteli_config *config,
                                const otel_attribute *attributes, size_t count)
{
    struct list list = {0};
    struct process process;
    const char *variable = config->resource_attributes != NULL ? config->resource_attributes : "";
    char *text = malloc(strlen(variable) * 2 + 2);
    *resource = (struct oteli_resource){0};
    add_process(&list, &process);
    if (text != NULL)
        add_environment(&list, variable, text);
    if (config->service_name != NULL)
        add(&list, "service.name", otel_value_string(config->service_name));
    for (size_t i = 0; attributes != NULL && i < count; i++)
        add(&list, attributes[i].key, attributes[i].value);
    const bool done = text != NULL && !list.failed && encode(resource, &list);
    free(list.attributes);
    free(text);
    return done ? OTEL_OK : OTEL_ERROR_NO_MEMORY;
}

/* Whether the program has not said something else in its place. */
static bool is_pid(const otel_attribute_view *attribute, int64_t pid)
{
    static const char key[] = "process.pid";
    return attribute->key.length == sizeof key - 1 &&
           memcmp(attribute->key.data, key, sizeof key - 1) == 0 &&
           attribute->value.type == OTEL_VALUE_INT && attribute->value.integer == pid;
}

otel_status oteli_resource_renew(struct oteli_resource *resource,
                                 const struct oteli_resource *parents)
{
    const otel_attribute pid = otel_attribute_of("process.pid", otel_value_int(getpid()));
    uint32_t dropped;
    const size_t pid_size = oteli_key_values_size(&pid, 1, 1, SIZE_MAX, &dropped);
    *resource = (struct oteli_resource){.pid = getpid()};
    resource->otlp = malloc(parents->otlp_length + pid_size);
    if (resource->otlp == NULL)
        return OTEL_ERROR_NO_MEMORY;
    uint8_t *at = (uint8_t *)resource->otlp;
    otel_slice rest = {parents->otlp, parents->otlp_length};
    const char *begin = rest.data;
    otel_attribute_view attribute;
    for (; otel_attribute_next(&rest, OTEL_FIELD_RESOURCE_ATTRIBUTE, &attribute);
         begin = rest.data) {
        if (is_pid(&attribute, parents->pid)) {
            at = oteli_key_values_put(at, OTEL_FIELD_RESOURCE_ATTRIBUTE, &pid, 1, 1, SIZE_MAX);
        } else {
            memcpy(at, begin, (size_t)(rest.data - begin));
            at += rest.data - begin;
        }
    }
    resource->otlp_length = (size_t)(at - (uint8_t *)resource->otlp);
    return OTEL_OK;
}

void oteli_resource_fini(struct oteli_resource *resource)
{
    free(resource->otlp);
    *resource = (struct oteli_resource){0};
}

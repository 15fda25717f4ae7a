/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/resource/resource_builder.c - see resource_builder.h. */
#include "sdk/resource/resource_builder.h"
#include "common/log.h"
#include "common/os/read_all.h"
#include "common/text/text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_FILE = 65536 };

void *oteli_facts_keep(struct oteli_facts *facts, size_t size)
{
    void *memory = facts->failed ? NULL : oteli_pool_take(&facts->pool, size);
    facts->failed = memory == NULL;
    return memory;
}

char *oteli_facts_copy(struct oteli_facts *facts, otel_slice text)
{
    char *copy = oteli_facts_keep(facts, text.length + 1);
    return copy != NULL ? oteli_slice_put(copy, text) : NULL;
}

static otel_attribute *find(const struct oteli_facts *facts, otel_slice key)
{
    for (size_t i = 0; i < facts->count; i++)
        if (oteli_is_same(oteli_key_of(&facts->attributes[i]), key))
            return &facts->attributes[i];
    return NULL;
}

const otel_value *oteli_facts_get(const struct oteli_facts *facts, const char *key)
{
    const otel_attribute *found = find(facts, oteli_slice_of(key));
    return found != NULL ? &found->value : NULL;
}

static bool make_room(struct oteli_facts *facts)
{
    if (facts->failed)
        return false;
    if (facts->count < facts->capacity)
        return true;
    const size_t capacity = facts->capacity == 0 ? 16 : facts->capacity * 2;
    otel_attribute *more = realloc(facts->attributes, capacity * sizeof *more);
    if (more == NULL) {
        facts->failed = true;
        return false;
    }
    facts->attributes = more;
    facts->capacity = capacity;
    return true;
}

void oteli_facts_add(struct oteli_facts *facts, const otel_attribute *attribute)
{
    const otel_slice key = oteli_key_of(attribute);
    if (key.length == 0) {
        OTELI_LOG(OTEL_LOG_WARN, "a resource attribute without a key is left out");
        return;
    }
    otel_attribute *found = find(facts, key);
    if (found != NULL)
        found->value = attribute->value;
    else if (make_room(facts))
        facts->attributes[facts->count++] = *attribute;
}

void oteli_facts_set(struct oteli_facts *facts, const char *key, otel_value value)
{
    const otel_attribute attribute = otel_attribute_of(key, value);
    oteli_facts_add(facts, &attribute);
}

void oteli_facts_set_text(struct oteli_facts *facts, const char *key, otel_slice text)
{
    const char *copy = oteli_facts_copy(facts, text);
    if (copy != NULL)
        oteli_facts_set(facts, key, otel_value_string_n(copy, text.length));
}

otel_slice oteli_facts_read(struct oteli_facts *facts, const char *path)
{
    /* Without O_NONBLOCK, open would wait for a writer of a FIFO. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    char *text = fd >= 0 ? malloc(LONGEST_FILE) : NULL; /* of which most is never touched */
    facts->failed |= fd >= 0 && text == NULL;
    const ssize_t length = text != NULL ? oteli_read_all(fd, text, LONGEST_FILE) : 0;
    const otel_slice all = {text, length > 0 ? (size_t)length : 0};
    const char *copy = all.length != 0 ? oteli_facts_copy(facts, all) : NULL;
    free(text);
    if (fd >= 0)
        close(fd);
    return copy != NULL ? (otel_slice){copy, all.length} : (otel_slice){"", 0};
}

static bool is_unset(const char *url)
{
    return url == NULL || url[0] == '\0';
}

static void merge_schema_url(struct oteli_facts *facts, const struct oteli_facts *updating)
{
    facts->has_two_schemas |= updating->has_two_schemas;
    if (is_unset(updating->schema_url))
        return;
    if (is_unset(facts->schema_url)) {
        facts->schema_url = updating->schema_url;
    } else if (strcmp(facts->schema_url, updating->schema_url) != 0) {
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                         "parts of the resource follow two schemas, %.200s and %.200s: it is sent "
                         "without a schema URL (OTEL_C_RESOURCE_DETECTORS chooses the parts)",
                         facts->schema_url, updating->schema_url);
        facts->has_two_schemas = true;
    }
}

void oteli_facts_merge(struct oteli_facts *facts, struct oteli_facts *updating)
{
    for (size_t i = 0; i < updating->count; i++)
        oteli_facts_add(facts, &updating->attributes[i]);
    merge_schema_url(facts, updating);
    if (facts->has_two_schemas)
        facts->schema_url = NULL;
    facts->failed |= updating->failed;

    oteli_pool_adopt(&facts->pool, &updating->pool);
    oteli_facts_fini(updating);
}

void oteli_facts_fini(struct oteli_facts *facts)
{
    oteli_pool_fini(&facts->pool);
    free(facts->attributes);
    *facts = (struct oteli_facts){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/resource/variable.c - OTEL_RESOURCE_ATTRIBUTES: see detectors.h. Start/stop only. */
#include "common/log.h"
#include "common/text/text.h"
#include "sdk/resource/detectors.h"

#include <string.h>

enum { MOST = 1024 }; /* attributes; more is a mistake */

/* Decode `member` (key=value) into memory of the facts and add it; false: it is malformed. */
static bool add_member(struct oteli_facts *facts, otel_slice member)
{
    otel_slice key;
    otel_slice value;
    size_t key_length;
    size_t value_length;
    if (!oteli_cut(member, '=', &key, &value))
        return false;
    char *name = oteli_facts_copy(facts, key);
    char *text = oteli_facts_copy(facts, value);
    if (name == NULL || text == NULL)
        return true;
    if (!oteli_percent_decode(name, key.length, name, &key_length) || key_length == 0 ||
        memchr(name, '\0', key_length) != NULL ||
        !oteli_percent_decode(text, value.length, text, &value_length))
        return false;
    name[key_length] = '\0';
    oteli_facts_set(facts, name, otel_value_string_n(text, value_length));
    return true;
}

/* Any malformed member spoils the whole variable: half of it would mislead. */
void oteli_detect_variable(struct oteli_facts *facts, const char *called, const char *text)
{
    otel_slice rest = oteli_slice_of(text);
    otel_slice member;
    for (size_t count = 0; !facts->failed && oteli_list_next(&rest, &member); count++) {
        if (count < MOST && add_member(facts, member))
            continue;
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "%s is malformed at \"%.*s\"; none of it is used", called,
                         (int)(member.length < 100 ? member.length : 100), member.data);
        facts->count = 0;
        return;
    }
}

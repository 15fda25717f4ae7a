/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_values.c - an attribute of a decoded request as text for people.
 *
 * Runs on otel-view's only thread; owns nothing. Lists and maps are walked with a small
 * stack; what is nested deeper than that is not worth reading. */
#include "tools/view/view_values.h"

#include "common/text/text.h"
#include "exporters/console/render.h"
#include <inttypes.h>

typedef Opentelemetry__Proto__Common__V1__AnyValue any_value;
typedef Opentelemetry__Proto__Common__V1__KeyValue key_value;

#define CASE(name) OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##name

enum { NESTING_MAX = 8 };

/* One list or map on the way to where we are. */
struct level {
    any_value **values; /* of a list */
    key_value **pairs;  /* of a map */
    size_t count, next;
};

/* Nobody shows more, so that more need not pass through the text. */
static size_t beginning(size_t length)
{
    return length < 2 * OTELI_RENDER_TEXT_MAX ? length : 2 * OTELI_RENDER_TEXT_MAX;
}

static void add_key(struct oteli_text *text, const char *key)
{
    oteli_text_add(text, key, beginning(strlen(key)));
    oteli_text_add_string(text, "=");
}

static void add_scalar(struct oteli_text *text, const any_value *value)
{
    switch (value != NULL ? value->value_case : 0) {
    case CASE(STRING_VALUE):
        oteli_text_add_quoted(
            text, (otel_slice){value->string_value, beginning(strlen(value->string_value))});
        break;
    case CASE(BOOL_VALUE):
        oteli_text_add_string(text, value->bool_value ? "true" : "false");
        break;
    case CASE(INT_VALUE):
        oteli_text_add_format(text, "%" PRId64, value->int_value);
        break;
    case CASE(DOUBLE_VALUE):
        oteli_text_add_double(text, value->double_value);
        break;
    case CASE(BYTES_VALUE):
        oteli_text_add_string(text, "0x");
        oteli_text_add_hex(text, value->bytes_value.data, beginning(value->bytes_value.len));
        break;
    case CASE(STRING_VALUE_STRINDEX):
        oteli_text_add_format(text, "string #%" PRId32, value->string_value_strindex);
        break;
    default:
        oteli_text_add_string(text, "null");
        break;
    }
}

/* Whether the value is a list or a map, which then is the new level. */
static bool opens_level(const any_value *value, struct level *level)
{
    *level = (struct level){0};
    if (value != NULL && value->value_case == CASE(ARRAY_VALUE) && value->array_value != NULL) {
        level->values = value->array_value->values;
        level->count = value->array_value->n_values;
        return true;
    }
    if (value != NULL && value->value_case == CASE(KVLIST_VALUE) && value->kvlist_value != NULL) {
        level->pairs = value->kvlist_value->values;
        level->count = value->kvlist_value->n_values;
        return true;
    }
    return false;
}

static bool is_map(const any_value *value)
{
    return value->value_case == CASE(KVLIST_VALUE);
}

void view_describe_attribute(struct oteli_text *text, const key_value *attribute)
{
    struct level levels[NESTING_MAX];
    const char *ends[NESTING_MAX];
    size_t depth = 0;
    const size_t limit = text->length + 2 * OTELI_RENDER_TEXT_MAX;
    const any_value *value = attribute->value;
    add_key(text, attribute->key);
    for (;;) {
        struct level inner;
        if (!opens_level(value, &inner)) {
            add_scalar(text, value);
        } else if (depth == NESTING_MAX) {
            oteli_text_add_string(text, "…");
        } else {
            oteli_text_add_string(text, is_map(value) ? "{" : "[");
            ends[depth] = is_map(value) ? "}" : "]";
            levels[depth++] = inner;
        }
        while (depth > 0 &&
               (levels[depth - 1].next == levels[depth - 1].count || text->length > limit))
            oteli_text_add_string(text, ends[--depth]);
        if (depth == 0)
            return;
        struct level *level = &levels[depth - 1];
        oteli_text_add_string(text, level->next != 0 ? ", " : "");
        if (level->pairs != NULL) {
            add_key(text, level->pairs[level->next]->key);
            value = level->pairs[level->next++]->value;
        } else {
            value = level->values != NULL ? level->values[level->next] : NULL;
            level->next++;
        }
    }
}

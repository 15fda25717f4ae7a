/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/json/json_value.c - the contracts are in json_value.h. One thread at a time; owns
 * nothing.
 *
 * Nested values are walked with a stack of frames, because how deep they go is the program's
 * choice:
 *
 *     frame: what is left of the array or map, and whether it has elements so far */
#include "exporters/json/json_value.h"

#include <string.h>

struct open_value {
    otel_slice rest;
    bool is_map;
    bool has_elements;
};

static bool is_container(const otel_value_view *value)
{
    return value->type == OTEL_VALUE_STRING_ARRAY || value->type == OTEL_VALUE_MAP;
}

/* ---- scalars -------------------------------------------------------------------------- */

/* OTLP's are always strings. */
static void add_integer(struct oteli_text *json, int64_t integer, enum oteli_json_form form)
{
    const int64_t exact_max = INT64_C(1) << 53;
    const bool is_number =
        form == OTELI_JSON_PLAIN && integer >= -exact_max && integer <= exact_max;
    if (!is_number)
        OTELI_JSON_ADD(json, "\"");
    oteli_json_add_signed(json, integer);
    if (!is_number)
        OTELI_JSON_ADD(json, "\"");
}

/* A scalar in OTLP is an object whose only member says what type it is of. */
static void add_scalar(struct oteli_text *json, const otel_value_view *value,
                       enum oteli_json_form form)
{
    static const char *const members[] = {
        [OTEL_VALUE_STRING] = "\"stringValue\":", [OTEL_VALUE_BOOL] = "\"boolValue\":",
        [OTEL_VALUE_INT] = "\"intValue\":",       [OTEL_VALUE_DOUBLE] = "\"doubleValue\":",
        [OTEL_VALUE_BYTES] = "\"bytesValue\":",
    };
    const bool is_typed =
        (size_t)value->type < sizeof members / sizeof *members && members[value->type] != NULL;
    if (form == OTELI_JSON_OTLP) {
        OTELI_JSON_ADD(json, "{");
        if (is_typed)
            oteli_text_add(json, members[value->type], strlen(members[value->type]));
    }
    switch (value->type) {
    case OTEL_VALUE_STRING:
        oteli_json_add_string(json, value->slice);
        break;
    case OTEL_VALUE_BOOL:
        oteli_text_add(json, value->boolean ? "true" : "false", value->boolean ? 4 : 5);
        break;
    case OTEL_VALUE_INT:
        add_integer(json, value->integer, form);
        break;
    case OTEL_VALUE_DOUBLE:
        oteli_json_add_double(json, value->real);
        break;
    case OTEL_VALUE_BYTES:
        oteli_json_add_base64(json, value->slice);
        break;
    default:
        if (form == OTELI_JSON_PLAIN)
            OTELI_JSON_ADD(json, "null");
        break;
    }
    if (form == OTELI_JSON_OTLP)
        OTELI_JSON_ADD(json, "}");
}

/* ---- keys ----------------------------------------------------------------------------- */

/* What stands before the value of a key. An empty key is left out, as every field of OTLP
 * that has its default value. */
static void open_entry(struct oteli_text *json, otel_slice key, enum oteli_json_form form)
{
    if (form == OTELI_JSON_OTLP) {
        OTELI_JSON_ADD(json, "{");
        if (key.length != 0) {
            OTELI_JSON_ADD(json, "\"key\":");
            oteli_json_add_string(json, key);
            OTELI_JSON_ADD(json, ",");
        }
        OTELI_JSON_ADD(json, "\"value\":");
    } else {
        oteli_json_add_string(json, key);
        OTELI_JSON_ADD(json, ":");
    }
}

static void close_entry(struct oteli_text *json, enum oteli_json_form form)
{
    if (form == OTELI_JSON_OTLP)
        OTELI_JSON_ADD(json, "}");
}

/* ---- arrays and maps ------------------------------------------------------------------ */

/* An empty list could be left out, but some receivers refuse a request without it. */
static struct open_value open_container(struct oteli_text *json, const otel_value_view *value,
                                        enum oteli_json_form form)
{
    const struct open_value frame = {.rest = value->slice, .is_map = value->type == OTEL_VALUE_MAP};
    if (form == OTELI_JSON_PLAIN)
        oteli_text_add(json, frame.is_map ? "{" : "[", 1);
    else if (frame.is_map)
        OTELI_JSON_ADD(json, "{\"kvlistValue\":{\"values\":[");
    else
        OTELI_JSON_ADD(json, "{\"arrayValue\":{\"values\":[");
    return frame;
}

static void close_container(struct oteli_text *json, const struct open_value *frame,
                            enum oteli_json_form form)
{
    if (frame->is_map && frame->has_elements)
        close_entry(json, form);
    if (form == OTELI_JSON_PLAIN)
        oteli_text_add(json, frame->is_map ? "}" : "]", 1);
    else
        OTELI_JSON_ADD(json, "]}}");
}

/* Go to the next element: what stands before it is added. False: there is none left. */
static bool next_element(struct oteli_text *json, struct open_value *frame, otel_value_view *value,
                         enum oteli_json_form form)
{
    otel_attribute_view entry = {0};
    const bool is_there = frame->is_map
                              ? otel_attribute_next(&frame->rest, OTEL_FIELD_MAP_ENTRY, &entry)
                              : otel_array_next(&frame->rest, &entry.value);
    if (!is_there)
        return false;
    if (frame->has_elements && frame->is_map)
        close_entry(json, form);
    if (frame->has_elements)
        OTELI_JSON_ADD(json, ",");
    frame->has_elements = true;
    if (frame->is_map)
        open_entry(json, entry.key, form);
    *value = entry.value;
    return true;
}

void oteli_json_add_value(struct oteli_text *json, const otel_value_view *value,
                          enum oteli_json_form form)
{
    struct open_value frames[OTELI_JSON_VALUE_DEPTH];
    static const otel_value_view too_deep = {.type = OTEL_VALUE_EMPTY};
    size_t depth = 0;
    otel_value_view at = *value;
    do {
        if (!is_container(&at))
            add_scalar(json, &at, form);
        else if (depth == OTELI_JSON_VALUE_DEPTH)
            add_scalar(json, &too_deep, form);
        else
            frames[depth++] = open_container(json, &at, form);
        while (depth != 0 && !next_element(json, &frames[depth - 1], &at, form))
            close_container(json, &frames[--depth], form);
    } while (depth != 0);
}

void oteli_json_add_attributes(struct oteli_text *json, otel_slice attributes, uint32_t field,
                               enum oteli_json_form form)
{
    otel_attribute_view attribute;
    for (bool is_first = true; otel_attribute_next(&attributes, field, &attribute);
         is_first = false) {
        if (!is_first)
            OTELI_JSON_ADD(json, ",");
        open_entry(json, attribute.key, form);
        oteli_json_add_value(json, &attribute.value, form);
        close_entry(json, form);
    }
}

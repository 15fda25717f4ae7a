/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/composable/rule.c - the contracts are in rule.h. App threads. */
#include "sdk/composable/rule.h"

#include "api/encode/leaf_value.h"
#include "common/text/pattern.h"
#include "common/text/text.h"
#include "sdk/sampling/consistent.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool copy_text(struct oteli_pool *pool, const char *from, const char **to)
{
    *to = from != NULL ? oteli_pool_text(pool, from, strlen(from)) : NULL;
    return from == NULL || *to != NULL;
}

static bool copy_list(struct oteli_pool *pool, const char *const *from, size_t count,
                      const char *const **to)
{
    const char **list = oteli_pool_array(pool, count, sizeof *list);
    *to = list;
    bool is_whole = list != NULL;
    for (size_t i = 0; is_whole && i < count; i++)
        is_whole = copy_text(pool, from[i] != NULL ? from[i] : "", &list[i]);
    return is_whole;
}

bool oteli_rule_init(otel_sampling_rule *rule, struct oteli_pool *pool,
                     const otel_sampling_rule *from)
{
    *rule = *from;
    rule->sampler = (otel_composable){.size = 0};
    return copy_text(pool, from->name_pattern, &rule->name_pattern) &&
           copy_text(pool, from->attribute_key, &rule->attribute_key) &&
           copy_text(pool, from->pattern_key, &rule->pattern_key) &&
           copy_list(pool, from->attribute_values, from->attribute_value_count,
                     &rule->attribute_values) &&
           copy_list(pool, from->attribute_patterns, from->attribute_pattern_count,
                     &rule->attribute_patterns) &&
           copy_list(pool, from->included, from->included_count, &rule->included) &&
           copy_list(pool, from->excluded, from->excluded_count, &rule->excluded);
}

static bool is_one_of(const char *const *values, size_t count, const char *text, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(values[i]) == length && memcmp(values[i], text, length) == 0)
            return true;
    return false;
}

static bool is_like_one_of(const char *const *patterns, size_t count, const char *text,
                           size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (oteli_pattern_matches(patterns[i], text, length))
            return true;
    return false;
}

typedef bool accepts(const otel_sampling_rule *rule, const char *text, size_t length);

static bool accepts_first(const otel_sampling_rule *rule, const char *text, size_t length)
{
    if (rule->attribute_value_count == 0 && rule->attribute_pattern_count == 0)
        return true;
    return is_one_of(rule->attribute_values, rule->attribute_value_count, text, length) ||
           is_like_one_of(rule->attribute_patterns, rule->attribute_pattern_count, text, length);
}

static bool accepts_second(const otel_sampling_rule *rule, const char *text, size_t length)
{
    if (rule->included_count != 0 &&
        !is_like_one_of(rule->included, rule->included_count, text, length))
        return false;
    return !is_like_one_of(rule->excluded, rule->excluded_count, text, length);
}

/* What a value that has no elements is compared as; a number in `text`. */
static otel_slice text_of(const otel_value *value, char text[OTELI_DECIMAL_SIZE])
{
    const double real = value->as.real;
    switch (value->type) {
    case OTEL_VALUE_STRING:
    case OTEL_VALUE_BYTES:
        if (value->as.string == NULL)
            break;
        return (otel_slice){value->as.string, value->length};
    case OTEL_VALUE_BOOL:
        return oteli_slice_of(value->as.boolean ? "true" : "false");
    case OTEL_VALUE_INT:
        snprintf(text, OTELI_DECIMAL_SIZE, "%lld", (long long)value->as.integer);
        return oteli_slice_of(text);
    case OTEL_VALUE_DOUBLE:
        if (isnan(real) || isinf(real))
            return oteli_slice_of(isnan(real) ? "NaN" : real < 0 ? "-Infinity" : "Infinity");
        return oteli_slice_of(oteli_decimal_text(real, text));
    case OTEL_VALUE_EMPTY:
    case OTEL_VALUE_STRING_ARRAY:
    case OTEL_VALUE_BOOL_ARRAY:
    case OTEL_VALUE_INT_ARRAY:
    case OTEL_VALUE_DOUBLE_ARRAY:
    case OTEL_VALUE_ARRAY:
    case OTEL_VALUE_MAP:
        break;
    }
    return (otel_slice){"", 0};
}

/* One element of an array, as a value of its own. */
static otel_value element_of(const otel_value *array, size_t i)
{
    if (array->type == OTEL_VALUE_BOOL_ARRAY)
        return otel_value_bool(array->as.booleans[i]);
    if (array->type == OTEL_VALUE_INT_ARRAY)
        return otel_value_int(array->as.integers[i]);
    if (array->type == OTEL_VALUE_DOUBLE_ARRAY)
        return otel_value_double(array->as.reals[i]);
    return otel_value_string(array->as.strings[i]);
}

/* Of an array, one element is enough. Arrays of values and maps are not looked into. */
static bool value_is_accepted(const otel_sampling_rule *rule, accepts *accept,
                              const otel_value *value)
{
    char text[OTELI_DECIMAL_SIZE];
    if (!oteli_value_has_elements(value)) {
        const otel_slice slice = text_of(value, text);
        return accept(rule, slice.data, slice.length);
    }
    const bool is_array = value->type <= OTEL_VALUE_DOUBLE_ARRAY && value->as.bytes != NULL;
    for (size_t i = 0; is_array && i < value->length; i++) {
        const otel_value element = element_of(value, i);
        const bool is_null = element.type == OTEL_VALUE_STRING && element.as.string == NULL;
        const otel_slice slice = text_of(&element, text);
        if (!is_null && accept(rule, slice.data, slice.length))
            return true;
    }
    return false;
}

/* The attribute of that name; of several the last, as on the span. */
static bool attribute_is_accepted(const otel_sampling_rule *rule, accepts *accept, const char *key,
                                  const otel_sampling_query *query)
{
    if (key == NULL)
        return true;
    for (size_t i = query->attribute_count; i-- > 0;)
        if (query->attributes[i].key != NULL &&
            oteli_is_text(oteli_key_of(&query->attributes[i]), key))
            return value_is_accepted(rule, accept, &query->attributes[i].value);
    return false;
}

static bool parent_is_accepted(unsigned parents, const otel_sampling_query *query)
{
    if (parents == 0)
        return true;
    unsigned parent = OTEL_RULE_PARENT_NONE;
    if (oteli_query_has_parent(query))
        parent = query->parent->is_remote ? OTEL_RULE_PARENT_REMOTE : OTEL_RULE_PARENT_LOCAL;
    return (parents & parent) != 0;
}

bool oteli_rule_matches(const otel_sampling_rule *rule, const otel_sampling_query *query)
{
    if (rule->kinds != 0 && (rule->kinds >> query->kind & 1) == 0)
        return false;
    if (!parent_is_accepted(rule->parents, query))
        return false;
    if (rule->name_pattern != NULL &&
        !oteli_pattern_matches(rule->name_pattern, query->name.data, query->name.length))
        return false;
    return attribute_is_accepted(rule, accepts_first, rule->attribute_key, query) &&
           attribute_is_accepted(rule, accepts_second, rule->pattern_key, query) &&
           (rule->predicate == NULL || rule->predicate(rule->predicate_state, query));
}

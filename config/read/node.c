/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/node.c - what a plain scalar is in YAML's core schema: null, a boolean, an integer,
 * a number, or a text. Start/stop only.
 * Source: YAML 1.2.2, 10.3.2 "Tag Resolution". */
#include "config/read/node.h"
#include "common/text/text.h"

#include <math.h>

static bool is_one_of(const char *text, const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

/* Digits of a base to the end; their value in *value, and whether it is exact in *fits. */
static bool read_integer(const char *text, unsigned base, uint64_t *value, bool *fits, double *real)
{
    *value = 0;
    *real = 0;
    *fits = true;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        const unsigned digit = (unsigned)oteli_hex_digit(*text); /* of none: large */
        if (digit >= base)
            return false;
        *fits = *fits && *value <= (UINT64_MAX - digit) / base;
        *value = *value * base + digit;
        *real = *real * base + digit;
    }
    return true;
}

static bool resolve_integer(struct oteli_node *node)
{
    const char *text = node->text;
    const bool has_sign = *text == '-' || *text == '+';
    const bool is_negative = *text == '-';
    unsigned base = 10;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'o')) {
        base = text[1] == 'x' ? 16 : 8;
        text += 2;
    }
    uint64_t value;
    bool fits;
    double real;
    if (!read_integer(text + has_sign, base, &value, &fits, &real))
        return false;
    const uint64_t most = (uint64_t)INT64_MAX + is_negative;
    node->real = is_negative ? -real : real;
    node->kind = fits && value <= most ? OTELI_NODE_INT : OTELI_NODE_FLOAT;
    if (node->kind == OTELI_NODE_INT)
        node->integer = is_negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

static bool resolve_float(struct oteli_node *node)
{
    static const char *const infinities[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nans[] = {".nan", ".NaN", ".NAN", NULL};
    const char *text = node->text;
    const bool has_sign = *text == '-' || *text == '+';
    if (is_one_of(text, nans))
        node->real = NAN;
    else if (is_one_of(text + has_sign, infinities))
        node->real = *text == '-' ? -INFINITY : INFINITY;
    else if (!oteli_parse_decimal((otel_slice){text, node->length}, &node->real))
        return false;
    node->kind = OTELI_NODE_FLOAT;
    return true;
}

void oteli_scalar_resolve(struct oteli_node *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};
    node->kind = OTELI_NODE_TEXT;
    if (is_one_of(node->text, nulls)) {
        node->kind = OTELI_NODE_NULL;
    } else if (is_one_of(node->text, trues) || is_one_of(node->text, falses)) {
        node->kind = OTELI_NODE_BOOL;
        node->boolean = is_one_of(node->text, trues);
    } else if (!resolve_integer(node)) {
        (void)resolve_float(node);
    }
}

const struct oteli_node *oteli_node_find(const struct oteli_node *mapping, const char *key)
{
    const struct oteli_item *item = mapping != NULL ? mapping->items : NULL;
    for (; item != NULL; item = item->next)
        if (item->key != NULL && strcmp(item->key, key) == 0)
            return item->value;
    return NULL;
}

const struct oteli_node *oteli_node_value(const struct oteli_node *mapping, const char *key)
{
    const struct oteli_node *value = oteli_node_find(mapping, key);
    return value != NULL && value->kind != OTELI_NODE_NULL ? value : NULL;
}

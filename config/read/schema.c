/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/schema.c - the walk through a document and the table; see schema.h. */
#include "config/read/schema.h"

#include "common/text/secrets.h"
#include "common/text/text.h"
#include "config/read/registry.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { PATH_BYTES = 320, WORDS_BYTES = 240 };

struct frame {
    const struct oteli_node *node;
    const struct oteli_schema *schema;
    const struct oteli_item *next; /* to be visited */
    const struct oteli_item *item; /* that is being visited */
    size_t index;                  /* of `item`, in a list */
};

struct walk {
    struct oteli_faults *faults;
    struct frame frames[OTELI_DOCUMENT_DEPTH + 1];
    size_t depth;
};

/* --- Messages --- */

/* Like tracer_provider.processors[0].batch: the way to what is being visited. */
static const char *path_of(const struct walk *walk, char path[PATH_BYTES])
{
    size_t length = 0;
    path[0] = '\0';
    for (size_t i = 0; i < walk->depth && length < PATH_BYTES; i++) {
        const struct frame *frame = &walk->frames[i];
        if (frame->item == NULL)
            break;
        if (frame->item->key == NULL)
            length += (size_t)snprintf(path + length, PATH_BYTES - length, "[%zu]", frame->index);
        else
            length += (size_t)snprintf(path + length, PATH_BYTES - length, "%s%.80s",
                                       length != 0 ? "." : "", frame->item->key);
    }
    return path[0] != '\0' ? path : "the file";
}

static void say(struct walk *walk, const struct oteli_node *node, const char *reason)
{
    char path[PATH_BYTES];
    oteli_fault(walk->faults, node->place, "%s %s", path_of(walk, path), reason);
}

/* The path of what is being visited with one of its keys behind it. */
static void say_of_key(struct walk *walk, struct oteli_place place, const char *key,
                       const char *reason)
{
    char path[PATH_BYTES];
    path_of(walk, path);
    oteli_fault(walk->faults, place, "%s%s%.80s %s", path, path[0] != '\0' ? "." : "", key, reason);
}

static const char *kind_name(const struct oteli_node *node)
{
    static const char *const names[] = {
        [OTELI_NODE_NULL] = "null",         [OTELI_NODE_BOOL] = "a boolean",
        [OTELI_NODE_INT] = "an integer",    [OTELI_NODE_FLOAT] = "a number",
        [OTELI_NODE_TEXT] = "a text",       [OTELI_NODE_SEQUENCE] = "a list",
        [OTELI_NODE_MAPPING] = "a mapping",
    };
    return names[node->kind];
}

/* Whether what is being visited belongs to the headers of requests, among which keys are. */
static bool is_secret(const struct walk *walk)
{
    for (size_t i = 0; i < walk->depth; i++) {
        const struct oteli_item *item = walk->frames[i].item;
        if (item != NULL && item->key != NULL && strncmp(item->key, "headers", 7) == 0)
            return true;
    }
    return false;
}

static void say_expected(struct walk *walk, const struct oteli_node *node, const char *expected)
{
    char reason[WORDS_BYTES + 128];
    char shown[61];
    const bool is_scalar = node->kind < OTELI_NODE_SEQUENCE && node->kind != OTELI_NODE_NULL;
    const char *quotes = is_scalar && node->kind != OTELI_NODE_TEXT ? " without quotes" : "";
    if (!is_scalar || is_secret(walk))
        snprintf(reason, sizeof reason, "has to be %s, and is %s%s", expected, kind_name(node),
                 quotes);
    else
        snprintf(reason, sizeof reason, "has to be %s, and is \"%s\"%s", expected,
                 oteli_hide_in_setting(node->text, shown, sizeof shown), quotes);
    say(walk, node, reason);
}

/* "one of a, b, c" from "a b c". */
static const char *words_of(const struct oteli_schema *schema, char words[WORDS_BYTES])
{
    size_t length = (size_t)snprintf(words, WORDS_BYTES, "one of ");
    const char *rest = schema->words;
    for (; *rest != '\0' && length + 3 < WORDS_BYTES; rest++) {
        if (*rest == ' ')
            words[length++] = ',';
        words[length++] = *rest;
    }
    words[length] = '\0';
    return words;
}

/* --- Scalars --- */

static bool has_word(const char *words, const struct oteli_node *node)
{
    while (*words != '\0') {
        const size_t length = strcspn(words, " ");
        if (length == node->length && memcmp(words, node->text, length) == 0)
            return true;
        words += length + (words[length] == ' ');
    }
    return false;
}

static void check_int(struct walk *walk, const struct oteli_node *node,
                      const struct oteli_schema *schema)
{
    if (node->kind == OTELI_NODE_INT && node->integer >= schema->min &&
        node->integer <= schema->max)
        return;
    char expected[96];
    snprintf(expected, sizeof expected, "an integer from %" PRId64 " to %" PRId64, schema->min,
             schema->max);
    if (node->kind == OTELI_NODE_INT) {
        char reason[160];
        snprintf(reason, sizeof reason, "has to be %s, and is %" PRId64, expected, node->integer);
        say(walk, node, reason);
    } else {
        say_expected(walk, node, expected);
    }
}

static void check_ratio(struct walk *walk, const struct oteli_node *node)
{
    const bool is_number = node->kind == OTELI_NODE_INT || node->kind == OTELI_NODE_FLOAT;
    if (!is_number || !(node->real >= 0 && node->real <= 1))
        say_expected(walk, node, "a number from 0 to 1");
}

static void check_word(struct walk *walk, const struct oteli_node *node,
                       const struct oteli_schema *schema)
{
    char words[WORDS_BYTES];
    if (node->kind != OTELI_NODE_TEXT || !has_word(schema->words, node))
        say_expected(walk, node, words_of(schema, words));
}

static void check_value(struct walk *walk, const struct oteli_node *node)
{
    if (node->kind == OTELI_NODE_MAPPING)
        say_expected(walk, node, "a scalar or a list of scalars");
    if (node->kind != OTELI_NODE_SEQUENCE)
        return;
    if (node->count == 0)
        say(walk, node, "is an empty list");
    for (const struct oteli_item *item = node->items; item != NULL; item = item->next)
        if (item->value->kind == OTELI_NODE_NULL || item->value->kind >= OTELI_NODE_SEQUENCE)
            oteli_fault(walk->faults, item->value->place,
                        "an element of an attribute's list is %s, and has to be a scalar",
                        kind_name(item->value));
}

/* --- Containers --- */

static const struct oteli_property *property_of(const struct oteli_schema *schema, const char *key)
{
    for (const struct oteli_property *p = schema->properties; p != NULL && p->key != NULL; p++)
        if (strcmp(p->key, key) == 0)
            return p;
    return NULL;
}

static void check_required(struct walk *walk, const struct oteli_node *node,
                           const struct oteli_schema *schema)
{
    for (const struct oteli_property *p = schema->properties; p != NULL && p->key != NULL; p++)
        if ((p->flags & OTELI_REQUIRED) != 0 && oteli_node_find(node, p->key) == NULL)
            say_of_key(walk, node->place, p->key, "is required, and is not there");
}

static void check_choice(struct walk *walk, const struct oteli_node *node,
                         const struct oteli_schema *schema)
{
    if (node->count == 1)
        return;
    char reason[160];
    snprintf(reason, sizeof reason, "has to have one key, which says the kind of %s, and has %zu",
             schema->what, node->count);
    say(walk, node, reason);
}

static void enter(struct walk *walk, const struct oteli_node *node,
                  const struct oteli_schema *schema)
{
    if (schema->shape == OTELI_SHAPE_CHOICE)
        check_choice(walk, node, schema);
    else if (schema->shape == OTELI_SHAPE_MAP)
        check_required(walk, node, schema);
    else if (node->count == 0)
        say(walk, node, "is an empty list");
    walk->frames[walk->depth++] =
        (struct frame){.node = node, .schema = schema, .next = node->items, .index = SIZE_MAX};
}

static void check_scalar(struct walk *walk, const struct oteli_node *node,
                         const struct oteli_schema *schema)
{
    switch (schema->shape) {
    case OTELI_SHAPE_BOOL:
        if (node->kind != OTELI_NODE_BOOL)
            say_expected(walk, node, "true or false");
        break;
    case OTELI_SHAPE_INT:
        check_int(walk, node, schema);
        break;
    case OTELI_SHAPE_RATIO:
        check_ratio(walk, node);
        break;
    case OTELI_SHAPE_TEXT:
        if (node->kind != OTELI_NODE_TEXT)
            say_expected(walk, node, "a text");
        break;
    case OTELI_SHAPE_WORD:
        check_word(walk, node, schema);
        break;
    case OTELI_SHAPE_SCALAR:
        if (node->kind >= OTELI_NODE_SEQUENCE || node->kind == OTELI_NODE_NULL)
            say_expected(walk, node, "a text");
        break;
    default:
        check_value(walk, node);
        break;
    }
}

/* What the rule of the schema has to say about a value of the right shape. */
static void apply_rule(struct walk *walk, const struct oteli_node *node,
                       const struct oteli_schema *schema)
{
    const char *reason = schema->check != NULL ? schema->check(node) : NULL;
    if (reason != NULL) {
        say(walk, node, reason);
        return;
    }
    const char *doubt = schema->doubt != NULL ? schema->doubt(node) : NULL;
    char path[PATH_BYTES];
    if (doubt != NULL)
        oteli_doubt(walk->faults, node->place, "%s %s", path_of(walk, path), doubt);
}

/* Look at one value. A container is entered, and its parts come later. */
static void visit(struct walk *walk, const struct oteli_node *node,
                  const struct oteli_schema *schema)
{
    if (schema->shape == OTELI_SHAPE_ANY || (node->kind == OTELI_NODE_NULL && schema->may_be_null))
        return;
    const size_t before = walk->faults->count;
    if (schema->shape < OTELI_SHAPE_LIST) {
        check_scalar(walk, node, schema);
        if (walk->faults->count == before)
            apply_rule(walk, node, schema);
        return;
    }
    const bool is_list = schema->shape == OTELI_SHAPE_LIST;
    if (node->kind != (is_list ? OTELI_NODE_SEQUENCE : OTELI_NODE_MAPPING)) {
        say_expected(walk, node, is_list ? "a list" : "a mapping");
        return;
    }
    apply_rule(walk, node, schema);
    enter(walk, node, schema);
}

/* What a component of the program's own is made from is the program's matter. */
static void check_component(struct walk *walk, const struct oteli_node *node)
{
    if (node->kind != OTELI_NODE_MAPPING && node->kind != OTELI_NODE_NULL)
        say_expected(walk, node, "a mapping");
}

static void visit_unknown(struct walk *walk, const struct frame *frame)
{
    const struct oteli_item *item = frame->item;
    const struct oteli_schema *schema = frame->schema;
    char path[PATH_BYTES];
    if (schema->may_have_others)
        return;
    path_of(walk, path);
    if (schema->component != 0 && oteli_registry_find(schema->component, item->key) != NULL)
        check_component(walk, item->value);
    else if (schema->shape == OTELI_SHAPE_CHOICE)
        oteli_fault(walk->faults, item->key_place, "%s is no %s that this build knows", path,
                    schema->what);
    else if (schema->may_have_more)
        oteli_doubt(walk->faults, item->key_place, "%s is not known, and is ignored", path);
    else
        oteli_fault(walk->faults, item->key_place, "%s is not known", path);
}

static void visit_property(struct walk *walk, const struct frame *frame)
{
    const struct oteli_item *item = frame->item;
    const struct oteli_property *property = property_of(frame->schema, item->key);
    char path[PATH_BYTES];
    if (property == NULL) {
        visit_unknown(walk, frame);
    } else if ((property->flags & OTELI_NOT_TRACES) != 0) {
        oteli_doubt(walk->faults, item->key_place,
                    "%s is ignored: this SDK has traces, and neither metrics nor logs",
                    path_of(walk, path));
    } else if ((property->flags & OTELI_NOT_HERE) != 0 &&
               (frame->schema->shape == OTELI_SHAPE_CHOICE ||
                item->value->kind != OTELI_NODE_NULL)) {
        oteli_fault(walk->faults, item->key_place, "%s is not in this build", path_of(walk, path));
    } else {
        visit(walk, item->value, property->schema);
    }
}

void oteli_schema_check(const struct oteli_node *root, const struct oteli_schema *schema,
                        struct oteli_faults *faults)
{
    struct walk walk = {.faults = faults};
    visit(&walk, root, schema);
    while (walk.depth != 0) {
        struct frame *frame = &walk.frames[walk.depth - 1];
        frame->item = frame->next;
        if (frame->item == NULL) {
            walk.depth--;
            continue;
        }
        frame->next = frame->item->next;
        frame->index++;
        if (frame->schema->shape == OTELI_SHAPE_LIST)
            visit(&walk, frame->item->value, frame->schema->element);
        else
            visit_property(&walk, frame);
    }
}

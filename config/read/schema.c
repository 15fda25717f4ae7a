/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/schema.c - the walk through a document and the table; see schema.h. */
#include "config/read/schema.h"

#include "common/text/secrets.h"
#include "common/text/text.h"
#include "config/read/registry.h"
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { PATH_BYTES = 320, WORDS_BYTES = 240, REASON_BYTES = WORDS_BYTES + 160 };

/* The way to the value that is being visited: the last step of it. */
struct step {
    const struct step *before;
    const struct oteli_item *item;
    size_t index; /* of the item, in a list */
};

struct walk {
    struct oteli_file *file;
    const struct step *step; /* NULL: the root is being visited */
};

/* --- Messages --- */

static void put_path(struct oteli_text_builder *path, const struct step *step)
{
    if (step == NULL)
        return;
    put_path(path, step->before);
    if (step->item->key == NULL)
        oteli_build(path, "[%zu]", step->index);
    else
        oteli_build(path, "%s%.80s", path->length != 0 ? "." : "", step->item->key);
}

/* Like tracer_provider.processors[0].batch: the way to what is being visited. */
static const char *path_of(const struct walk *walk, char path[PATH_BYTES])
{
    struct oteli_text_builder builder = {path, PATH_BYTES, 0};
    oteli_build(&builder, "%s", walk->step == NULL ? "the file" : "");
    put_path(&builder, walk->step);
    return path;
}

static void say(const struct walk *walk, struct oteli_place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A fault: the path of what is being visited, and the reason. */
static void say(const struct walk *walk, struct oteli_place place, const char *format, ...)
{
    char path[PATH_BYTES];
    char reason[REASON_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    oteli_fault(walk->file, place, "%s %s", path_of(walk, path), reason);
}

static void say_doubt(const struct walk *walk, struct oteli_place place, const char *doubt)
{
    char path[PATH_BYTES];
    oteli_doubt(walk->file, place, "%s %s", path_of(walk, path), doubt);
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
    for (const struct step *step = walk->step; step != NULL; step = step->before)
        if (step->item->key != NULL && strncmp(step->item->key, "headers", 7) == 0)
            return true;
    return false;
}

static void say_expected(const struct walk *walk, const struct oteli_node *node,
                         const char *expected)
{
    char shown[61];
    const bool is_scalar = node->kind < OTELI_NODE_SEQUENCE && node->kind != OTELI_NODE_NULL;
    const char *quotes = is_scalar && node->kind != OTELI_NODE_TEXT ? " without quotes" : "";
    if (!is_scalar || is_secret(walk))
        say(walk, node->place, "has to be %s, and is %s%s", expected, kind_name(node), quotes);
    else
        say(walk, node->place, "has to be %s, and is \"%s\"%s", expected,
            oteli_hide_in_setting(node->text, shown, sizeof shown), quotes);
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

static void check_int(const struct walk *walk, const struct oteli_node *node,
                      const struct oteli_schema *schema)
{
    char expected[96];
    snprintf(expected, sizeof expected, "an integer from %" PRId64 " to %" PRId64, schema->min,
             schema->max);
    if (node->kind != OTELI_NODE_INT)
        say_expected(walk, node, expected);
    else if (node->integer < schema->min || node->integer > schema->max)
        say(walk, node->place, "has to be %s, and is %" PRId64, expected, node->integer);
}

static void check_ratio(const struct walk *walk, const struct oteli_node *node)
{
    const bool is_number = node->kind == OTELI_NODE_INT || node->kind == OTELI_NODE_FLOAT;
    if (!is_number || !(node->real >= 0 && node->real <= 1))
        say_expected(walk, node, "a number from 0 to 1");
}

/* Or say "one of a, b, c" where the words are "a b c". */
static void check_word(const struct walk *walk, const struct oteli_node *node,
                       const struct oteli_schema *schema)
{
    char expected[WORDS_BYTES];
    struct oteli_text_builder builder = {expected, sizeof expected, 0};
    if (node->kind == OTELI_NODE_TEXT && has_word(schema->words, node))
        return;
    otel_slice rest = oteli_slice_of(schema->words);
    otel_slice word;
    while (oteli_piece_next(&rest, ' ', &word))
        oteli_build(&builder, "%s%.*s", builder.length == 0 ? "one of " : ", ", (int)word.length,
                    word.data);
    say_expected(walk, node, expected);
}

static void check_value(const struct walk *walk, const struct oteli_node *node)
{
    if (node->kind == OTELI_NODE_MAPPING)
        say_expected(walk, node, "a scalar or a list of scalars");
    if (node->kind != OTELI_NODE_SEQUENCE)
        return;
    if (node->count == 0)
        say(walk, node->place, "is an empty list");
    for (const struct oteli_item *item = node->items; item != NULL; item = item->next)
        if (item->value->kind == OTELI_NODE_NULL || item->value->kind >= OTELI_NODE_SEQUENCE)
            oteli_fault(walk->file, item->value->place,
                        "an element of an attribute's list is %s, and has to be a scalar",
                        kind_name(item->value));
}

static void check_scalar(const struct walk *walk, const struct oteli_node *node,
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

/* --- Containers --- */

static const struct oteli_property *property_of(const struct oteli_schema *schema, const char *key)
{
    for (const struct oteli_property *p = schema->properties; p != NULL && p->key != NULL; p++)
        if (strcmp(p->key, key) == 0)
            return p;
    return NULL;
}

static void check_required(const struct walk *walk, const struct oteli_node *node,
                           const struct oteli_schema *schema)
{
    char path[PATH_BYTES];
    const struct oteli_property *p = schema->properties;
    for (; p != NULL && p->key != NULL; p++)
        if ((p->flags & OTELI_REQUIRED) != 0 && oteli_node_find(node, p->key) == NULL)
            oteli_fault(walk->file, node->place, "%s%s%.80s is required, and is not there",
                        walk->step != NULL ? path_of(walk, path) : "",
                        walk->step != NULL ? "." : "", p->key);
}

/* What the rule of the schema has to say about a value of the right shape. */
static void apply_rule(const struct walk *walk, const struct oteli_node *node,
                       const struct oteli_schema *schema)
{
    const char *reason = schema->check != NULL ? schema->check(node) : NULL;
    const char *doubt = schema->doubt != NULL ? schema->doubt(node) : NULL;
    if (reason != NULL)
        say(walk, node->place, "%s", reason);
    else if (doubt != NULL)
        say_doubt(walk, node->place, doubt);
}

static void visit_parts(const struct walk *walk, const struct oteli_node *node,
                        const struct oteli_schema *schema);

/* Look at one value, and at its parts. */
static void visit(const struct walk *walk, const struct oteli_node *node,
                  const struct oteli_schema *schema)
{
    if (schema->shape == OTELI_SHAPE_ANY || (node->kind == OTELI_NODE_NULL && schema->may_be_null))
        return;
    const size_t before = walk->file->faults;
    const bool is_list = schema->shape == OTELI_SHAPE_LIST;
    if (schema->shape < OTELI_SHAPE_LIST) {
        check_scalar(walk, node, schema);
        if (walk->file->faults == before)
            apply_rule(walk, node, schema);
    } else if (node->kind != (is_list ? OTELI_NODE_SEQUENCE : OTELI_NODE_MAPPING)) {
        say_expected(walk, node, is_list ? "a list" : "a mapping");
    } else {
        apply_rule(walk, node, schema);
        visit_parts(walk, node, schema);
    }
}

static void visit_unknown(const struct walk *walk, const struct oteli_item *item,
                          const struct oteli_schema *schema)
{
    const enum oteli_node_kind kind = item->value->kind;
    if (schema->component != 0 && oteli_registry_find(schema->component, item->key) != NULL) {
        if (kind != OTELI_NODE_MAPPING && kind != OTELI_NODE_NULL)
            say_expected(walk, item->value,
                         "a mapping"); /* what is in it is the program's matter */
    } else if (schema->shape == OTELI_SHAPE_CHOICE) {
        say(walk, item->key_place, "is no %s that this build knows", schema->what);
    } else if (schema->may_have_more) {
        say_doubt(walk, item->key_place, "is not known, and is ignored");
    } else if (!schema->may_have_others) {
        say(walk, item->key_place, "is not known");
    }
}

static void visit_property(const struct walk *walk, const struct oteli_item *item,
                           const struct oteli_schema *schema)
{
    const struct oteli_property *property = property_of(schema, item->key);
    if (property == NULL)
        visit_unknown(walk, item, schema);
    else if ((property->flags & OTELI_NOT_TRACES) != 0)
        say_doubt(walk, item->key_place,
                  "is ignored: this SDK has traces, and neither metrics nor logs");
    else if ((property->flags & OTELI_NOT_HERE) != 0 &&
             (schema->shape == OTELI_SHAPE_CHOICE || item->value->kind != OTELI_NODE_NULL))
        say(walk, item->key_place, "is not in this build");
    else
        visit(walk, item->value, property->schema);
}

static void visit_parts(const struct walk *walk, const struct oteli_node *node,
                        const struct oteli_schema *schema)
{
    struct step step = {.before = walk->step};
    const struct walk inside = {walk->file, &step};
    if (schema->shape == OTELI_SHAPE_MAP)
        check_required(walk, node, schema);
    else if (schema->shape == OTELI_SHAPE_LIST && node->count == 0)
        say(walk, node->place, "is an empty list");
    else if (schema->shape == OTELI_SHAPE_CHOICE && node->count != 1)
        say(walk, node->place, "has to have one key, which says the kind of %s, and has %zu",
            schema->what, node->count);
    for (step.item = node->items; step.item != NULL; step.item = step.item->next, step.index++)
        if (schema->shape == OTELI_SHAPE_LIST)
            visit(&inside, step.item->value, schema->element);
        else
            visit_property(&inside, step.item, schema);
}

void oteli_schema_check(const struct oteli_node *root, const struct oteli_schema *schema,
                        struct oteli_file *file)
{
    const struct walk walk = {.file = file};
    visit(&walk, root, schema);
}

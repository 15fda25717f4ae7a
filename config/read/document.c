/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/document.c - from libfyaml's events to a tree; see document.h.
 *
 * Start/stop only. Owns nothing beyond a call: what stays is in the pool. */
#include "config/read/document.h"

#include "common/text/text.h"
#include "common/text/utf8.h"
#include "config/read/substitute.h"

#include <libfyaml.h>
#include <stdio.h>

#define YAML_TAG "tag:yaml.org,2002:"

struct anchor {
    struct anchor *older;
    const char *name;
    const struct oteli_node *node;
};

struct reader {
    struct oteli_file *file;
    struct fy_parser *parser;
    struct fy_event *event; /* the newest */
    struct anchor *anchors; /* the newest first: a name may be used again */
    size_t nodes;
    size_t filled;            /* bytes that may still come from the environment */
    struct oteli_place place; /* of the event */
    bool is_stopped;          /* by a fault behind which nothing can be understood */
};

static void fail(struct reader *reader, const char *reason)
{
    oteli_fault(reader->file, reader->place, "%s", reason);
    reader->is_stopped = true;
}

static enum fy_scalar_style style_of(struct fy_event *event)
{
    struct fy_token *token = event->type == FYET_SCALAR ? event->scalar.value : NULL;
    return token != NULL ? fy_scalar_token_get_style(token) : FYSS_PLAIN;
}

/* libfyaml counts from 0, and what is quoted from behind the quote. */
static struct oteli_place place_of(struct fy_event *event, struct oteli_place before)
{
    const struct fy_mark *mark = fy_event_start_mark(event);
    const enum fy_scalar_style style = style_of(event);
    const bool is_quoted = style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED;
    if (mark == NULL)
        return before;
    return (struct oteli_place){(uint32_t)mark->line + 1, (uint32_t)mark->column + !is_quoted};
}

static bool is_stopped(const struct reader *reader)
{
    return reader->is_stopped || reader->file->has_no_memory;
}

/* Go on to the next event. False: there is none, or a fault has stopped the reader. */
static bool next(struct reader *reader)
{
    if (reader->event != NULL)
        fy_parser_event_free(reader->parser, reader->event);
    reader->event = is_stopped(reader) ? NULL : fy_parser_parse(reader->parser);
    if (reader->event == NULL)
        return false;
    reader->place = place_of(reader->event, reader->place);
    return true;
}

static otel_slice token_text(struct fy_token *token)
{
    size_t length = 0;
    const char *text = token != NULL ? fy_token_get_text(token, &length) : NULL;
    return (otel_slice){text != NULL ? text : "", text != NULL ? length : 0};
}

/* --- Nodes --- */

/* What an alias adds counts again each time; so a few lines cannot stand for millions. */
static void count_nodes(struct reader *reader, size_t more)
{
    reader->nodes += more;
    if (reader->nodes > OTELI_DOCUMENT_NODES)
        fail(reader, "there are too many values in this file, or its aliases stand for too many");
}

static void take_anchor(struct reader *reader, struct oteli_node *node)
{
    const otel_slice name = token_text(fy_event_get_anchor_token(reader->event));
    struct anchor *anchor =
        name.length != 0 ? oteli_file_take(reader->file, 1, sizeof *anchor) : NULL;
    if (anchor == NULL)
        return;
    *anchor = (struct anchor){reader->anchors, oteli_file_copy(reader->file, name), node};
    reader->anchors = anchor;
}

static struct oteli_node *new_node(struct reader *reader, enum oteli_node_kind kind)
{
    struct oteli_node *node = oteli_file_take(reader->file, 1, sizeof *node);
    if (node == NULL)
        return NULL;
    *node = (struct oteli_node){.kind = kind, .place = reader->place, .weight = 1, .text = ""};
    count_nodes(reader, 1);
    take_anchor(reader, node);
    return node;
}

static const struct oteli_node *read_alias(struct reader *reader, size_t depth)
{
    const otel_slice name = token_text(reader->event->alias.anchor);
    const struct anchor *anchor = reader->anchors;
    while (anchor != NULL && !oteli_is_text(name, anchor->name))
        anchor = anchor->older;
    if (anchor == NULL) {
        oteli_fault(reader->file, reader->place, "there is no anchor \"%.*s\" before this alias",
                    name.length < 100 ? (int)name.length : 100, name.data);
        return NULL;
    }
    if (anchor->node->is_open)
        fail(reader, "this alias stands inside of what it stands for");
    else if (depth + anchor->node->height > OTELI_DOCUMENT_DEPTH)
        fail(reader, "values are nested too deeply here");
    else
        count_nodes(reader, anchor->node->weight);
    return anchor->node;
}

/* --- Scalars --- */

/* The text of a scalar. False: there is a NUL in it. */
static bool read_text(struct reader *reader, otel_slice *text)
{
    *text = token_text(reader->event->scalar.value);
    if (memchr(text->data, '\0', text->length) == NULL)
        return true;
    fail(reader, "this text has a NUL in it");
    return false;
}

/* A tag that YAML itself has for scalars forces the type. false: it is none of those. */
static bool apply_tag(struct oteli_node *node, otel_slice tag)
{
    static const struct {
        const char *tag;
        enum oteli_node_kind kind;
    } tags[] = {
        {YAML_TAG "null", OTELI_NODE_NULL}, {YAML_TAG "bool", OTELI_NODE_BOOL},
        {YAML_TAG "int", OTELI_NODE_INT},   {YAML_TAG "float", OTELI_NODE_FLOAT},
        {YAML_TAG "str", OTELI_NODE_TEXT},  {"!", OTELI_NODE_TEXT},
    };
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        if (!oteli_is_text(tag, tags[i].tag))
            continue;
        const bool is_number = node->kind == OTELI_NODE_INT && tags[i].kind == OTELI_NODE_FLOAT;
        if (tags[i].kind == OTELI_NODE_TEXT || is_number)
            node->kind = tags[i].kind;
        return node->kind == tags[i].kind;
    }
    return false;
}

static void fill_in(struct reader *reader, otel_slice *text)
{
    otel_slice culprit;
    const otel_status status =
        oteli_substitute(*text, &reader->file->pool, &reader->filled, text, &culprit);
    if (status == OTEL_ERROR_INVALID_ARGUMENT)
        oteli_fault(reader->file, reader->place,
                    "\"%.*s\" is no reference to a variable (${NAME}, ${NAME:-default}); a $ by "
                    "itself is written $$",
                    culprit.length < 100 ? (int)culprit.length : 100, culprit.data);
    else if (status == OTEL_ERROR_UNSUPPORTED)
        fail(reader, "the variables that this file refers to are too long");
    else if (status != OTEL_OK)
        oteli_fault_no_memory(reader->file);
}

static const struct oteli_node *read_scalar(struct reader *reader)
{
    struct fy_event *event = reader->event;
    const otel_slice tag = token_text(event->scalar.tag);
    otel_slice text;
    if (read_text(reader, &text))
        fill_in(reader, &text);
    struct oteli_node *node = is_stopped(reader) ? NULL : new_node(reader, OTELI_NODE_TEXT);
    const char *copy = node != NULL ? oteli_file_copy(reader->file, text) : NULL;
    if (copy == NULL)
        return NULL;
    node->text = copy;
    node->length = text.length;
    if (style_of(event) == FYSS_PLAIN || tag.length != 0)
        oteli_scalar_resolve(node);
    if (tag.length != 0 && !apply_tag(node, tag))
        oteli_fault(reader->file, reader->place, "this value cannot have the tag %.*s",
                    tag.length < 60 ? (int)tag.length : 60, tag.data);
    return node;
}

/* --- Containers --- */

static struct oteli_item *append(struct reader *reader, struct oteli_node *container)
{
    struct oteli_item *item = oteli_file_take(reader->file, 1, sizeof *item);
    if (item == NULL)
        return NULL;
    if (container->last != NULL)
        container->last->next = item;
    else
        container->items = item;
    container->last = item;
    container->count++;
    return item;
}

/* The key of an item, and the event behind it. False: a fault has stopped the reader. */
static bool read_key(struct reader *reader, const struct oteli_node *mapping,
                     struct oteli_item *item)
{
    otel_slice text;
    if (reader->event->type != FYET_SCALAR) {
        fail(reader, "a key has to be a text");
        return false;
    }
    if (!read_text(reader, &text))
        return false;
    const char *key = oteli_file_copy(reader->file, text);
    if (key == NULL)
        return false;
    if (oteli_node_find(mapping, key) != NULL)
        oteli_fault(reader->file, reader->place, "the key \"%.100s\" is there twice", key);
    item->key = key;
    item->key_place = reader->place;
    return next(reader);
}

static const struct oteli_node *read_value(struct reader *reader, size_t depth);

/* `depth` containers are around it. */
static const struct oteli_node *read_container(struct reader *reader, size_t depth)
{
    const bool is_mapping = reader->event->type == FYET_MAPPING_START;
    const otel_slice tag = token_text(fy_event_get_tag_token(reader->event));
    if (tag.length != 0 && !oteli_is_text(tag, is_mapping ? YAML_TAG "map" : YAML_TAG "seq"))
        fail(reader, "this tag is not one of YAML's own");
    else if (depth == OTELI_DOCUMENT_DEPTH)
        fail(reader, "values are nested too deeply here");
    struct oteli_node *node = NULL;
    if (!is_stopped(reader))
        node = new_node(reader, is_mapping ? OTELI_NODE_MAPPING : OTELI_NODE_SEQUENCE);
    if (node == NULL)
        return NULL;
    node->is_open = true;
    node->height = 1;
    while (next(reader) && reader->event->type != FYET_MAPPING_END &&
           reader->event->type != FYET_SEQUENCE_END) {
        struct oteli_item *item = append(reader, node);
        if (item == NULL || (is_mapping && !read_key(reader, node, item)))
            break;
        item->value = read_value(reader, depth + 1);
        if (item->value == NULL)
            continue; /* because of a fault */
        node->weight += item->value->weight;
        if (item->value->height >= node->height)
            node->height = item->value->height + 1;
    }
    node->is_open = false;
    return node;
}

/* NULL: there is a fault in it. */
static const struct oteli_node *read_value(struct reader *reader, size_t depth)
{
    if (reader->event->type == FYET_ALIAS)
        return read_alias(reader, depth);
    return reader->event->type == FYET_SCALAR ? read_scalar(reader) : read_container(reader, depth);
}

/* --- The whole text --- */

/* What the parser has to say; it stops at the first error. */
static void report_parser(struct reader *reader, struct fy_diag *diag)
{
    const size_t before = reader->file->faults;
    void *at = NULL;
    const struct fy_diag_error *error;
    while ((error = fy_diag_errors_iterate(diag, &at)) != NULL) {
        const struct oteli_place place = {error->line > 0 ? (uint32_t)error->line : 1,
                                          error->column > 0 ? (uint32_t)error->column : 1};
        if (error->type == FYET_ERROR)
            oteli_fault(reader->file, place, "this is not YAML: %s",
                        error->msg != NULL ? error->msg : "it cannot be parsed");
    }
    if (reader->file->faults == before)
        fail(reader, "this is not YAML");
}

/* The value of the only document; NULL: there is none, or a fault. */
static const struct oteli_node *read_documents(struct reader *reader)
{
    const struct oteli_node *root = NULL;
    size_t documents = 0;
    while (next(reader)) {
        switch (reader->event->type) {
        case FYET_DOCUMENT_START:
            if (++documents > 1)
                fail(reader, "a second document begins here; there can be one");
            break;
        case FYET_MAPPING_START:
        case FYET_SEQUENCE_START:
        case FYET_SCALAR:
        case FYET_ALIAS:
            root = read_value(reader, 0);
            break;
        default:
            break;
        }
    }
    return root;
}

static void say_nothing(struct fy_diag *diag, void *user, const char *text, size_t length)
{
    (void)diag;
    (void)user;
    (void)text;
    (void)length;
}

static const struct oteli_node *parse(struct reader *reader, const char *text, size_t length)
{
    const struct oteli_node *root = NULL;
    struct fy_diag_cfg diag_cfg;
    fy_diag_cfg_default(&diag_cfg);
    diag_cfg.fp = NULL;
    diag_cfg.output_fn = say_nothing;
    diag_cfg.colorize = false;
    struct fy_diag *diag = fy_diag_create(&diag_cfg);
    if (diag == NULL) {
        oteli_fault_no_memory(reader->file);
        return NULL;
    }
    fy_diag_set_collect_errors(diag, true);
    const struct fy_parse_cfg cfg = {
        .search_path = "",
        .flags = FYPCF_QUIET | FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE,
        .diag = diag,
    };
    reader->parser = fy_parser_create(&cfg);
    if (reader->parser == NULL || fy_parser_set_string(reader->parser, text, length) != 0) {
        oteli_fault_no_memory(reader->file);
    } else {
        root = read_documents(reader);
        if (fy_parser_get_stream_error(reader->parser) && !is_stopped(reader))
            report_parser(reader, diag);
    }
    if (reader->parser != NULL)
        fy_parser_destroy(reader->parser);
    fy_diag_destroy(diag);
    return root;
}

/* YAML's characters, before a parser sees them. */
static void check_characters(struct reader *reader, const char *text, size_t length)
{
    const size_t good = oteli_utf8_valid_prefix(text, length);
    const char *nul = memchr(text, '\0', good);
    const size_t end = nul != NULL ? (size_t)(nul - text) : good;
    if (end == length)
        return;
    reader->place = (struct oteli_place){1, 1};
    for (size_t i = 0; i < end; i++) {
        const bool is_line = text[i] == '\n';
        reader->place.line += is_line;
        if (is_line)
            reader->place.column = 1;
        else
            reader->place.column += ((uint8_t)text[i] & 0xC0) != 0x80;
    }
    fail(reader, nul != NULL ? "there is a NUL here" : "this is not UTF-8");
}

const struct oteli_node *oteli_document_read(const char *text, size_t length,
                                             struct oteli_file *file)
{
    struct reader reader = {.file = file, .filled = OTELI_DOCUMENT_FILLED, .place = {1, 1}};
    const struct oteli_node *root = NULL;
    const size_t before = file->faults;
    if (length > OTELI_DOCUMENT_BYTES)
        oteli_fault(file, (struct oteli_place){.line = 0}, "larger than %d bytes",
                    OTELI_DOCUMENT_BYTES);
    else
        check_characters(&reader, text, length);
    if (file->faults == before)
        root = parse(&reader, text, length);
    if (file->faults != before)
        return NULL;
    if (root != NULL && root->kind == OTELI_NODE_MAPPING)
        return root;
    reader.place = root != NULL ? root->place : (struct oteli_place){1, 1};
    fail(&reader, "a configuration is a mapping, with file_format and more as its keys");
    return NULL;
}

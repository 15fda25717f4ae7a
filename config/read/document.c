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
    otel_slice name;
    struct oteli_node *node;
};

struct reader {
    struct oteli_pool *pool;
    struct oteli_faults *faults;
    struct fy_parser *parser;
    struct oteli_node *root;
    struct anchor *anchors; /* the newest first: a name may be used again */
    struct oteli_node *open[OTELI_DOCUMENT_DEPTH];
    struct oteli_item *pending[OTELI_DOCUMENT_DEPTH]; /* of a mapping: its key has been seen */
    size_t depth;
    size_t nodes;
    size_t documents;
    size_t filled;            /* bytes that may still come from the environment */
    struct oteli_place place; /* of the newest event */
    bool is_stopped;          /* by a fault behind which nothing can be understood */
};

static void fail(struct reader *reader, const char *reason)
{
    oteli_fault(reader->faults, reader->place, "%s", reason);
    reader->is_stopped = true;
}

static void fail_for_memory(struct reader *reader)
{
    oteli_fault_no_memory(reader->faults);
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

static otel_slice token_text(struct fy_token *token)
{
    size_t length = 0;
    const char *text = token != NULL ? fy_token_get_text(token, &length) : NULL;
    return (otel_slice){text != NULL ? text : "", text != NULL ? length : 0};
}

static struct oteli_node *new_node(struct reader *reader, enum oteli_node_kind kind)
{
    struct oteli_node *node = oteli_pool_take(reader->pool, sizeof *node);
    if (node == NULL) {
        fail_for_memory(reader);
        return NULL;
    }
    *node = (struct oteli_node){.kind = kind, .place = reader->place, .weight = 1, .text = ""};
    return node;
}

/* --- Into the container that is open --- */

static struct oteli_item *append(struct reader *reader, struct oteli_node *container)
{
    struct oteli_item *item = oteli_pool_take(reader->pool, sizeof *item);
    if (item == NULL) {
        fail_for_memory(reader);
        return NULL;
    }
    if (container->last != NULL)
        container->last->next = item;
    else
        container->items = item;
    container->last = item;
    container->count++;
    return item;
}

/* What an alias adds counts again each time; so a few lines cannot stand for millions. */
static void weigh(struct reader *reader, struct oteli_node *container,
                  const struct oteli_node *value)
{
    reader->nodes += value->weight;
    if (reader->nodes > OTELI_DOCUMENT_NODES)
        fail(reader, "there are too many values in this file, or its aliases stand for too many");
    container->weight += value->weight;
    if (value->height >= container->height)
        container->height = value->height + 1;
}

static void attach(struct reader *reader, struct oteli_node *value)
{
    if (reader->depth == 0) {
        reader->root = value;
        return;
    }
    const size_t top = reader->depth - 1;
    struct oteli_node *container = reader->open[top];
    struct oteli_item *item = reader->pending[top];
    reader->pending[top] = NULL;
    if (container->kind == OTELI_NODE_SEQUENCE)
        item = append(reader, container);
    if (item == NULL)
        return;
    item->value = value;
    if (!value->is_open)
        weigh(reader, container, value);
    if (reader->depth + value->height > OTELI_DOCUMENT_DEPTH)
        fail(reader, "values are nested too deeply here");
}

static bool wants_key(const struct reader *reader)
{
    return reader->depth != 0 && reader->open[reader->depth - 1]->kind == OTELI_NODE_MAPPING &&
           reader->pending[reader->depth - 1] == NULL;
}

static void take_key(struct reader *reader, otel_slice text)
{
    struct oteli_node *mapping = reader->open[reader->depth - 1];
    const char *key = oteli_pool_text(reader->pool, text.data, text.length);
    if (key == NULL) {
        fail_for_memory(reader);
        return;
    }
    if (oteli_node_find(mapping, key) != NULL)
        oteli_fault(reader->faults, reader->place, "the key \"%.100s\" is there twice", key);
    struct oteli_item *item = append(reader, mapping);
    if (item == NULL)
        return;
    item->key = key;
    item->key_place = reader->place;
    reader->pending[reader->depth - 1] = item;
}

/* --- Anchors --- */

static void take_anchor(struct reader *reader, struct fy_event *event, struct oteli_node *node)
{
    const otel_slice name = token_text(fy_event_get_anchor_token(event));
    if (name.length == 0)
        return;
    struct anchor *anchor = oteli_pool_take(reader->pool, sizeof *anchor);
    const char *copy = oteli_pool_text(reader->pool, name.data, name.length);
    if (anchor == NULL || copy == NULL) {
        fail_for_memory(reader);
        return;
    }
    *anchor = (struct anchor){reader->anchors, {copy, name.length}, node};
    reader->anchors = anchor;
}

static void on_alias(struct reader *reader, struct fy_event *event)
{
    const otel_slice name = token_text(event->alias.anchor);
    const struct anchor *anchor = reader->anchors;
    while (anchor != NULL && (anchor->name.length != name.length ||
                              memcmp(anchor->name.data, name.data, name.length) != 0))
        anchor = anchor->older;
    if (wants_key(reader))
        fail(reader, "a key cannot be an alias");
    else if (anchor == NULL)
        oteli_fault(reader->faults, reader->place, "there is no anchor \"%.*s\" before this alias",
                    name.length < 100 ? (int)name.length : 100, name.data);
    else if (anchor->node->is_open)
        fail(reader, "this alias stands inside of what it stands for");
    else
        attach(reader, anchor->node);
}

/* --- Scalars --- */

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
        if (tag.length != strlen(tags[i].tag) || memcmp(tag.data, tags[i].tag, tag.length) != 0)
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
        oteli_substitute(*text, reader->pool, &reader->filled, text, &culprit);
    if (status == OTEL_ERROR_INVALID_ARGUMENT)
        oteli_fault(reader->faults, reader->place,
                    "\"%.*s\" is no reference to a variable (${NAME}, ${NAME:-default}); a $ by "
                    "itself is written $$",
                    culprit.length < 100 ? (int)culprit.length : 100, culprit.data);
    else if (status == OTEL_ERROR_UNSUPPORTED)
        fail(reader, "the variables that this file refers to are too long");
    else if (status != OTEL_OK)
        fail_for_memory(reader);
}

static void on_scalar(struct reader *reader, struct fy_event *event)
{
    const otel_slice tag = token_text(event->scalar.tag);
    otel_slice text = token_text(event->scalar.value);
    if (memchr(text.data, '\0', text.length) != NULL) {
        fail(reader, "this text has a NUL in it");
        return;
    }
    if (wants_key(reader)) {
        take_key(reader, text);
        return;
    }
    fill_in(reader, &text);
    struct oteli_node *node = reader->is_stopped ? NULL : new_node(reader, OTELI_NODE_TEXT);
    if (node == NULL)
        return;
    node->text = oteli_pool_text(reader->pool, text.data, text.length);
    node->length = text.length;
    if (node->text == NULL) {
        fail_for_memory(reader);
        return;
    }
    if (style_of(event) == FYSS_PLAIN || tag.length != 0)
        oteli_scalar_resolve(node);
    if (tag.length != 0 && !apply_tag(node, tag))
        oteli_fault(reader->faults, reader->place, "this value cannot have the tag %.*s",
                    tag.length < 60 ? (int)tag.length : 60, tag.data);
    take_anchor(reader, event, node);
    attach(reader, node);
}

/* --- Containers --- */

static void on_start(struct reader *reader, struct fy_event *event, enum oteli_node_kind kind)
{
    const otel_slice tag = token_text(fy_event_get_tag_token(event));
    const char *own = kind == OTELI_NODE_MAPPING ? YAML_TAG "map" : YAML_TAG "seq";
    if (tag.length != 0 && (tag.length != strlen(own) || memcmp(tag.data, own, tag.length) != 0)) {
        fail(reader, "this tag is not one of YAML's own");
        return;
    }
    if (wants_key(reader)) {
        fail(reader, "a key has to be a text");
        return;
    }
    struct oteli_node *node = new_node(reader, kind);
    if (node == NULL)
        return;
    node->is_open = true;
    node->height = 1;
    take_anchor(reader, event, node);
    attach(reader, node);
    if (reader->is_stopped)
        return;
    reader->pending[reader->depth] = NULL;
    reader->open[reader->depth++] = node;
}

static void on_end(struct reader *reader)
{
    if (reader->depth == 0)
        return;
    struct oteli_node *node = reader->open[--reader->depth];
    node->is_open = false;
    if (reader->depth == 0)
        return;
    /* Its parts have been counted already, one by one. */
    reader->nodes -= node->weight - 1;
    weigh(reader, reader->open[reader->depth - 1], node);
}

static void on_document(struct reader *reader)
{
    reader->documents++;
    if (reader->documents > 1)
        fail(reader, "a second document begins here; there can be one");
}

static void take_event(struct reader *reader, struct fy_event *event)
{
    reader->place = place_of(event, reader->place);
    switch (event->type) {
    case FYET_DOCUMENT_START:
        on_document(reader);
        break;
    case FYET_MAPPING_START:
        on_start(reader, event, OTELI_NODE_MAPPING);
        break;
    case FYET_SEQUENCE_START:
        on_start(reader, event, OTELI_NODE_SEQUENCE);
        break;
    case FYET_MAPPING_END:
    case FYET_SEQUENCE_END:
        on_end(reader);
        break;
    case FYET_SCALAR:
        on_scalar(reader, event);
        break;
    case FYET_ALIAS:
        on_alias(reader, event);
        break;
    default:
        break;
    }
}

/* --- The whole text --- */

/* What the parser has to say; it stops at the first error. */
static void report_parser(struct reader *reader, struct fy_diag *diag)
{
    const size_t before = reader->faults->count;
    void *at = NULL;
    const struct fy_diag_error *error;
    while ((error = fy_diag_errors_iterate(diag, &at)) != NULL) {
        const struct oteli_place place = {error->line > 0 ? (uint32_t)error->line : 1,
                                          error->column > 0 ? (uint32_t)error->column : 1};
        if (error->type == FYET_ERROR)
            oteli_fault(reader->faults, place, "this is not YAML: %s",
                        error->msg != NULL ? error->msg : "it cannot be parsed");
    }
    if (reader->faults->count == before)
        fail(reader, "this is not YAML");
}

static bool read_events(struct reader *reader)
{
    while (!reader->is_stopped) {
        struct fy_event *event = fy_parser_parse(reader->parser);
        if (event == NULL)
            return !fy_parser_get_stream_error(reader->parser);
        const bool is_end = event->type == FYET_STREAM_END;
        take_event(reader, event);
        fy_parser_event_free(reader->parser, event);
        if (is_end)
            return true;
    }
    return true;
}

static void say_nothing(struct fy_diag *diag, void *user, const char *text, size_t length)
{
    (void)diag;
    (void)user;
    (void)text;
    (void)length;
}

static void parse(struct reader *reader, const char *text, size_t length)
{
    struct fy_diag_cfg diag_cfg;
    fy_diag_cfg_default(&diag_cfg);
    diag_cfg.fp = NULL;
    diag_cfg.output_fn = say_nothing;
    diag_cfg.colorize = false;
    struct fy_diag *diag = fy_diag_create(&diag_cfg);
    if (diag == NULL) {
        fail_for_memory(reader);
        return;
    }
    fy_diag_set_collect_errors(diag, true);
    const struct fy_parse_cfg cfg = {
        .search_path = "",
        .flags = FYPCF_QUIET | FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE,
        .diag = diag,
    };
    reader->parser = fy_parser_create(&cfg);
    if (reader->parser == NULL || fy_parser_set_string(reader->parser, text, length) != 0)
        fail_for_memory(reader);
    else if (!read_events(reader))
        report_parser(reader, diag);
    if (reader->parser != NULL)
        fy_parser_destroy(reader->parser);
    fy_diag_destroy(diag);
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
                                             struct oteli_pool *pool, struct oteli_faults *faults)
{
    struct reader reader = {
        .pool = pool, .faults = faults, .filled = OTELI_DOCUMENT_FILLED, .place = {1, 1}};
    const size_t before = faults->count;
    if (length > OTELI_DOCUMENT_BYTES)
        oteli_fault(faults, (struct oteli_place){.line = 0}, "larger than %d bytes",
                    OTELI_DOCUMENT_BYTES);
    else
        check_characters(&reader, text, length);
    if (faults->count == before)
        parse(&reader, text, length);
    if (faults->count != before)
        return NULL;
    if (reader.root == NULL || reader.root->kind != OTELI_NODE_MAPPING) {
        reader.place = reader.root != NULL ? reader.root->place : (struct oteli_place){1, 1};
        fail(&reader, "a configuration is a mapping, with file_format and more as its keys");
        return NULL;
    }
    return reader.root;
}

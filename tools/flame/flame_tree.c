/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_tree.c - see flame_tree.h. One thread. */
#include "tools/flame/flame_tree.h"

#include "common/text/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 1 << 25, NODE_KEY = offsetof(struct flame_node, first_child) };

/* The number of a text. False: no memory. */
static bool intern(struct flame_tree *tree, otel_slice text, uint32_t *number)
{
    const bool is_there = oteli_interner_add(&tree->texts, text.data, text.length, number);
    tree->text_count = tree->texts.count;
    return is_there;
}

/* Of this name, in this file, below this node. A node without a parent is a root. */
static bool child_of(struct flame_tree *tree, uint32_t parent, uint32_t name, uint32_t file,
                     uint32_t *child)
{
    const struct flame_node node = {.parent = parent, .name = name, .file = file};
    if (!oteli_interner_add(&tree->node_table, &node, NODE_KEY, child))
        return false;
    tree->nodes = (void *)tree->node_table.bytes;
    if (*child == tree->node_count && parent != FLAME_NO_NODE) {
        tree->nodes[*child].next = tree->nodes[parent].first_child;
        tree->nodes[parent].first_child = *child;
    }
    tree->node_count = tree->node_table.count;
    return true;
}

static bool new_group(struct flame_tree *tree, uint32_t value)
{
    if (tree->group_count == tree->group_room) {
        const size_t larger = tree->group_room == 0 ? 16 : tree->group_room * 2;
        struct flame_group *grown = realloc(tree->groups, larger * sizeof *grown);
        if (grown == NULL)
            return false;
        tree->groups = grown;
        tree->group_room = larger;
    }
    struct flame_group *group = &tree->groups[tree->group_count];
    *group = (struct flame_group){.value = value};
    if (!child_of(tree, FLAME_NO_NODE, value, 0, &group->root))
        return false;
    tree->group_count++;
    return true;
}

bool flame_tree_init(struct flame_tree *tree, const struct flame_choice *choice,
                     struct flame_names *names)
{
    *tree = (struct flame_tree){.choice = *choice, .names = names, .has_samples = true};
    oteli_interner_init(&tree->texts, INT32_MAX, UINT32_MAX, 0, 0);
    oteli_interner_init(&tree->node_table, MOST_NODES, UINT32_MAX,
                        sizeof(struct flame_node) - NODE_KEY, 0);
    uint32_t first;
    return intern(tree, (otel_slice){"", 0}, &first) &&
           child_of(tree, FLAME_NO_NODE, 0, UINT32_MAX, &first) && new_group(tree, 0);
}

void flame_tree_fini(struct flame_tree *tree)
{
    oteli_interner_fini(&tree->texts);
    oteli_interner_fini(&tree->node_table);
    free(tree->groups);
    free(tree->group_of_text);
}

/* --- Samples --- */

struct adding {
    struct flame_tree *tree;
    const struct flame_profile *profile;
    bool failed;
};

static otel_slice base_name(otel_slice path)
{
    for (size_t i = path.length; i > 0; i--)
        if (path.data[i - 1] == '/')
            return (otel_slice){path.data + i, path.length - i};
    return path;
}

static bool add_frame(struct adding *adding, const struct flame_location *location, otel_slice name,
                      uint32_t *node)
{
    struct flame_tree *tree = adding->tree;
    const struct flame_mapping *mapping = location->mapping;
    const otel_slice file = mapping != NULL ? base_name(mapping->file) : (otel_slice){0};
    char text[320];
    if (name.length == 0) {
        tree->nameless++;
        const uint64_t place =
            mapping != NULL ? location->address - mapping->start + mapping->offset : 0;
        const int length =
            mapping != NULL && file.length != 0
                ? snprintf(text, sizeof text, "%.*s+0x%" PRIx64,
                           (int)(file.length < 256 ? file.length : 256), file.data, place)
                : snprintf(text, sizeof text, "0x%" PRIx64, location->address);
        name = (otel_slice){text, (size_t)length};
    }
    uint32_t numbers[2];
    return intern(tree, name, &numbers[0]) && intern(tree, file, &numbers[1]) &&
           child_of(tree, *node, numbers[0], numbers[1], node);
}

static bool add_stack(struct adding *adding, const struct flame_sample *sample, uint32_t node)
{
    struct flame_tree *tree = adding->tree;
    const int64_t value = sample->values[adding->profile->default_value];
    for (size_t i = sample->depth; i > 0; i--) { /* from the root; of inlined functions likewise */
        const struct flame_location *location = sample->frames[i - 1];
        if (location->function_count == 0) {
            otel_slice name = {0};
            if (location->mapping != NULL)
                name = flame_names_find(tree->names, location->mapping, location->address);
            if (!add_frame(adding, location, name, &node))
                return false;
        }
        for (size_t j = location->function_count; j > 0; j--)
            if (!add_frame(adding, location,
                           adding->profile->inlined[location->first_function + j - 1]->name, &node))
                return false;
    }
    tree->nodes[node].self = flame_sum(tree->nodes[node].self, value);
    return true;
}

/* Labels that could have been chosen, until one turns up that was. */
static bool note_keys(struct flame_tree *tree, const struct flame_sample *sample)
{
    for (size_t i = 0; i < sample->label_count && tree->key_count < FLAME_KEYS_MAX; i++) {
        uint32_t key;
        bool is_known = false;
        if (!intern(tree, sample->labels[i].key, &key))
            return false;
        for (size_t j = 0; j < tree->key_count; j++)
            is_known = is_known || tree->keys[j] == key;
        if (!is_known && key != 0)
            tree->keys[tree->key_count++] = key;
    }
    return true;
}

/* The value of the label that was chosen; "": the sample has none. */
static otel_slice value_of(struct flame_tree *tree, const struct flame_sample *sample,
                           char number[64])
{
    const size_t length = tree->choice.key != NULL ? strlen(tree->choice.key) : 0;
    for (size_t i = 0; i < sample->label_count && tree->choice.key != NULL; i++) {
        const struct flame_label *label = &sample->labels[i];
        if (label->key.length != length || memcmp(label->key.data, tree->choice.key, length) != 0)
            continue;
        tree->has_key = true;
        if (label->text.length != 0)
            return label->text;
        const int unit = (int)(label->unit.length < 32 ? label->unit.length : 32);
        const int written = snprintf(number, 64, "%" PRId64 "%s%.*s", label->number,
                                     unit != 0 ? " " : "", unit, unit != 0 ? label->unit.data : "");
        return (otel_slice){number, (size_t)written};
    }
    return (otel_slice){"", 0};
}

/* Texts have been added since the last group: they are of none yet. */
static bool make_room_for_text(struct flame_tree *tree, uint32_t text)
{
    if (text < tree->group_slots)
        return true;
    const uint32_t larger = tree->texts.row_room;
    uint32_t *grown = realloc(tree->group_of_text, larger * sizeof *grown);
    if (grown == NULL)
        return false;
    memset(grown + tree->group_slots, 0, (larger - tree->group_slots) * sizeof *grown);
    tree->group_of_text = grown;
    tree->group_slots = larger;
    return true;
}

static bool group_of(struct flame_tree *tree, otel_slice value, size_t *index)
{
    uint32_t number;
    if (!intern(tree, value.length != 0 ? value : (otel_slice){"(none)", 6}, &number) ||
        !make_room_for_text(tree, number))
        return false;
    if (tree->group_of_text[number] == 0) {
        if (!new_group(tree, number))
            return false;
        tree->group_of_text[number] = (uint32_t)(tree->group_count - 1);
    }
    *index = tree->group_of_text[number];
    return true;
}

/* The frame "key=value", as the first one. */
static bool add_label_frame(struct adding *adding, otel_slice value, uint32_t *node)
{
    char text[256];
    if (value.length == 0)
        value = (otel_slice){"(none)", 6};
    int length = snprintf(text, sizeof text, "%.100s=%.*s", adding->tree->choice.key,
                          (int)(value.length < 128 ? value.length : 128), value.data);
    length = length < (int)sizeof text ? length : (int)sizeof text - 1;
    uint32_t name;
    return intern(adding->tree, (otel_slice){text, (size_t)length}, &name) &&
           child_of(adding->tree, *node, name, 0, node);
}

static bool add_sample(void *state, const struct flame_sample *sample)
{
    struct adding *adding = state;
    struct flame_tree *tree = adding->tree;
    char number[64];
    const otel_slice value = value_of(tree, sample, number);
    if (tree->choice.key != NULL && !tree->has_key && !note_keys(tree, sample)) {
        adding->failed = true;
        return false;
    }
    const uint64_t count = adding->profile->value_count > 1 ? (uint64_t)sample->values[0] : 0;
    if (tree->choice.value != NULL && (value.length != strlen(tree->choice.value) ||
                                       memcmp(value.data, tree->choice.value, value.length) != 0)) {
        tree->left_out++;
        return true;
    }
    const bool has_groups =
        tree->choice.key != NULL && tree->choice.value == NULL && !tree->choice.is_frame;
    size_t group = 0;
    uint32_t node = tree->groups[0].root;
    adding->failed = tree->choice.is_frame && tree->choice.key != NULL &&
                     tree->choice.value == NULL && !add_label_frame(adding, value, &node);
    adding->failed = adding->failed || !add_stack(adding, sample, node);
    tree->groups[0].samples += count;
    if (has_groups && !adding->failed) {
        adding->failed =
            !group_of(tree, value, &group) || !add_stack(adding, sample, tree->groups[group].root);
        if (!adding->failed)
            tree->groups[group].samples += count;
    }
    return !adding->failed;
}

/* The unit as a plain word, which can stand anywhere. */
static void put_unit(otel_slice unit, char word[FLAME_UNIT_SIZE])
{
    size_t length = 0;
    for (; length < unit.length && length < FLAME_UNIT_SIZE - 1; length++) {
        const char c = unit.data[length];
        const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '/' ||
                              c == '.' || c == '%';
        word[length] = c;
        if (!is_plain)
            word[length] = '_';
    }
    word[length] = '\0';
}

const char *flame_tree_add(struct flame_tree *tree, const struct flame_profile *profile)
{
    const otel_slice unit = profile->value_units[profile->default_value];
    char word[FLAME_UNIT_SIZE];
    put_unit(unit, word);
    if (tree->profiles != 0 && strcmp(word, tree->unit) != 0)
        return "counts in another unit than the profiles before it";
    memcpy(tree->unit, word, sizeof word);
    tree->is_time = oteli_is_text(unit, "nanoseconds");
    tree->has_samples = tree->has_samples && profile->value_count > 1 &&
                        oteli_is_text(profile->value_units[0], "count");
    if (tree->profiles++ == 0 || profile->time_ns < tree->time_ns)
        tree->time_ns = profile->time_ns;
    tree->duration_ns = flame_sum(tree->duration_ns, profile->duration_ns);
    struct flame_sample *sample = malloc(sizeof *sample);
    struct adding adding = {.tree = tree, .profile = profile};
    const bool is_added =
        sample != NULL && flame_profile_each(profile, sample, add_sample, &adding);
    free(sample);
    return is_added ? NULL : "does not fit into memory";
}

/* --- In order --- */

static const struct flame_tree *sorted; /* qsort has no room for a state */

static int compare_groups(const void *left, const void *right)
{
    const int64_t a = sorted->nodes[((const struct flame_group *)left)->root].total;
    const int64_t b = sorted->nodes[((const struct flame_group *)right)->root].total;
    return (a < b) - (a > b);
}

static int compare_texts(otel_slice left, otel_slice right)
{
    const size_t length = left.length < right.length ? left.length : right.length;
    const int order = length != 0 ? memcmp(left.data, right.data, length) : 0;
    return order != 0 ? order : (left.length > right.length) - (left.length < right.length);
}

static int compare_nodes(const void *left, const void *right)
{
    const struct flame_node *a = &sorted->nodes[*(const uint32_t *)left];
    const struct flame_node *b = &sorted->nodes[*(const uint32_t *)right];
    if (a->total != b->total)
        return a->total < b->total ? 1 : -1;
    return compare_texts(flame_tree_text(sorted, a->name), flame_tree_text(sorted, b->name));
}

static void sort_children(struct flame_tree *tree, uint32_t node, uint32_t *room)
{
    size_t count = 0;
    for (uint32_t at = tree->nodes[node].first_child; at != FLAME_NO_NODE;
         at = tree->nodes[at].next)
        room[count++] = at;
    if (count < 2)
        return;
    qsort(room, count, sizeof *room, compare_nodes);
    tree->nodes[node].first_child = room[0];
    for (size_t i = 0; i < count; i++)
        tree->nodes[room[i]].next = i + 1 < count ? room[i + 1] : FLAME_NO_NODE;
}

void flame_tree_finish(struct flame_tree *tree)
{
    uint32_t *room = malloc(tree->node_count * sizeof *room);
    for (uint32_t i = tree->node_count - 1; i > 0; i--) { /* children come after their parents */
        struct flame_node *node = &tree->nodes[i];
        struct flame_node *parent = &tree->nodes[node->parent];
        node->total = flame_sum(node->total, node->self);
        parent->total = flame_sum(parent->total, node->total);
    }
    sorted = tree;
    for (uint32_t i = 1; room != NULL && i < tree->node_count; i++)
        sort_children(tree, i, room);
    qsort(tree->groups + 1, tree->group_count - 1, sizeof *tree->groups, compare_groups);
    free(room);
}

uint32_t flame_tree_next(const struct flame_tree *tree, uint32_t root, uint32_t node,
                         unsigned *depth)
{
    if (tree->nodes[node].first_child != FLAME_NO_NODE) {
        ++*depth;
        return tree->nodes[node].first_child;
    }
    while (node != root && tree->nodes[node].next == FLAME_NO_NODE) {
        node = tree->nodes[node].parent;
        --*depth;
    }
    return node != root ? tree->nodes[node].next : FLAME_NO_NODE;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_tree.c - see flame_tree.h. One thread. */
#include "tools/flame/flame_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 1 << 25, NODE_KEY = offsetof(struct flame_node, first_child) };

static const char no_memory[] = "does not fit into memory";

/* The number of a text. False: no memory. */
static bool intern(struct flame_tree *tree, const char *text, uint32_t *number)
{
    return oteli_interner_add(&tree->texts, text, strlen(text) + 1, number);
}

static bool add_node(struct flame_tree *tree, uint32_t parent, uint32_t name, uint32_t file,
                     uint32_t *number)
{
    const struct flame_node node = {.parent = parent, .name = name, .file = file};
    if (!oteli_interner_add(&tree->node_table, &node, NODE_KEY, number))
        return false;
    tree->nodes = (void *)tree->node_table.bytes;
    return true;
}

/* Of this name, in this file, below this node. */
static bool child_of(struct flame_tree *tree, uint32_t parent, const char *name, const char *file,
                     uint32_t *child)
{
    const uint32_t count = tree->node_table.count;
    uint32_t numbers[2];
    if (!intern(tree, name, &numbers[0]) || !intern(tree, file, &numbers[1]) ||
        !add_node(tree, parent, numbers[0], numbers[1], child))
        return false;
    if (*child == count) {
        tree->nodes[*child].next = tree->nodes[parent].first_child;
        tree->nodes[parent].first_child = *child;
        tree->group_count += parent == FLAME_NO_NODE;
    }
    return true;
}

bool flame_tree_init(struct flame_tree *tree, const struct flame_choice *choice)
{
    *tree = (struct flame_tree){.choice = *choice, .has_samples = true};
    oteli_interner_init(&tree->texts, INT32_MAX, UINT32_MAX, 0, 0);
    oteli_interner_init(&tree->node_table, MOST_NODES, UINT32_MAX,
                        sizeof(struct flame_node) - NODE_KEY, 0);
    uint32_t number;
    return intern(tree, "", &number) && add_node(tree, 0, 0, UINT32_MAX, &number) &&
           add_node(tree, 0, 0, 0, &number);
}

void flame_tree_fini(struct flame_tree *tree)
{
    flame_names_fini(&tree->names);
    oteli_interner_fini(&tree->texts);
    oteli_interner_fini(&tree->node_table);
}

/* --- Samples --- */

/* The name of all functions of a file that have none: addresses would be a box each. */
static const char *file_as_name(const char *file, char text[320])
{
    if (file[0] == '[')
        return file; /* such as [vdso] */
    snprintf(text, 320, "[%.256s]", file[0] != '\0' ? file : "no file");
    return text;
}

/* A location is a frame for each function that was inlined there, the innermost first, or one whose
 * name is in the file of its mapping. */
static bool add_location(struct flame_tree *tree, const struct flame_profile *profile,
                         const Perftools__Profiles__Location *location, uint32_t *node)
{
    const Perftools__Profiles__Mapping *mapping =
        flame_profile_mapping(profile, location->mapping_id);
    const char *path = mapping != NULL ? flame_profile_text(profile, mapping->filename) : "";
    const char *slash = strrchr(path, '/');
    const char *file = slash != NULL ? slash + 1 : path;
    const uint64_t offset =
        mapping != NULL ? location->address - mapping->memory_start + mapping->file_offset : 0;
    char text[320];
    bool has_function = false;
    for (size_t i = location->n_line; i > 0; i--) {
        const Perftools__Profiles__Function *function =
            flame_profile_function(profile, location->line[i - 1]->function_id);
        if (function == NULL)
            continue;
        const char *name = flame_profile_text(profile, function->name);
        has_function = true;
        if (name[0] == '\0')
            name = file_as_name(file, text);
        if (!child_of(tree, *node, name, file, node))
            return false;
    }
    if (has_function)
        return true;
    const char *name = NULL;
    if (mapping != NULL && location->address >= mapping->memory_start)
        name = flame_names_find(&tree->names, path, flame_profile_text(profile, mapping->build_id),
                                offset);
    if (name == NULL || name[0] == '\0')
        name = file_as_name(file, text);
    return child_of(tree, *node, name, file, node);
}

static bool add_stack(struct flame_tree *tree, const struct flame_profile *profile,
                      const Perftools__Profiles__Sample *sample, uint32_t node)
{
    for (size_t i = sample->n_location_id; i > 0; i--) { /* from the root */
        const Perftools__Profiles__Location *location =
            flame_profile_location(profile, sample->location_id[i - 1]);
        if (location != NULL && !add_location(tree, profile, location, &node))
            return false;
    }
    tree->nodes[node].self = flame_sum(tree->nodes[node].self, sample->value[profile->value]);
    return true;
}

/* Labels that could have been chosen, until one turns up that was. */
static bool note_keys(struct flame_tree *tree, const struct flame_profile *profile,
                      const Perftools__Profiles__Sample *sample)
{
    for (size_t i = 0; i < sample->n_label && tree->key_count < FLAME_KEYS_MAX; i++) {
        uint32_t key;
        bool is_known = false;
        if (!intern(tree, flame_profile_text(profile, sample->label[i]->key), &key))
            return false;
        for (size_t j = 0; j < tree->key_count; j++)
            is_known = is_known || tree->keys[j] == key;
        if (!is_known && key != 0)
            tree->keys[tree->key_count++] = key;
    }
    return true;
}

/* The value of the label that was chosen. */
static const char *value_of(struct flame_tree *tree, const struct flame_profile *profile,
                            const Perftools__Profiles__Sample *sample, char number[64])
{
    for (size_t i = 0; i < sample->n_label; i++) {
        const Perftools__Profiles__Label *label = sample->label[i];
        if (strcmp(flame_profile_text(profile, label->key), tree->choice.key) != 0)
            continue;
        tree->has_key = true;
        const char *text = flame_profile_text(profile, label->str);
        if (text[0] != '\0')
            return text;
        const char *unit = flame_profile_text(profile, label->num_unit);
        snprintf(number, 64, "%" PRId64 "%s%.32s", label->num, unit[0] != '\0' ? " " : "", unit);
        return number;
    }
    return "(none)";
}

static bool add_sample(struct flame_tree *tree, const struct flame_profile *profile,
                       const Perftools__Profiles__Sample *sample)
{
    const struct flame_choice *choice = &tree->choice;
    const uint64_t count = sample->n_value > 1 ? (uint64_t)sample->value[0] : 0;
    uint32_t node = FLAME_ALL;
    char number[64];
    char frame[256];
    const char *value = choice->key != NULL ? value_of(tree, profile, sample, number) : "";
    if (choice->key != NULL && !tree->has_key && !note_keys(tree, profile, sample))
        return false;
    if (choice->value != NULL && strcmp(value, choice->value) != 0) {
        tree->has_left_out = true;
        return true;
    }
    tree->nodes[FLAME_ALL].samples += count;
    if (choice->key == NULL || choice->value != NULL)
        return add_stack(tree, profile, sample, FLAME_ALL);
    if (choice->is_frame) {
        snprintf(frame, sizeof frame, "%.100s=%.128s", choice->key, value);
        return child_of(tree, FLAME_ALL, frame, "", &node) &&
               add_stack(tree, profile, sample, node);
    }
    if (!add_stack(tree, profile, sample, FLAME_ALL) ||
        !child_of(tree, FLAME_NO_NODE, value, "", &node) || !add_stack(tree, profile, sample, node))
        return false;
    tree->nodes[node].samples += count;
    return true;
}

/* The unit as a plain word, which can stand anywhere. */
static void put_unit(const char *unit, char word[FLAME_UNIT_SIZE])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-/.%";
    snprintf(word, FLAME_UNIT_SIZE, "%s", unit);
    for (char *at = word; *(at += strspn(at, plain)) != '\0';)
        *at = '_';
}

const char *flame_tree_add(struct flame_tree *tree, const struct flame_profile *profile)
{
    const Perftools__Profiles__Profile *file = profile->file;
    const char *unit = flame_profile_text(profile, file->sample_type[profile->value]->unit);
    const char *first_unit = flame_profile_text(profile, file->sample_type[0]->unit);
    char word[FLAME_UNIT_SIZE];
    put_unit(unit, word);
    if (tree->profiles != 0 && strcmp(word, tree->unit) != 0)
        return "counts in another unit than the profiles before it";
    memcpy(tree->unit, word, sizeof word);
    tree->is_time = strcmp(unit, "nanoseconds") == 0;
    tree->has_samples =
        tree->has_samples && file->n_sample_type > 1 && strcmp(first_unit, "count") == 0;
    if (tree->profiles++ == 0 || file->time_nanos < tree->time_ns)
        tree->time_ns = file->time_nanos;
    tree->duration_ns = flame_sum(tree->duration_ns, file->duration_nanos);
    for (size_t i = 0; i < file->n_sample; i++)
        if (!add_sample(tree, profile, file->sample[i]))
            return no_memory;
    return NULL;
}

/* --- In order --- */

static const struct flame_tree *sorted; /* qsort has no room for a state */

static int compare_nodes(const void *left, const void *right)
{
    const struct flame_node *a = &sorted->nodes[*(const uint32_t *)left];
    const struct flame_node *b = &sorted->nodes[*(const uint32_t *)right];
    if (a->total != b->total)
        return a->total < b->total ? 1 : -1;
    return strcmp(flame_tree_text(sorted, a->name), flame_tree_text(sorted, b->name));
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

bool flame_tree_finish(struct flame_tree *tree)
{
    const uint32_t count = tree->node_table.count;
    uint32_t *room = malloc(count * sizeof *room);
    if (room == NULL)
        return false;
    for (uint32_t i = count - 1; i > 0; i--) { /* children come after their parents */
        struct flame_node *node = &tree->nodes[i];
        struct flame_node *parent = &tree->nodes[node->parent];
        node->total = flame_sum(node->total, node->self);
        parent->total = flame_sum(parent->total, node->total);
    }
    sorted = tree;
    for (uint32_t i = 0; i < count; i++)
        sort_children(tree, i, room);
    free(room);
    return true;
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

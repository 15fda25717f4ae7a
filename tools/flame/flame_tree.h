/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_tree.h - the stacks of any number of profiles as trees: one of all of them, and
 * one for each value of a label. Frames are equal that have the same name in the same file.
 *
 * Threads:  one. */
#ifndef FLAME_TREE_H
#define FLAME_TREE_H

#include "profiling/base/interner.h"
#include "tools/flame/flame_names.h"
#include "tools/flame/flame_pprof.h"

enum { FLAME_UNIT_SIZE = 17, FLAME_KEYS_MAX = 16 };

/* Nodes that are always there. The children of the first are the roots of the trees of the label's
 * values, and have those as names. */
enum { FLAME_NO_NODE, FLAME_ALL };

struct flame_node {
    uint32_t parent;
    uint32_t name; /* both: flame_tree_text */
    uint32_t file;
    uint32_t first_child; /* the largest first, after flame_tree_finish */
    uint32_t next;        /* sibling */
    int64_t total;        /* with what is above it */
    int64_t self;
    uint64_t samples; /* of a root */
};

struct flame_choice {
    const char *key;   /* of a label; NULL: no label is looked at */
    const char *value; /* only samples with this value; NULL: all of them */
    bool is_frame;     /* the label is the lowest frame of a stack, and no value has a tree */
};

struct flame_tree {
    struct flame_choice choice;
    struct flame_names names;

    struct flame_node *nodes;    /* of node_table */
    uint32_t group_count;        /* values of the label */
    struct oteli_interner texts; /* with their NUL; the first is empty */

    bool is_time;               /* values are nanoseconds */
    char unit[FLAME_UNIT_SIZE]; /* otherwise: a word of ASCII */
    bool has_samples;           /* counts are known */
    int64_t duration_ns;
    int64_t time_ns; /* of the first profile */
    size_t profiles;
    bool has_left_out; /* samples that do not have the value that was chosen */
    bool has_key;      /* some sample has the label that was chosen; else these are there: */
    uint32_t keys[FLAME_KEYS_MAX];
    size_t key_count;

    struct oteli_interner node_table; /* by parent, name and file */
};

/* False: no memory. */
bool flame_tree_init(struct flame_tree *tree, const struct flame_choice *choice);
void flame_tree_fini(struct flame_tree *tree);

/* Everything that a profile has. NULL, or what is wrong, as the end of a sentence that begins with
 * the file's name. */
const char *flame_tree_add(struct flame_tree *tree, const struct flame_profile *profile);

/* Add up, and sort siblings: the largest first. False: no memory. */
bool flame_tree_finish(struct flame_tree *tree);

/* Numbers of profiles may be anything. */
static inline int64_t flame_sum(int64_t left, int64_t right)
{
    int64_t result;
    if (!__builtin_add_overflow(left, right, &result))
        return result;
    return left < 0 ? INT64_MIN : INT64_MAX;
}

/* Until the next profile is added. */
static inline const char *flame_tree_text(const struct flame_tree *tree, uint32_t text)
{
    return oteli_interner_at(&tree->texts, text);
}

/* The root behind this one: that of all samples, then those of the label's values; FLAME_NO_NODE
 * behind the last. */
static inline uint32_t flame_tree_group(const struct flame_tree *tree, uint32_t root)
{
    return root == FLAME_ALL ? tree->nodes[FLAME_NO_NODE].first_child : tree->nodes[root].next;
}

/* The node after this one, of those below `root`, parents first; FLAME_NO_NODE behind the last.
 * *depth goes along. */
uint32_t flame_tree_next(const struct flame_tree *tree, uint32_t root, uint32_t node,
                         unsigned *depth);

#endif

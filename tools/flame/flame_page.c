/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_page.c - see flame_page.h. One thread.
 *
 * A box is an svg element in the graph's: places and widths are percentages, so that a graph is as
 * wide as the window, and what does not fit into a box is cut off by it. */
#include "tools/flame/flame_page.h"

#include "tools/flame/flame_text.h"

#include <stdlib.h>
#include <string.h>

enum { ROW = 18, HEAD = 52, FUNCTIONS_SHOWN = 25, LISTED_MAX = 500, FILES_COLOURED = 6 };

/* Boxes below this part of a graph are left out, and more of them where there would be too many for
 * a browser: what is left has BOXES_MOST in a page of several graphs, and half of them in one. */
static const double least_share = 0.0002;
enum { BOXES_MOST = 40000 };
/* Boxes below this part have no text, until the script knows how wide a window is. */
static const double text_share = 0.012;

struct page {
    FILE *out;
    const struct flame_tree *tree;
    unsigned char *colours; /* of files, by the number of their text */
    uint32_t legend[FILES_COLOURED];
    size_t legend_count;
    bool has_others; /* files that share the last colour */
};

static void put(const struct page *page, uint32_t text)
{
    flame_put_text(page->out, flame_tree_text(page->tree, text));
}

/* --- Colours: each file of code has one, those in which most time goes by their own --- */

static bool choose_colours(struct page *page)
{
    const struct flame_tree *tree = page->tree;
    int64_t *own = calloc(tree->texts.count, sizeof *own);
    page->colours = malloc(tree->texts.count);
    if (own == NULL || page->colours == NULL) {
        free(own);
        return false;
    }
    memset(page->colours, FILES_COLOURED, tree->texts.count);
    for (uint32_t i = 1; i < tree->node_table.count; i++)
        own[tree->nodes[i].file] = flame_sum(own[tree->nodes[i].file], tree->nodes[i].self);
    own[0] = 0;
    for (; page->legend_count < FILES_COLOURED; page->legend_count++) {
        uint32_t most = 0;
        for (uint32_t i = 1; i < tree->texts.count; i++)
            if (own[i] > own[most])
                most = i;
        if (most == 0)
            break;
        page->colours[most] = (unsigned char)page->legend_count;
        page->legend[page->legend_count] = most;
        own[most] = 0;
    }
    for (uint32_t i = 1; i < tree->node_table.count; i++)
        page->has_others =
            page->has_others ||
            (tree->nodes[i].file != 0 && page->colours[tree->nodes[i].file] == FILES_COLOURED);
    free(own);
    return true;
}

static void write_legend(const struct page *page)
{
    if (page->legend_count == 0)
        return;
    fputs("<ul class=\"legend\">", page->out);
    for (size_t i = 0; i < page->legend_count; i++) {
        fprintf(page->out, "<li><span class=\"m%zu\"></span>", i);
        put(page, page->legend[i]);
        fputs("</li>", page->out);
    }
    if (page->has_others)
        fprintf(page->out, "<li><span class=\"m%d\"></span>other files</li>", FILES_COLOURED);
    fputs("</ul>\n", page->out);
}

/* --- Graphs --- */

struct box {
    uint32_t node;
    unsigned depth;
    double x; /* both: 0 to 1 */
    double width;
};

static void write_box(const struct page *page, const struct box *box, int64_t whole, int top)
{
    const struct flame_node *node = &page->tree->nodes[box->node];
    const char *name = flame_tree_text(page->tree, node->name);
    char share[FLAME_NUMBER_SIZE];
    char value[FLAME_NUMBER_SIZE];
    unsigned shade = 0;
    for (const char *at = name; *at != '\0'; at++)
        shade = shade * 31 + (unsigned char)*at;
    const bool is_label = node->file == 0 && strchr(name, '=') != NULL;
    char colour[8] = "label";
    if (!is_label)
        snprintf(colour, sizeof colour, "m%u", page->colours[node->file]);
    fprintf(page->out,
            "<svg class=\"f %s s%u%s\" x=\"%.4f%%\" y=\"%d\" width=\"%.4f%%\" height=\"%d\" "
            "data-d=\"%u\"><title>",
            colour, shade % 3, box->width < text_share ? " small" : "", 100 * box->x,
            top + (int)box->depth * ROW, 100 * box->width, ROW, box->depth);
    put(page, node->name);
    if (node->file != 0) {
        fputs(" (", page->out);
        put(page, node->file);
        fputc(')', page->out);
    }
    fprintf(page->out, "\n%s, %s", flame_share(node->total, whole, share),
            flame_value(page->tree, node->total, value));
    if (node->self != 0 && node->self != node->total)
        fprintf(page->out, "; by itself %s", flame_share(node->self, whole, share));
    fputs("</title><rect width=\"100%\" height=\"100%\" rx=\"2\"/><text x=\"4\" y=\"13\">",
          page->out);
    put(page, node->name);
    fputs("</text></svg>\n", page->out);
}

/* What is drawn of a tree: boxes that have at least this share of it. */
struct drawing {
    double least;
    unsigned rows;
    size_t boxes;
};

/* Look at each box that is wide enough, parents first and from left to right, and write it. What is
 * above a box that is too small is too small as well. */
static void each_box(const struct page *page, uint32_t root, int top, bool writes,
                     struct drawing *drawing)
{
    const struct flame_tree *tree = page->tree;
    const int64_t whole = tree->nodes[root].total;
    double *left = calloc(tree->node_table.count, sizeof *left); /* where the next child begins */
    unsigned depth = 0;
    drawing->rows = 0;
    drawing->boxes = 0;
    if (left == NULL || whole <= 0) {
        free(left);
        return;
    }
    for (uint32_t node = flame_tree_next(tree, root, root, &depth); node != FLAME_NO_NODE;
         node = flame_tree_next(tree, root, node, &depth)) {
        const struct box box = {node, depth - 1, left[tree->nodes[node].parent],
                                (double)tree->nodes[node].total / (double)whole};
        left[tree->nodes[node].parent] += box.width;
        left[node] = box.x;
        if (box.width < drawing->least)
            continue;
        drawing->rows = drawing->rows > depth ? drawing->rows : depth;
        drawing->boxes++;
        if (writes)
            write_box(page, &box, whole, top);
    }
    free(left);
}

/* Choose the share that a box has to have to be shown. */
static struct drawing measure(const struct page *page, uint32_t root)
{
    const size_t trees = page->tree->group_count + 1;
    const size_t most = BOXES_MOST / (trees < 2                  ? 2
                                      : trees < FLAME_GRAPHS_MAX ? trees
                                                                 : FLAME_GRAPHS_MAX);
    struct drawing drawing = {.least = least_share};
    each_box(page, root, 0, false, &drawing);
    while (drawing.boxes > most) {
        drawing.least *= 1.25;
        each_box(page, root, 0, false, &drawing);
    }
    return drawing;
}

static void write_graph(const struct page *page, uint32_t root)
{
    struct drawing drawing = measure(page, root);
    if (drawing.rows == 0) {
        fputs("<p>There is nothing to show: no time was spent.</p>\n", page->out);
        return;
    }
    fprintf(page->out,
            "<svg class=\"graph\" xmlns=\"http://www.w3.org/2000/svg\" width=\"100%%\" "
            "height=\"%u\" role=\"group\" aria-label=\"Flame graph\">\n",
            drawing.rows * ROW);
    each_box(page, root, 0, true, &drawing);
    fputs("</svg>\n", page->out);
    if (drawing.least > least_share)
        fprintf(page->out, "<p>Boxes below %.2f %% are left out: there are too many.</p>\n",
                100 * drawing.least);
}

/* --- Functions --- */

struct function {
    uint32_t name;
    uint32_t active; /* calls of it around the node that is looked at */
    int64_t self;
    int64_t total;
};

static int compare_functions(const void *left, const void *right)
{
    const struct function *a = left;
    const struct function *b = right;
    if (a->self != b->self)
        return a->self < b->self ? 1 : -1;
    if (a->total != b->total)
        return a->total < b->total ? 1 : -1;
    return (a->name > b->name) - (a->name < b->name);
}

/* Own time, and time with what was called: of calls of a function inside of itself once. */
static void add_up(const struct flame_tree *tree, uint32_t root, struct function *functions)
{
    uint32_t last = root;
    unsigned depth = 0;
    for (uint32_t i = 0; i < tree->texts.count; i++)
        functions[i] = (struct function){.name = i};
    for (uint32_t node = flame_tree_next(tree, root, root, &depth); node != FLAME_NO_NODE;
         node = flame_tree_next(tree, root, node, &depth)) {
        const struct flame_node *at = &tree->nodes[node];
        for (; last != at->parent; last = tree->nodes[last].parent)
            functions[tree->nodes[last].name].active--;
        struct function *function = &functions[at->name];
        function->self = flame_sum(function->self, at->self);
        if (function->active++ == 0)
            function->total = flame_sum(function->total, at->total);
        last = node;
    }
}

static void write_functions(const struct page *page, uint32_t root)
{
    const struct flame_tree *tree = page->tree;
    const int64_t whole = tree->nodes[root].total;
    struct function *functions = malloc(tree->texts.count * sizeof *functions);
    if (functions == NULL || whole <= 0) {
        free(functions);
        return;
    }
    add_up(tree, root, functions);
    qsort(functions, tree->texts.count, sizeof *functions, compare_functions);
    fputs("<details><summary>Functions by their own time</summary>\n<table><thead><tr>"
          "<th scope=\"col\">own</th><th scope=\"col\">with what it calls</th>"
          "<th scope=\"col\" class=\"name\">function</th></tr></thead><tbody>\n",
          page->out);
    for (uint32_t i = 0; i < tree->texts.count && i < FUNCTIONS_SHOWN; i++) {
        char own[FLAME_NUMBER_SIZE];
        char total[FLAME_NUMBER_SIZE];
        if (functions[i].self <= 0)
            break;
        fprintf(page->out, "<tr><td>%s</td><td>%s</td><td class=\"name\">",
                flame_share(functions[i].self, whole, own),
                flame_share(functions[i].total, whole, total));
        put(page, functions[i].name);
        fputs("</td></tr>\n", page->out);
    }
    fputs("</tbody></table></details>\n", page->out);
    free(functions);
}

/* --- Pages --- */

static void write_choice(const struct page *page)
{
    const struct flame_tree *tree = page->tree;
    const int64_t whole = tree->nodes[FLAME_ALL].total;
    if (tree->group_count == 0)
        return;
    fputs("<nav aria-label=\"Values of the label\"><table><thead><tr><th scope=\"col\" "
          "class=\"name\">",
          page->out);
    flame_put_text(page->out, tree->choice.key);
    fputs("</th><th></th><th scope=\"col\">share</th><th scope=\"col\">time</th>"
          "<th scope=\"col\">samples</th></tr></thead><tbody>\n",
          page->out);
    uint32_t root = FLAME_ALL;
    for (unsigned i = 0; root != FLAME_NO_NODE && i < LISTED_MAX; i++) {
        const struct flame_node *node = &tree->nodes[root];
        char share[FLAME_NUMBER_SIZE];
        char value[FLAME_NUMBER_SIZE];
        char count[FLAME_NUMBER_SIZE];
        const bool has_graph = i <= FLAME_GRAPHS_MAX;
        fputs("<tr><td class=\"name\">", page->out);
        if (has_graph)
            fprintf(page->out, "<a href=\"#g%u\">", i);
        flame_put_text(page->out, i == 0 ? "all" : flame_tree_text(tree, node->name));
        fprintf(page->out,
                "%s</td><td class=\"bar\"><span style=\"width:%.2f%%\"></span></td>"
                "<td>%s</td><td>%s</td><td>%s</td></tr>\n",
                has_graph ? "</a>" : "",
                whole > 0 ? 100 * (double)node->total / (double)whole : 0.0,
                flame_share(node->total, whole, share), flame_value(tree, node->total, value),
                tree->has_samples ? flame_count(node->samples, count) : "");
        root = flame_tree_group(tree, root);
    }
    fputs("</tbody></table>", page->out);
    if (root != FLAME_NO_NODE)
        fprintf(page->out, "<p>and %u more</p>", tree->group_count + 1 - LISTED_MAX);
    fputs("</nav>\n", page->out);
}

static void write_section(const struct page *page, unsigned index, uint32_t root)
{
    const struct flame_tree *tree = page->tree;
    const struct flame_node *node = &tree->nodes[root];
    char share[FLAME_NUMBER_SIZE];
    fprintf(page->out, "<section id=\"g%u\"><h2>", index);
    if (root == FLAME_ALL) {
        fputs("All samples", page->out);
    } else {
        flame_put_text(page->out, tree->choice.key);
        fputs(" = ", page->out);
        put(page, node->name);
        fprintf(page->out, ", %s", flame_share(node->total, tree->nodes[FLAME_ALL].total, share));
    }
    fputs("</h2>\n", page->out);
    write_graph(page, root);
    write_functions(page, root);
    fputs("</section>\n", page->out);
}

static void write_head(const struct page *page, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head>"
          "<meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>",
          page->out);
    flame_put_text(page->out, title);
    fprintf(page->out, "</title>\n<style>\n%s</style></head>\n<body>\n<header><h1>", flame_style);
    flame_put_text(page->out, title);
    fputs("</h1><p>", page->out);
    flame_put_summary(page->out, page->tree);
    fputs("</p></header>\n", page->out);
}

void flame_page_write(FILE *out, const struct flame_tree *tree, const char *title)
{
    struct page page = {.out = out, .tree = tree};
    if (choose_colours(&page)) {
        write_head(&page, title);
        write_choice(&page);
        fputs("<div class=\"tools\" hidden=\"hidden\"><input type=\"search\" "
              "aria-label=\"Search functions\" placeholder=\"Search functions\"/>"
              "<button type=\"button\" disabled=\"disabled\">Show all</button>"
              "<span class=\"found\" role=\"status\"></span></div>\n"
              "<p>From the top downwards: who calls whom. The width of a box is its share of the "
              "time. Click a box to look closer; arrow keys, Enter and Escape do as well.</p>\n",
              out);
        write_legend(&page);
        fputs("<p class=\"info\" role=\"status\"></p>\n", out);
        uint32_t root = FLAME_ALL;
        for (unsigned i = 0; root != FLAME_NO_NODE && i <= FLAME_GRAPHS_MAX; i++) {
            write_section(&page, i, root);
            root = flame_tree_group(tree, root);
        }
        fprintf(out, "<script>//<![CDATA[\n%s//]]></script>\n</body></html>\n", flame_script);
    }
    free(page.colours);
}

void flame_svg_write(FILE *out, const struct flame_tree *tree, const char *title)
{
    struct page page = {.out = out, .tree = tree};
    if (choose_colours(&page)) {
        struct drawing drawing = measure(&page, FLAME_ALL);
        fprintf(out,
                "<svg class=\"graph\" xmlns=\"http://www.w3.org/2000/svg\" width=\"1200\" "
                "height=\"%u\" role=\"group\">\n<title>",
                drawing.rows * ROW + HEAD + 4);
        flame_put_text(out, title);
        fprintf(out, "</title>\n<style>\n%s</style>\n<text class=\"head\" x=\"4\" y=\"20\">",
                flame_style);
        flame_put_text(out, title);
        fputs("</text><text class=\"under\" x=\"4\" y=\"40\">", out);
        flame_put_summary(out, tree);
        fputs("</text>\n", out);
        each_box(&page, FLAME_ALL, HEAD, true, &drawing);
        fprintf(out, "<script>//<![CDATA[\n%s//]]></script>\n</svg>\n", flame_script);
    }
    free(page.colours);
}

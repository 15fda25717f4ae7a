/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_page.c - see flame_page.h. One thread.
 *
 * A box is an svg element in the graph's: places and widths are percentages, so that a graph is as
 * wide as the window, and what does not fit into a box is cut off by it. */
#include "tools/flame/flame_page.h"

#include "common/text/text.h"
#include "tools/flame/flame_text.h"

#include <stdlib.h>
#include <string.h>

enum { ROW = 18, HEAD = 52, LISTED_MAX = 500, COLOURS = 7, SHADES = 3 };

/* Boxes below this part of a graph are left out, and more of them where there would be too many for
 * a browser: what is left has BOXES_MOST in a page of several graphs, and half of them in one. */
static const double least_share = 0.0002;
enum { BOXES_MOST = 40000 };
/* Boxes below this part have no text, until the script knows how wide a window is. */
static const double text_share = 0.012;

struct page {
    FILE *out;
    const struct flame_tree *tree;
};

static void put(const struct page *page, uint32_t text)
{
    flame_put_text(page->out, flame_tree_text(page->tree, text));
}

/* --- Graphs --- */

struct box {
    uint32_t node;
    unsigned depth;
    double x; /* both: 0 to 1 */
    double width;
};

/* A number below `count`, the same for a text in every page. */
static unsigned pick(const char *text, unsigned count)
{
    return (unsigned)(oteli_hash(OTELI_HASH_BEGIN, text, strlen(text)) % count);
}

/* Files of code differ in colour, functions of a file in shade. */
static void write_box(const struct page *page, const struct box *box, int64_t whole, int top)
{
    const struct flame_node *node = &page->tree->nodes[box->node];
    const char *name = flame_tree_text(page->tree, node->name);
    char share[FLAME_NUMBER_SIZE];
    char value[FLAME_NUMBER_SIZE];
    const bool is_label = node->file == 0 && strchr(name, '=') != NULL;
    char colour[16] = "label";
    if (!is_label)
        snprintf(colour, sizeof colour, "m%u",
                 pick(flame_tree_text(page->tree, node->file), COLOURS));
    fprintf(page->out,
            "<svg class=\"f %s s%u%s\" x=\"%.4f%%\" y=\"%d\" width=\"%.4f%%\" height=\"%d\" "
            "data-d=\"%u\"><title>",
            colour, pick(name, SHADES), box->width < text_share ? " small" : "", 100 * box->x,
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
    const struct page page = {.out = out, .tree = tree};
    write_head(&page, title);
    write_choice(&page);
    fputs("<div class=\"tools\" hidden=\"hidden\"><input type=\"search\" "
          "aria-label=\"Search functions\" placeholder=\"Search functions\"/>"
          "<button type=\"button\" disabled=\"disabled\">Show all</button>"
          "<span class=\"found\" role=\"status\"></span></div>\n"
          "<p>From the top downwards: who calls whom. The width of a box is its share of the "
          "time, its colour the file that the code is in. Click a box to look closer; arrow keys, "
          "Enter and Escape do as well.</p>\n<p class=\"info\" role=\"status\"></p>\n",
          out);
    uint32_t root = FLAME_ALL;
    for (unsigned i = 0; root != FLAME_NO_NODE && i <= FLAME_GRAPHS_MAX; i++) {
        write_section(&page, i, root);
        root = flame_tree_group(tree, root);
    }
    fprintf(out, "<script>//<![CDATA[\n%s//]]></script>\n</body></html>\n", flame_script);
}

void flame_svg_write(FILE *out, const struct flame_tree *tree, const char *title)
{
    const struct page page = {.out = out, .tree = tree};
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

/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_text.c - see flame_text.h. One thread. */
#include "tools/flame/flame_text.h"

#include "exporters/console/safe_text.h"
#include "tools/flame/flame_tree.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

static const struct {
    double ns;
    const char *unit;
} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}};

static const char replacement[] = "\xef\xbf\xbd";

/* What XML has another word for. */
static const char *entity_of(char byte)
{
    static const char *const entities[] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;"};
    const size_t at = (unsigned char)byte;
    return at < sizeof entities / sizeof entities[0] ? entities[at] : NULL;
}

static void put(FILE *out, const char *text, bool is_markup)
{
    size_t bytes;
    for (size_t left = strlen(text); left != 0; left -= bytes, text += bytes) {
        const bool is_safe = oteli_text_is_safe((otel_slice){text, left}, &bytes);
        const char *entity = is_markup ? entity_of(*text) : NULL;
        if (!is_safe)
            fputs(*text >= '\t' && *text <= '\r' ? " " : replacement, out);
        else if (entity != NULL)
            fputs(entity, out);
        else
            fwrite(text, 1, bytes, out);
    }
}

void flame_put_text(FILE *out, const char *text)
{
    put(out, text, true);
}

void flame_put_plain(FILE *out, const char *text)
{
    put(out, text, false);
}

const char *flame_count(uint64_t count, char text[FLAME_NUMBER_SIZE])
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
    char *at = text;
    for (int i = 0; i < length; i++) {
        if (i != 0 && (length - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return text;
}

const char *flame_share(int64_t part, int64_t whole, char text[FLAME_NUMBER_SIZE])
{
    const double share = whole != 0 ? 100.0 * (double)part / (double)whole : 0;
    snprintf(text, FLAME_NUMBER_SIZE, share != 0 && share < 0.095 ? "%.2f %%" : "%.1f %%", share);
    return text;
}

const char *flame_value(const struct flame_tree *tree, int64_t value, char text[FLAME_NUMBER_SIZE])
{
    if (!tree->is_time) {
        char number[FLAME_NUMBER_SIZE];
        snprintf(text, FLAME_NUMBER_SIZE, "%s%s %.16s", value < 0 ? "-" : "",
                 flame_count(value < 0 ? -(uint64_t)value : (uint64_t)value, number), tree->unit);
        return text;
    }
    size_t unit = 0;
    while (unit + 1 < sizeof units / sizeof units[0] && (double)value < units[unit].ns)
        unit++;
    const double shown = (double)value / units[unit].ns;
    snprintf(text, FLAME_NUMBER_SIZE, "%.*f %s", shown < 9.995 ? 2 : (shown < 99.95 ? 1 : 0), shown,
             units[unit].unit);
    return text;
}

void flame_put_summary(FILE *out, const struct flame_tree *tree)
{
    char number[FLAME_NUMBER_SIZE];
    const struct flame_node *all = &tree->nodes[FLAME_ALL];
    fprintf(out, "%s", flame_value(tree, all->total, number));
    fputs(tree->is_time ? " of processor time" : "", out);
    if (tree->has_samples)
        fprintf(out, " · %s samples", flame_count(all->samples, number));
    if (tree->profiles > 1)
        fprintf(out, " · %zu profiles", tree->profiles);
    const time_t begin = (time_t)(tree->time_ns / 1000000000);
    struct tm utc;
    char date[40];
    if (begin != 0 && gmtime_r(&begin, &utc) != NULL &&
        strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &utc) != 0)
        fprintf(out, " · %s UTC", date);
    if (tree->duration_ns > 0)
        fprintf(out, ", over %.1f s", (double)tree->duration_ns / 1e9);
}

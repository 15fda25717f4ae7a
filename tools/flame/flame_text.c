/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_text.c - see flame_text.h. One thread. */
#include "tools/flame/flame_text.h"

#include "common/text/utf8.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

static const struct {
    double ns;
    const char *unit;
} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}};

static const char replacement[] = "\xef\xbf\xbd";

/* How many bytes of UTF-8 to leave out here: control characters, what turns the direction of text
 * or ends lines, and what XML does not have. */
static size_t bad_bytes(const char *at, size_t left)
{
    const uint8_t first = (uint8_t)at[0];
    const uint8_t second = left > 1 ? (uint8_t)at[1] : 0;
    const uint8_t third = left > 2 ? (uint8_t)at[2] : 0;
    if (first < 0x20 || first == 0x7f)
        return 1;
    if (first == 0xc2)
        return second < 0xa0 ? 2 : 0;
    const bool is_bad = (first == 0xe2 && second == 0x80 && third >= 0xa8 && third <= 0xae) ||
                        (first == 0xe2 && second == 0x81 && third >= 0xa6 && third <= 0xa9) ||
                        (first == 0xef && second == 0xbf && third >= 0xbe);
    return is_bad ? 3 : 0;
}

/* What XML has another word for. */
static const char *entity_of(char byte)
{
    switch (byte) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

static void put(FILE *out, const char *text, bool is_markup)
{
    for (size_t left = strlen(text), valid = 0; left != 0;) {
        if (valid == 0)
            valid = oteli_utf8_valid_prefix(text, left);
        const size_t bad = valid == 0 ? 1 : bad_bytes(text, valid);
        const char *entity = is_markup ? entity_of(*text) : NULL;
        if (bad != 0)
            fputs(*text >= '\t' && *text <= '\r' ? " " : replacement, out);
        else if (entity != NULL)
            fputs(entity, out);
        else
            fputc(*text, out);
        const size_t step = bad != 0 ? bad : 1;
        valid -= valid != 0 ? step : 0;
        left -= step;
        text += step;
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

/* SPDX-License-Identifier: Apache-2.0 */
/* tools/gen-config-doc.c - print the rows of the table in docs/CONFIGURATION.md from the table of
 * settings (common/config/config_table.h).
 *
 * tests/gates/docs_fresh.sh compares what this prints with the document, and puts it there. */
#include "common/config/configuration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *type_word(enum oteli_setting_type type)
{
    static const char *const words[] = {
        [OTELI_TYPE_STRING] = "string",   [OTELI_TYPE_BOOL] = "boolean",
        [OTELI_TYPE_COUNT] = "count",     [OTELI_TYPE_DURATION] = "duration",
        [OTELI_TYPE_TIMEOUT] = "timeout", [OTELI_TYPE_ENUM] = "word",
        [OTELI_TYPE_LIST] = "list",
    };
    return words[type];
}

/* Print the words of a row that have this mark in front, with `before` before the first. */
static void print_words(const char *words, char mark, const char *before)
{
    size_t count = 0;
    while (*words != '\0') {
        const size_t length = strcspn(words, " ");
        const char found = words[0] == '-' || words[0] == '!' ? words[0] : ' ';
        const size_t skip = found != ' ';
        if (found == mark) {
            printf("%s`%.*s`", count == 0 ? before : ", ", (int)(length - skip), words + skip);
            count++;
        }
        words += length;
        words += strspn(words, " ");
    }
}

static void print_range(const struct oteli_config_row *row)
{
    switch (row->type) {
    case OTELI_TYPE_STRING:
        break;
    case OTELI_TYPE_BOOL:
        printf("`true`, `false`");
        break;
    case OTELI_TYPE_ENUM:
    case OTELI_TYPE_LIST:
        print_words(row->words, ' ', "");
        print_words(row->words, '-', ". Not supported yet: ");
        break;
    case OTELI_TYPE_COUNT:
    case OTELI_TYPE_DURATION:
    case OTELI_TYPE_TIMEOUT:
        printf("%" PRId64, row->min);
        if (row->max == INT64_MAX)
            printf(" or more");
        else
            printf(" to %" PRId64, row->max);
        break;
    }
}

static void print_row(const struct oteli_config_row *row)
{
    printf("| `%s` | ", row->variable);
    if (row->option_offset >= 0)
        printf("`%s`", row->name);
    printf(" | %s | ", type_word(row->type));
    if (row->default_text != NULL)
        printf("`%s`", row->default_text);
    printf(" | ");
    print_range(row);
    printf(" | %s |\n", row->doc);
}

int main(void)
{
    for (size_t i = 0; i < oteli_config_row_count; i++)
        print_row(&oteli_config_rows[i]);
    return fflush(stdout) != 0 || ferror(stdout);
}

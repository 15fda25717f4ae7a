/* SPDX-License-Identifier: Apache-2.0 */
/* tools/gen-config-doc.c - print docs/CONFIGURATION.md from the table of settings.
 *
 * A test compares what this prints with the file, so the two cannot drift apart. */
#include "common/config/configuration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char head[] =
    "<!-- Generated from common/config/config_table.h by `build/tools/gen-config-doc > "
    "docs/CONFIGURATION.md`. Do not edit. -->\n"
    "# Configuration\n"
    "\n"
    "Every setting of otel-c has an environment variable, and almost every one has a member in\n"
    "`otel_sdk_options` as well. A setting in code beats the environment, and the environment\n"
    "beats the default. The environment is read once, inside `otel_start`, on the thread that\n"
    "calls it; `otel_start_with` does not read it at all.\n"
    "\n"
    "In a program that runs with more rights than its caller (setuid, setgid, file capabilities:\n"
    "where `secure_getenv` answers nothing) no variable counts, because the caller chose them all:\n"
    "not those of this page, not the proxies, and not the trace context of\n"
    "`otel_extract_environment`. Such programs are configured in code, or by\n"
    "`otel_start_from_file`.\n"
    "\n"
    "<!-- frame: function -->\n"
    "```c\n"
    "otel_status status = otel_start(OTEL_SDK_OPTIONS(.service_name = \"shop\",\n"
    "                                                 .bsp_max_queue_size = 8192));\n"
    "```\n"
    "\n"
    "## Settings\n"
    "\n"
    "| Variable | Option in code | Type | Default | Range | What it does |\n"
    "|---|---|---|---|---|---|\n";

static const char rules[] =
    "\n"
    "## How values are read\n"
    "\n"
    "A variable that is empty is unset. Spaces and tabs around a value do not matter, except in\n"
    "a string, which is taken as it is.\n"
    "\n"
    "| Type | What is accepted |\n"
    "|---|---|\n"
    "| string | Any text. |\n"
    "| boolean | `true` and `false`, in upper or lower case. Everything else is false, with a "
    "warning: `1` and `yes` are not true. |\n"
    "| count | Decimal digits and nothing else: no sign, no fraction, no unit. |\n"
    "| duration | The same, in milliseconds. |\n"
    "| timeout | The same, in milliseconds. 0 means that there is no limit. |\n"
    "| word | One of the words named, in upper or lower case. |\n"
    "| list | Such words with commas between them. A word that is there twice counts once. "
    "`none` stands alone. |\n"
    "\n"
    "A value that cannot be read, or is outside its range, never stops the program. It gives\n"
    "one warning, which names the variable, the value and what is used instead, and then it\n"
    "counts as unset. A list loses only the words that are unknown or not supported yet.\n"
    "\n"
    "What is read does not depend on the locale.\n"
    "\n"
    "## Settings in code\n"
    "\n"
    "A number that is 0, and a text that is `NULL` or empty, is unset: the environment and the\n"
    "default decide. For the number zero itself there is `OTEL_ZERO`: a timeout of `OTEL_ZERO`\n"
    "is no limit, and a count or length of `OTEL_ZERO` keeps nothing. Every other negative\n"
    "number, a number outside its range, an unknown word and an argument that is none for the\n"
    "sampler make `otel_start` answer `OTEL_ERROR_INVALID_ARGUMENT`, and a word that is not\n"
    "supported yet makes it answer `OTEL_ERROR_UNSUPPORTED`; a line in the log says which member\n"
    "it was. Nothing is started then, and the program goes on without telemetry. Texts with\n"
    "several values of the program's (`resource_attributes`, headers, `entities`) lose what cannot\n"
    "be read, with a warning, in code as in the environment.\n"
    "\n"
    "## General and specific\n"
    "\n"
    "Some settings exist twice: for everything, and only for spans or traces. The specific one\n"
    "beats the general one, also when its value is larger, and wherever the two come from: a\n"
    "specific variable in the environment beats a general setting in code.\n";

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
    fputs(head, stdout);
    for (size_t i = 0; i < oteli_config_row_count; i++)
        print_row(&oteli_config_rows[i]);
    fputs(rules, stdout);
    return fflush(stdout) != 0 || ferror(stdout);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* common/config/config_text.c - the contracts are in common/config/config_text.h, and for the ratio
 * in common/config/configuration.h. Runs while the SDK starts; owns nothing.
 *
 * strtol is not used: it takes signs and hexadecimal, and answers through errno. */
#include "common/config/config_text.h"

#include "common/text/secrets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Find `word` in a row's words, which may have a mark in front (common/config/config_table.h). */
static otel_status look_up(const char *words, otel_slice word, bool in_code)
{
    while (*words != '\0') {
        const size_t length = strcspn(words, " ");
        const char mark = words[0] == '-' || words[0] == '!' ? words[0] : ' ';
        const size_t skip = mark != ' ';
        if (length - skip == word.length) {
            size_t same = 0;
            while (same < word.length && oteli_to_lower(word.data[same]) == words[skip + same])
                same++;
            if (same == word.length) {
                if (mark == '-')
                    return OTEL_ERROR_UNSUPPORTED;
                return mark == ' ' || in_code ? OTEL_OK : OTEL_ERROR_INVALID_ARGUMENT;
            }
        }
        words += length;
        words += strspn(words, " ");
    }
    return OTEL_ERROR_INVALID_ARGUMENT;
}

void oteli_setting_words(const struct oteli_config_row *row, bool in_code, char *out, size_t size)
{
    size_t written = 0;
    out[0] = '\0';
    for (const char *word = row->words; *word != '\0' && written < size;) {
        const size_t length = strcspn(word, " ");
        const bool is_for_code = word[0] == '!';
        if (word[0] != '-' && (in_code || !is_for_code))
            written +=
                (size_t)snprintf(out + written, size - written, "%s%.*s", written == 0 ? "" : ", ",
                                 (int)(length - is_for_code), word + is_for_code);
        word += length;
        word += strspn(word, " ");
    }
}

static char *copy_in_lower_case(otel_slice text)
{
    char *copy = oteli_slice_copy(text);
    for (char *at = copy; at != NULL && *at != '\0'; at++)
        *at = oteli_to_lower(*at);
    return copy;
}

static bool has_member(const char *list, size_t length, otel_slice word)
{
    otel_slice rest = {.data = list, .length = length};
    otel_slice member;
    while (oteli_list_next(&rest, &member)) {
        if (member.length == word.length && memcmp(member.data, word.data, word.length) == 0)
            return true;
    }
    return false;
}

/* Keep the good words of a list in lower case, each once; the first bad one is the culprit.
 * "none" is good only alone. */
static otel_status parse_list(const char *words, otel_slice text, bool in_code, char **list,
                              otel_slice *culprit)
{
    char *kept = copy_in_lower_case(text);
    if (kept == NULL)
        return OTEL_ERROR_NO_MEMORY;
    /* The list shrinks in place: what is kept never reaches what is still to be read. */
    otel_slice rest = {.data = kept, .length = text.length};
    otel_slice member;
    otel_slice none = {.data = NULL, .length = 0};
    otel_status status = OTEL_OK;
    size_t length = 0;
    while (oteli_list_next(&rest, &member)) {
        const otel_slice original = {.data = text.data + (member.data - kept),
                                     .length = member.length};
        const otel_status found = look_up(words, member, in_code);
        if (found != OTEL_OK) {
            if (status == OTEL_OK)
                *culprit = original;
            status = status == OTEL_OK ? found : status;
        } else if (oteli_is_word(member, "none")) {
            none = original;
        } else if (!has_member(kept, length, member)) {
            if (length != 0)
                kept[length++] = ',';
            memmove(kept + length, member.data, member.length);
            length += member.length;
        }
    }
    if (none.data != NULL && length != 0 && status == OTEL_OK) {
        status = OTEL_ERROR_INVALID_ARGUMENT;
        *culprit = none;
    }
    if (none.data != NULL && length == 0) {
        memcpy(kept, "none", 4);
        length = 4;
    }
    kept[length] = '\0';
    if (length == 0) {
        free(kept);
        kept = NULL;
    }
    *list = kept;
    return status;
}

static otel_status parse_boolean(otel_slice text, bool *boolean)
{
    *boolean = oteli_is_word(text, "true");
    return *boolean || oteli_is_word(text, "false") ? OTEL_OK : OTEL_ERROR_INVALID_ARGUMENT;
}

otel_status oteli_setting_parse(const struct oteli_config_row *row, otel_slice text, bool in_code,
                                struct oteli_setting *setting, otel_slice *culprit)
{
    *setting = (struct oteli_setting){.text = NULL};
    *culprit = text;
    const otel_slice trimmed = oteli_trim(text);
    otel_status status;
    switch (row->type) {
    case OTELI_TYPE_STRING:
        setting->text = oteli_slice_copy(text);
        return setting->text != NULL ? OTEL_OK : OTEL_ERROR_NO_MEMORY;
    case OTELI_TYPE_BOOL:
        return parse_boolean(trimmed, &setting->boolean);
    case OTELI_TYPE_ENUM:
        status = look_up(row->words, trimmed, in_code);
        if (status != OTEL_OK)
            return status;
        setting->text = copy_in_lower_case(trimmed);
        return setting->text != NULL ? OTEL_OK : OTEL_ERROR_NO_MEMORY;
    case OTELI_TYPE_LIST:
        return parse_list(row->words, trimmed, in_code, &setting->text, culprit);
    case OTELI_TYPE_COUNT:
    case OTELI_TYPE_DURATION:
    case OTELI_TYPE_TIMEOUT:
        break;
    }
    int64_t number;
    if (!oteli_parse_whole(trimmed, &number) || number < row->min || number > row->max)
        return OTEL_ERROR_INVALID_ARGUMENT;
    const bool is_unlimited = number == 0 && row->type == OTELI_TYPE_TIMEOUT;
    setting->number = is_unlimited ? OTELI_UNLIMITED : number;
    return OTEL_OK;
}

bool oteli_parse_ratio(const char *text, double *ratio)
{
    const otel_slice number = oteli_trim(oteli_slice_of(text));
    double value;
    if (number.length == 0 || number.data[0] == '-' || number.data[0] == '+' ||
        !oteli_parse_decimal(number, &value) || value > 1)
        return false;
    *ratio = value;
    return true;
}

static bool is_headers(const struct oteli_config_row *row)
{
    return strstr(row->variable, "HEADERS") != NULL;
}

static bool is_endpoint(const struct oteli_config_row *row)
{
    return strstr(row->variable, "ENDPOINT") != NULL;
}

const char *oteli_config_show(const struct oteli_config *config, const struct oteli_config_row *row,
                              char *out, size_t size)
{
    const void *field = (const char *)config + row->offset;
    switch (row->type) {
    case OTELI_TYPE_STRING:
    case OTELI_TYPE_ENUM:
    case OTELI_TYPE_LIST: {
        const char *text = *(char *const *)field;
        if (text == NULL)
            return NULL;
        return is_headers(row)    ? oteli_hide_header_values(text, out, size)
               : is_endpoint(row) ? oteli_hide_in_setting(text, out, size)
                                  : oteli_hide_in_words(text, out, size);
    }
    case OTELI_TYPE_BOOL:
        return *(const bool *)field ? "true" : "false";
    case OTELI_TYPE_COUNT:
    case OTELI_TYPE_DURATION:
    case OTELI_TYPE_TIMEOUT:
        break;
    }
    const int64_t number = *(const int64_t *)field;
    if (number == OTELI_UNLIMITED)
        return row->default_text == NULL && row->type != OTELI_TYPE_TIMEOUT ? NULL : "no limit";
    snprintf(out, size, "%" PRId64 "%s", number, row->type == OTELI_TYPE_COUNT ? "" : " ms");
    return out;
}

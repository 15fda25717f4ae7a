/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/markup_check.c - the contract is in markup_check.h. */
#include "tests/support/markup_check.h"

#include "common/text/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { DEPTH_MOST = 64 };

struct reading {
    const char *text;
    size_t length;
    size_t at;
    const char *style;
    const char *script;
    const char *open[DEPTH_MOST]; /* elements, as their words below */
    size_t depth;
};

static const char *const elements[] = {
    "html",    "head",    "meta",    "title", "style", "body",   "header", "h1",
    "h2",      "p",       "nav",     "table", "thead", "tbody",  "tr",     "th",
    "td",      "a",       "span",    "div",   "input", "button", "ul",     "li",
    "section", "details", "summary", "svg",   "rect",  "text",   "script"};

static const char *const attributes[] = {
    "lang", "xmlns",  "charset", "name", "content",  "class",      "href",   "style",
    "id",   "hidden", "type",    "role", "scope",    "aria-label", "height", "width",
    "x",    "y",      "data-d",  "rx",   "disabled", "placeholder"};

#define FIND(reading, list) find(reading, list, sizeof(list) / sizeof *(list))

static bool starts(const struct reading *reading, const char *word)
{
    const size_t length = strlen(word);
    return length <= reading->length - reading->at &&
           memcmp(reading->text + reading->at, word, length) == 0;
}

static bool skip(struct reading *reading, const char *word)
{
    const bool is_there = starts(reading, word);
    reading->at += is_there ? strlen(word) : 0;
    return is_there;
}

static char now(const struct reading *reading)
{
    return reading->at < reading->length ? reading->text[reading->at] : '\0';
}

/* The word of the list that is a whole word here; NULL: none of them. */
static const char *find(struct reading *reading, const char *const *list, size_t count)
{
    size_t length = 0;
    for (; reading->at + length < reading->length; length++) {
        const char c = reading->text[reading->at + length];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
            break;
    }
    for (size_t i = 0; i < count; i++)
        if (strlen(list[i]) == length && skip(reading, list[i]))
            return list[i];
    return NULL;
}

/* Text up to `end`, which is not skipped. */
static const char *read_text(struct reading *reading, char end)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    while (reading->at < reading->length && now(reading) != end) {
        bool is_entity = false;
        for (size_t i = 0; i < sizeof entities / sizeof *entities && !is_entity; i++)
            is_entity = skip(reading, entities[i]);
        if (is_entity)
            continue;
        if (now(reading) == '&' || now(reading) == '<' || now(reading) == '>')
            return "markup in a text";
        if ((uint8_t)now(reading) < ' ' && now(reading) != '\n')
            return "a control character";
        if (starts(reading, "\xef\xbf\xbe") || starts(reading, "\xef\xbf\xbf"))
            return "a noncharacter";
        reading->at++;
    }
    return NULL;
}

static const char *read_attribute(struct reading *reading)
{
    if (FIND(reading, attributes) == NULL)
        return "an attribute that is not ours";
    if (!skip(reading, "=\""))
        return "an attribute without a value";
    const char *fault = read_text(reading, '"');
    return fault == NULL && !skip(reading, "\"") ? "a value without an end" : fault;
}

/* What is in it is as it was, and not looked at. */
static const char *read_raw(struct reading *reading, const char *name)
{
    if (strcmp(name, "style") == 0)
        return skip(reading, "\n") && skip(reading, reading->style) ? NULL : "another style";
    return skip(reading, "//<![CDATA[\n") && skip(reading, reading->script) &&
                   skip(reading, "//]]>")
               ? NULL
               : "another script";
}

static const char *read_tag(struct reading *reading)
{
    if (skip(reading, "/")) {
        const char *name = FIND(reading, elements);
        if (name == NULL || reading->depth == 0 || reading->open[--reading->depth] != name)
            return "an end of what has not begun";
        return skip(reading, ">") ? NULL : "an end without an end";
    }
    const char *name = FIND(reading, elements);
    if (name == NULL)
        return "an element that is not ours";
    while (skip(reading, " ")) {
        const char *fault = read_attribute(reading);
        if (fault != NULL)
            return fault;
    }
    if (skip(reading, "/>"))
        return NULL;
    if (!skip(reading, ">"))
        return "a tag without an end";
    if (reading->depth == DEPTH_MOST)
        return "too deep";
    reading->open[reading->depth++] = name;
    return strcmp(name, "style") == 0 || strcmp(name, "script") == 0 ? read_raw(reading, name)
                                                                     : NULL;
}

static const char *read_all(struct reading *reading)
{
    (void)skip(reading, "<!DOCTYPE html>\n");
    while (reading->at < reading->length) {
        const char *fault = read_text(reading, '<');
        if (fault == NULL && skip(reading, "<"))
            fault = read_tag(reading);
        if (fault != NULL)
            return fault;
    }
    return reading->depth == 0 ? NULL : "an element without an end";
}

const char *markup_fault(const char *text, size_t length, const char *style, const char *script,
                         size_t *at)
{
    struct reading reading = {.text = text, .length = length, .style = style, .script = script};
    const char *fault =
        oteli_utf8_is_valid(text, length) ? read_all(&reading) : "bytes that are no UTF-8";
    *at = reading.at;
    return fault;
}

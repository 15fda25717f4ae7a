/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/substitute.c - put the environment where a scalar refers to it.
 *
 * Scalars only, after YAML has been parsed, and once: neither structure nor references can
 * come in with a value. A reference does not reach over a `$$`.
 *
 * Threads:  start/stop only.
 * Source:   OpenTelemetry specification, configuration/data-model.md "Environment variable
 *           substitution". */
#include "config/read/substitute.h"
#include "common/config/configuration.h"
#include "common/text/text.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_letter(char c)
{
    const char lower = oteli_to_lower(c);
    return lower >= 'a' && lower <= 'z';
}

static size_t name_length(otel_slice text)
{
    size_t length = 0;
    while (length < text.length &&
           (is_letter(text.data[length]) || text.data[length] == '_' ||
            (length != 0 && text.data[length] >= '0' && text.data[length] <= '9')))
        length++;
    return length;
}

/* Printable characters and blanks. What is not ASCII is allowed too: it has been checked. */
static bool is_default(otel_slice text)
{
    for (size_t i = 0; i < text.length; i++)
        if (((uint8_t)text.data[i] < 0x20 && text.data[i] != '\t') || text.data[i] == 0x7F)
            return false;
    return true;
}

struct reference {
    otel_slice name;
    otel_slice instead; /* of a variable that is unset or empty */
};

/* NAME or NAME:-default, and nothing else. */
static bool read_name(otel_slice inside, struct reference *reference)
{
    const size_t length = name_length(inside);
    otel_slice rest = {inside.data + length, inside.length - length};
    reference->name = (otel_slice){inside.data, length};
    reference->instead = (otel_slice){"", 0};
    if (length == 0)
        return false;
    if (rest.length == 0)
        return true;
    if (rest.length < 2 || rest.data[0] != ':' || rest.data[1] != '-')
        return false;
    reference->instead = (otel_slice){rest.data + 2, rest.length - 2};
    return is_default(reference->instead);
}

/* "env:-x" is a variable called env; only what cannot be read so has the prefix. */
static bool read_reference(otel_slice inside, struct reference *reference)
{
    static const char prefix[] = "env:";
    const size_t length = sizeof prefix - 1;
    if (read_name(inside, reference))
        return true;
    if (inside.length <= length || memcmp(inside.data, prefix, length) != 0)
        return false;
    return read_name((otel_slice){inside.data + length, inside.length - length}, reference);
}

static otel_status put_variable(FILE *out, const struct reference *reference,
                                struct oteli_pool *pool, size_t *budget)
{
    const char *name = oteli_pool_text(pool, reference->name.data, reference->name.length);
    if (name == NULL)
        return OTEL_ERROR_NO_MEMORY;
    const char *value = oteli_env_get(name);
    const otel_slice text = value != NULL ? oteli_slice_of(value) : reference->instead;
    if (text.length > *budget)
        return OTEL_ERROR_UNSUPPORTED;
    *budget -= text.length;
    (void)fwrite(text.data, 1, text.length, out);
    return OTEL_OK;
}

/* What begins with a `$`; `used` is how much of the text that is. A "${" that nothing closes, or
 * that has nothing in it, is text. */
static otel_status put_dollar(FILE *out, otel_slice text, struct oteli_pool *pool, size_t *budget,
                              size_t *used)
{
    const bool is_escape = text.length > 1 && text.data[1] == '$';
    const bool is_open = text.length > 1 && text.data[1] == '{';
    const char *close = is_open ? memchr(text.data, '}', text.length) : NULL;
    struct reference reference;
    *used = is_escape ? 2 : 1;
    if (close == NULL || close == text.data + 2 ||
        memmem(text.data, (size_t)(close - text.data), "$$", 2) != NULL) {
        (void)putc('$', out);
        return OTEL_OK;
    }
    *used = (size_t)(close - text.data) + 1;
    if (!read_reference((otel_slice){text.data + 2, *used - 3}, &reference))
        return OTEL_ERROR_INVALID_ARGUMENT;
    return put_variable(out, &reference, pool, budget);
}

otel_status oteli_substitute(otel_slice input, struct oteli_pool *pool, size_t *budget,
                             otel_slice *output, otel_slice *culprit)
{
    *output = input;
    if (input.length == 0 || memchr(input.data, '$', input.length) == NULL)
        return OTEL_OK;
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL)
        return OTEL_ERROR_NO_MEMORY;
    otel_status status = OTEL_OK;
    while (input.length != 0 && status == OTEL_OK) {
        const char *dollar = memchr(input.data, '$', input.length);
        size_t used = dollar != NULL ? (size_t)(dollar - input.data) : input.length;
        (void)fwrite(input.data, 1, used, out);
        *culprit = (otel_slice){input.data + used, input.length - used};
        if (dollar != NULL) {
            status = put_dollar(out, *culprit, pool, budget, &culprit->length);
            used += culprit->length;
        }
        input = (otel_slice){input.data + used, input.length - used};
    }
    if (fclose(out) != 0 && status == OTEL_OK)
        status = OTEL_ERROR_NO_MEMORY;
    if (status == OTEL_OK) {
        output->data = oteli_pool_text(pool, text, length);
        output->length = length;
        status = output->data != NULL ? OTEL_OK : OTEL_ERROR_NO_MEMORY;
    }
    free(text);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/substitute.c - put the environment where a scalar refers to it.
 *
 * Scalars only, after YAML has been parsed, and once: neither structure nor references can
 * come in with a value. First the text is cut at each `$$`, then references are looked for in
 * the pieces, so that a reference never reaches over an escape.
 *
 * Threads:  start/stop only.
 * Source:   OpenTelemetry specification, configuration/data-model.md "Environment variable
 *           substitution". */
#include "config/read/substitute.h"
#include "common/config/configuration.h"
#include "common/text/text.h"

struct writer {
    struct oteli_pool *pool;
    char *text;
    size_t length;
    size_t size;
    bool has_failed;
};

static void put(struct writer *writer, const char *data, size_t length)
{
    if (writer->has_failed || length == 0)
        return;
    if (length > writer->size - writer->length) {
        const size_t size = (writer->length + length) * 2;
        char *text = oteli_pool_take(writer->pool, size);
        writer->has_failed = text == NULL;
        if (writer->has_failed)
            return;
        if (writer->length != 0)
            memcpy(text, writer->text, writer->length);
        writer->text = text;
        writer->size = size;
    }
    memcpy(writer->text + writer->length, data, length);
    writer->length += length;
}

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

static otel_status put_variable(struct writer *writer, const struct reference *reference,
                                size_t *budget)
{
    const char *name = oteli_pool_text(writer->pool, reference->name.data, reference->name.length);
    if (name == NULL)
        return OTEL_ERROR_NO_MEMORY;
    const char *value = oteli_env_get(name);
    const otel_slice text = value != NULL ? oteli_slice_of(value) : reference->instead;
    if (text.length > *budget)
        return OTEL_ERROR_UNSUPPORTED;
    *budget -= text.length;
    put(writer, text.data, text.length);
    return OTEL_OK;
}

/* A piece without escapes. A "${" that nothing closes, or that has nothing in it, is text. */
static otel_status put_piece(struct writer *writer, otel_slice piece, size_t *budget,
                             otel_slice *culprit)
{
    while (piece.length != 0) {
        const char *begin = memchr(piece.data, '$', piece.length);
        if (begin == NULL)
            break;
        const size_t before = (size_t)(begin - piece.data);
        const size_t left = piece.length - before;
        const bool is_open = left >= 2 && begin[1] == '{';
        const char *close = is_open ? memchr(begin, '}', left) : NULL;
        if (is_open && close == NULL)
            break;
        put(writer, piece.data, before);
        size_t used = 1;
        if (is_open && close != begin + 2) {
            struct reference reference;
            *culprit = (otel_slice){begin, (size_t)(close - begin) + 1};
            used = culprit->length;
            if (!read_reference((otel_slice){begin + 2, used - 3}, &reference))
                return OTEL_ERROR_INVALID_ARGUMENT;
            const otel_status status = put_variable(writer, &reference, budget);
            if (status != OTEL_OK)
                return status;
        } else {
            put(writer, begin, 1);
        }
        piece.data = begin + used;
        piece.length -= before + used;
    }
    put(writer, piece.data, piece.length);
    return OTEL_OK;
}

otel_status oteli_substitute(otel_slice input, struct oteli_pool *pool, size_t *budget,
                             otel_slice *output, otel_slice *culprit)
{
    *output = input;
    if (input.length == 0 || memchr(input.data, '$', input.length) == NULL)
        return OTEL_OK;
    struct writer writer = {.pool = pool};
    while (input.length != 0) {
        const char *escape = memmem(input.data, input.length, "$$", 2);
        const size_t length = escape != NULL ? (size_t)(escape - input.data) : input.length;
        const otel_status status =
            put_piece(&writer, (otel_slice){input.data, length}, budget, culprit);
        if (status != OTEL_OK)
            return status;
        if (escape != NULL)
            put(&writer, "$", 1);
        const size_t used = escape != NULL ? length + 2 : length;
        input.data += used;
        input.length -= used;
    }
    put(&writer, "\0", 1);
    if (writer.has_failed)
        return OTEL_ERROR_NO_MEMORY;
    *output = (otel_slice){writer.text, writer.length - 1};
    return OTEL_OK;
}

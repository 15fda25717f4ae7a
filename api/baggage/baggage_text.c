/* SPDX-License-Identifier: Apache-2.0 */
/* api/baggage/baggage_text.c - a W3C baggage header, read and written. Any thread.
 *
 *     name=value;metadata,name=value
 *
 * Names are tokens and stand there as they are. Values are percent-encoded UTF-8; a + is a +.
 * Metadata is what the sender wrote, and is passed on so; only what cannot be in a header is
 * encoded, and blanks between properties go. We read more than may be written: blanks, quotes and
 * UTF-8 inside of values are taken for what they are. Control characters are not.
 *
 * Source: W3C Baggage, "Header Content"; RFC 7230, section 3.2.6 (token). */
#include "api/baggage/baggage_pool.h"

#include <string.h>

/* --- reading --- */

static bool has_control(otel_slice text)
{
    for (size_t i = 0; i < text.length; i++)
        if (((unsigned char)text.data[i] < 0x20 && text.data[i] != '\t') || text.data[i] == 0x7f)
            return true;
    return false;
}

static bool parse_member(struct oteli_baggage_builder *builder, otel_slice member)
{
    struct oteli_baggage_member made = {.is_encoded = true};
    otel_slice pair = member;
    (void)oteli_cut(member, ';', &pair, &made.metadata);
    return !has_control(member) && oteli_cut(pair, '=', &made.name, &made.value) &&
           oteli_is_token(made.name.data, made.name.length) && oteli_baggage_put(builder, &made);
}

/* What of a header is looked at: if it is too much, whole members only. */
static otel_slice look_at(struct oteli_baggage_builder *builder, otel_slice header)
{
    const size_t most = builder->text_left != 0 ? builder->text_left - 1 : 0;
    if (header.length <= most) {
        builder->text_left -= (uint32_t)header.length + 1; /* and the comma for its end */
        return header;
    }
    builder->text_left = 0;
    header.length = most;
    if (most != 0 && header.data[most] != ',')
        while (header.length != 0 && header.data[header.length - 1] != ',')
            header.length--;
    return header;
}

size_t oteli_baggage_parse(struct oteli_baggage_builder *builder, const char *text, size_t length)
{
    size_t put = 0;
    if (text == NULL || length == 0 || builder->text_left == 0)
        return 0;
    otel_slice rest = look_at(builder, (otel_slice){text, length});
    otel_slice member;
    while (oteli_list_next(&rest, &member))
        put += parse_member(builder, member);
    return put;
}

/* --- writing --- */

static char *put_byte(char *out, char byte)
{
    *out++ = byte;
    return out;
}

static char *put_member(char *out, const struct oteli_baggage_entry *entry)
{
    memcpy(out, oteli_baggage_name(entry), entry->name_length);
    out += entry->name_length;
    *out++ = '=';
    const char *at = oteli_baggage_value(entry);
    const char *end = at + entry->value_length;
    for (; at < end; at++)
        out = oteli_baggage_is_plain(*at) ? put_byte(out, *at) : oteli_percent_put(out, *at);
    if (entry->metadata_length != 0)
        *out++ = ';';
    at = oteli_baggage_metadata(entry);
    end = at + entry->metadata_length;
    for (; at < end; at++)
        out = oteli_baggage_is_plain_metadata(at, end) ? put_byte(out, *at)
                                                       : oteli_percent_put(out, *at);
    return out;
}

size_t oteli_baggage_format(otel_baggage baggage, char *text, size_t size)
{
    if (size == 0)
        return 0;
    const struct oteli_baggage_entries *entries = oteli_baggage_hold(baggage);
    char *out = text;
    const struct oteli_baggage_entry *entry;
    for (uint32_t at = 0; entries != NULL && (entry = oteli_baggage_entry_at(entries, at)) != NULL;
         at += oteli_baggage_entry_length(entry)) {
        const size_t left = size - (size_t)(out - text); /* a comma, or the NUL, is in both */
        if (entry->wire_length + (out != text ? 1u : 0u) > left ||
            !oteli_is_token(oteli_baggage_name(entry), entry->name_length))
            continue;
        if (out != text)
            *out++ = ',';
        out = put_member(out, entry);
    }
    *out = '\0';
    if (entries != NULL)
        oteli_baggage_release(baggage);
    return (size_t)(out - text);
}

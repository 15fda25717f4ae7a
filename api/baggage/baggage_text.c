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
#include "common/text/text.h"
#include "common/text/utf8.h"

#include <string.h>

/* --- characters --- */

/* baggage-octet, but for %. */
static bool is_plain(char c)
{
    return c > ' ' && c <= '~' && c != '"' && c != ',' && c != '\\' && c != '%' && c != ';';
}

static bool is_control(char c)
{
    return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* --- text that may be percent-encoded, and may be no UTF-8 --- */

struct reader {
    const char *at;
    const char *end;
    bool is_encoded;
};

/* The byte at `at`, and how many bytes of the text stand for it. */
static char byte_at(const struct reader *reader, const char *at, size_t *taken)
{
    *taken = 1;
    if (!reader->is_encoded || *at != '%' || reader->end - at < 3)
        return *at;
    const int high = oteli_hex_digit(at[1]);
    const int low = oteli_hex_digit(at[2]);
    if (high < 0 || low < 0)
        return *at;
    *taken = 3;
    return (char)(high << 4 | low);
}

/* The next character, or U+FFFD in the place of a byte that belongs to none. Returns how many
 * bytes it has; 0: the end. */
static size_t next_character(struct reader *reader, char character[4])
{
    size_t taken[4];
    size_t count = 0;
    const char *at = reader->at;
    while (count < 4 && at < reader->end) {
        character[count] = byte_at(reader, at, &taken[count]);
        at += taken[count++];
        if ((character[0] & 0x80) == 0)
            break;
    }
    if (count == 0)
        return 0;
    const unsigned char first = (unsigned char)character[0];
    const size_t wanted = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (wanted > count || oteli_utf8_valid_prefix(character, wanted) != wanted) {
        reader->at += taken[0];
        memcpy(character, "\xef\xbf\xbd", 3);
        return 3;
    }
    for (size_t i = 0; i < wanted; i++)
        reader->at += taken[i];
    return wanted;
}

/* A text that is not there may be NULL. */
static struct reader reader_of(const char *text, size_t length, bool is_encoded)
{
    return (struct reader){text, length != 0 ? text + length : text, is_encoded};
}

/* What stands in metadata on the wire as it is: there, a ; separates properties, and %xx is the
 * sender's. */
static bool is_plain_metadata(const char *at, const char *end)
{
    const bool is_code =
        end - at > 2 && *at == '%' && oteli_hex_digit(at[1]) >= 0 && oteli_hex_digit(at[2]) >= 0;
    return is_plain(*at) || *at == ';' || is_code;
}

/* Metadata as it is stored: blanks beside a ; or the = of a property mean nothing, and some peers
 * drop members that have them. */
struct metadata {
    struct reader reader;
    size_t blanks; /* that wait for what follows them */
    char last;     /* that was no blank */
};

static struct metadata metadata_of(const char *text, size_t length)
{
    return (struct metadata){.reader = reader_of(text, length, false), .last = ';'};
}

static bool separates(char c)
{
    return c == ';' || c == '=';
}

/* The next character that is no blank, where it stands, and in `blanks` how many are to be kept in
 * front of it. Returns how many bytes it has; 0: the end. */
static size_t next_of_metadata(struct metadata *metadata, char character[4], const char **at)
{
    size_t bytes;
    metadata->blanks = 0;
    do {
        *at = metadata->reader.at;
        bytes = next_character(&metadata->reader, character);
    } while (bytes != 0 && is_blank(character[0]) && ++metadata->blanks != 0);
    if (bytes == 0)
        return 0;
    if (separates(metadata->last) || separates(character[0]))
        metadata->blanks = 0;
    metadata->last = character[0];
    return bytes;
}

struct oteli_baggage_size oteli_baggage_measure_metadata(const char *text, size_t length)
{
    struct oteli_baggage_size size = {0, 0};
    struct metadata metadata = metadata_of(text, length);
    const char *at;
    char character[4];
    size_t bytes;
    while (length != 0 && (bytes = next_of_metadata(&metadata, character, &at)) != 0) {
        const bool is_one = bytes == 1 && is_plain_metadata(at, metadata.reader.end);
        size.stored += metadata.blanks + bytes;
        size.wire += 3 * metadata.blanks + (is_one ? 1 : 3 * bytes);
    }
    return size;
}

char *oteli_baggage_clean_metadata(char *out, const char *text, size_t length)
{
    struct metadata metadata = metadata_of(text, length);
    const char *at;
    char character[4];
    size_t bytes;
    while (length != 0 && (bytes = next_of_metadata(&metadata, character, &at)) != 0) {
        memset(out, ' ', metadata.blanks);
        memcpy(out + metadata.blanks, character, bytes);
        out += metadata.blanks + bytes;
    }
    return out;
}

struct oteli_baggage_size oteli_baggage_measure(const char *text, size_t length, bool is_encoded)
{
    struct oteli_baggage_size size = {0, 0};
    struct reader reader = reader_of(text, length, is_encoded);
    char character[4];
    size_t bytes;
    while (length != 0 && (bytes = next_character(&reader, character)) != 0) {
        size.stored += bytes;
        size.wire += is_plain(character[0]) ? 1 : 3 * bytes;
    }
    return size;
}

char *oteli_baggage_clean(char *out, const char *text, size_t length, bool is_encoded)
{
    struct reader reader = reader_of(text, length, is_encoded);
    char character[4];
    size_t bytes;
    while (length != 0 && (bytes = next_character(&reader, character)) != 0) {
        memcpy(out, character, bytes);
        out += bytes;
    }
    return out;
}

/* --- reading --- */

struct piece {
    const char *at;
    const char *end;
};

static struct piece trim(struct piece piece)
{
    while (piece.at < piece.end && is_blank(*piece.at))
        piece.at++;
    while (piece.end > piece.at && is_blank(piece.end[-1]))
        piece.end--;
    return piece;
}

static const char *find(struct piece piece, char mark)
{
    const char *at =
        piece.at < piece.end ? memchr(piece.at, mark, (size_t)(piece.end - piece.at)) : NULL;
    return at != NULL ? at : piece.end;
}

/* What stands before a mark and behind it; without one, nothing stands behind it. */
static struct piece cut(struct piece *piece, char mark)
{
    const char *at = find(*piece, mark);
    const struct piece before = {piece->at, at};
    piece->at = at < piece->end ? at + 1 : at;
    return before;
}

static bool has_control(struct piece piece)
{
    for (const char *at = piece.at; at < piece.end; at++)
        if (is_control(*at))
            return true;
    return false;
}

static bool parse_member(struct oteli_baggage_builder *builder, struct piece member)
{
    struct piece metadata = member;
    struct piece value = cut(&metadata, ';');
    if (has_control(member) || find(value, '=') == value.end)
        return false;
    const struct piece name = trim(cut(&value, '='));
    if (!oteli_is_token(name.at, (size_t)(name.end - name.at)))
        return false;
    value = trim(value);
    metadata = trim(metadata);
    const struct oteli_baggage_member made = {.name = name.at,
                                              .name_length = (size_t)(name.end - name.at),
                                              .value = value.at,
                                              .value_length = (size_t)(value.end - value.at),
                                              .metadata = metadata.at,
                                              .metadata_length =
                                                  (size_t)(metadata.end - metadata.at),
                                              .is_encoded = true};
    return oteli_baggage_put(builder, &made);
}

/* What of a header is looked at: if it is too much, whole members only. */
static struct piece look_at(struct oteli_baggage_builder *builder, const char *text, size_t length)
{
    const size_t most = builder->text_left != 0 ? builder->text_left - 1 : 0;
    struct piece rest = {text, text + length};
    if (length <= most) {
        builder->text_left -= (uint32_t)length + 1; /* and the comma that stands for its end */
        return rest;
    }
    builder->text_left = 0;
    rest.end = text + most;
    if (most != 0 && *rest.end != ',')
        while (rest.end > rest.at && rest.end[-1] != ',')
            rest.end--;
    return rest;
}

size_t oteli_baggage_parse(struct oteli_baggage_builder *builder, const char *text, size_t length)
{
    size_t put = 0;
    if (text == NULL || length == 0 || builder->text_left == 0)
        return 0;
    struct piece rest = look_at(builder, text, length);
    while (rest.at < rest.end)
        put += parse_member(builder, cut(&rest, ','));
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
        out = is_plain(*at) ? put_byte(out, *at) : oteli_percent_put(out, *at);
    if (entry->metadata_length != 0)
        *out++ = ';';
    at = oteli_baggage_metadata(entry);
    end = at + entry->metadata_length;
    for (; at < end; at++)
        out = is_plain_metadata(at, end) ? put_byte(out, *at) : oteli_percent_put(out, *at);
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

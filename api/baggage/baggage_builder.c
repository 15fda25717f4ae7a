/* SPDX-License-Identifier: Apache-2.0 */
/* api/baggage/baggage_builder.c - put a baggage together: measure what is given, and store it as
 * clean UTF-8. Any thread.
 *
 * Source: W3C Baggage, "Header Content". */
#include "api/baggage/baggage_pool.h"
#include "common/text/utf8.h"

#include <string.h>

/* How long a value is once it is clean UTF-8, and on the wire, which is never less. */
struct sizes {
    size_t stored;
    size_t wire;
};

/* A text that may be percent-encoded, and may be no UTF-8. */
struct reader {
    const char *at;
    const char *end;
    bool is_encoded;
};

static struct reader reader_of(otel_slice text, bool is_encoded)
{
    const char *end = text.length != 0 ? text.data + text.length : text.data;
    return (struct reader){text.data, end, is_encoded};
}

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

/* Metadata as it is stored: blanks beside a ; or the = of a property mean nothing, and some peers
 * drop members that have them. */
struct metadata {
    struct reader reader;
    size_t blanks; /* that wait for what follows them */
    char last;     /* that was no blank */
};

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
    } while (bytes != 0 && (character[0] == ' ' || character[0] == '\t') &&
             ++metadata->blanks != 0);
    if (bytes == 0)
        return 0;
    if (separates(metadata->last) || separates(character[0]))
        metadata->blanks = 0;
    metadata->last = character[0];
    return bytes;
}

/* Write a value as clean UTF-8; without `out` it is only measured. */
static struct sizes put_value(char *out, otel_slice text, bool is_encoded)
{
    struct sizes size = {0, 0};
    struct reader reader = reader_of(text, is_encoded);
    char character[4];
    size_t bytes;
    while ((bytes = next_character(&reader, character)) != 0) {
        if (out != NULL)
            memcpy(out + size.stored, character, bytes);
        size.stored += bytes;
        size.wire += oteli_baggage_is_plain(character[0]) ? 1 : 3 * bytes;
    }
    return size;
}

/* The same of metadata, which is also cleaned of blanks that mean nothing. */
static struct sizes put_metadata(char *out, otel_slice text)
{
    struct sizes size = {0, 0};
    struct metadata metadata = {.reader = reader_of(text, false), .last = ';'};
    const char *at;
    char character[4];
    size_t bytes;
    while ((bytes = next_of_metadata(&metadata, character, &at)) != 0) {
        const bool is_one = bytes == 1 && oteli_baggage_is_plain_metadata(at, metadata.reader.end);
        if (out != NULL) {
            memset(out + size.stored, ' ', metadata.blanks);
            memcpy(out + size.stored + metadata.blanks, character, bytes);
        }
        size.stored += metadata.blanks + bytes;
        size.wire += 3 * metadata.blanks + (is_one ? 1 : 3 * bytes);
    }
    return size;
}

const struct oteli_baggage_entry *oteli_baggage_find(const struct oteli_baggage_entries *entries,
                                                     otel_slice name)
{
    uint32_t at = 0;
    const struct oteli_baggage_entry *entry;
    while ((entry = oteli_baggage_entry_at(entries, at)) != NULL) {
        if (oteli_is_text(name, oteli_baggage_name(entry)))
            return entry;
        at += oteli_baggage_entry_length(entry);
    }
    return NULL;
}

void oteli_baggage_begin(struct oteli_baggage_builder *builder, otel_baggage from)
{
    struct oteli_baggage_entries *made = &builder->made.entries;
    builder->text_left = OTELI_BAGGAGE_TEXT + 1; /* and a comma behind the last header */
    const struct oteli_baggage_entries *entries = oteli_baggage_hold(from);
    if (entries == NULL) {
        *made = (struct oteli_baggage_entries){0};
        return;
    }
    memcpy(made, entries, sizeof *entries + entries->length);
    oteli_baggage_release(from);
}

static uint8_t *data_of(struct oteli_baggage_entries *made)
{
    return (uint8_t *)(made + 1);
}

static void take_out(struct oteli_baggage_entries *made, const struct oteli_baggage_entry *entry)
{
    const uint32_t at = (uint32_t)((const uint8_t *)entry - data_of(made));
    const uint32_t length = oteli_baggage_entry_length(entry);
    made->count--;
    made->wire_length = (uint16_t)(made->wire_length - entry->wire_length);
    made->length -= length;
    memmove(data_of(made) + at, data_of(made) + at + length, made->length - at);
}

static void append(struct oteli_baggage_entries *made, const struct oteli_baggage_member *member,
                   const struct oteli_baggage_entry *head)
{
    struct oteli_baggage_entry *entry = (void *)(data_of(made) + made->length);
    *entry = *head;
    char *at = (char *)(entry + 1);
    memcpy(at, member->name.data, member->name.length);
    at += member->name.length;
    *at++ = '\0';
    at += put_value(at, member->value, member->is_encoded).stored;
    *at++ = '\0';
    at += put_metadata(at, member->metadata).stored;
    *at = '\0';
    made->count++;
    made->wire_length = (uint16_t)(made->wire_length + head->wire_length);
    made->length += oteli_baggage_entry_length(head);
}

bool oteli_baggage_put(struct oteli_baggage_builder *builder,
                       const struct oteli_baggage_member *member)
{
    struct oteli_baggage_entries *made = &builder->made.entries;
    if (member->name.length == 0 || member->name.length > OTELI_BAGGAGE_BYTES ||
        member->value.length > (size_t)3 * OTELI_BAGGAGE_BYTES ||
        member->metadata.length > OTELI_BAGGAGE_BYTES ||
        !oteli_utf8_is_valid(member->name.data, member->name.length))
        return false;
    const struct sizes value = put_value(NULL, member->value, member->is_encoded);
    const struct sizes metadata = put_metadata(NULL, member->metadata);
    const size_t wire =
        member->name.length + 1 + value.wire + (metadata.wire != 0 ? 1 + metadata.wire : 0) + 1;
    const struct oteli_baggage_entry *old = oteli_baggage_find(made, member->name);
    const size_t others = made->wire_length - (old != NULL ? old->wire_length : 0u);
    if (wire > OTELI_BAGGAGE_BYTES + 1 - others ||
        (old == NULL && made->count == OTELI_BAGGAGE_MEMBERS))
        return false;
    if (old != NULL)
        take_out(made, old);
    const struct oteli_baggage_entry head = {(uint16_t)member->name.length, (uint16_t)value.stored,
                                             (uint16_t)metadata.stored, (uint16_t)wire};
    append(made, member, &head);
    return true;
}

bool oteli_baggage_drop(struct oteli_baggage_builder *builder, otel_slice name)
{
    const struct oteli_baggage_entry *entry = oteli_baggage_find(&builder->made.entries, name);
    if (entry == NULL)
        return false;
    take_out(&builder->made.entries, entry);
    return true;
}

otel_baggage oteli_baggage_finish(const struct oteli_baggage_builder *builder)
{
    if (builder->made.entries.count == 0)
        return otel_baggage_none();
    return oteli_baggage_store(&builder->made.entries);
}

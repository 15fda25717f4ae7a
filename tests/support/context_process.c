/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/context_process.c - what a process says about itself: finds the mapping, copies
 * what it points to, and judges the message.
 *
 * Threads:  the reader's. */
#include "opentelemetry/proto/resource/v1/resource.pb-c.h"
#include "tests/support/context_inside.h"
#include "tests/support/strict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PAYLOAD_MOST = 65536, VERSION = 2, KEYS_MOST = 256 };

typedef Opentelemetry__Proto__Resource__V1__Resource Resource;
typedef Opentelemetry__Proto__Common__V1__KeyValue KeyValue;
typedef Opentelemetry__Proto__Common__V1__AnyValue AnyValue;

struct header {
    char signature[8];
    uint32_t version;
    uint32_t payload_size;
    uint64_t published_at;
    uint64_t payload;
};

struct message {
    Resource *resource;
    KeyValue *attributes[64];
    size_t count;
};

/* CONTEXT_INVISIBLE: there is none. */
static enum context_found find_mapping(struct context_reader *reader,
                                       struct context_mapping *mapping)
{
    static const char *const names[] = {"/memfd:OTEL_CTX", "/memfd:OTEL_CTX (deleted)",
                                        "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]"};
    struct context_mapping one;
    void *at = NULL;
    size_t count = 0;
    while (context_next_mapping(reader, &at, &one))
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            if (strcmp(one.name, names[i]) == 0) {
                *mapping = one;
                count++;
            }
    if (count > 1)
        return context_fault(reader, "there are %zu mappings with a context", count);
    return count ? CONTEXT_FOUND : CONTEXT_INVISIBLE;
}

static enum context_found judge_header(struct context_reader *reader,
                                       const struct context_mapping *mapping,
                                       const struct header *header)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    if (strchr(mapping->permissions, 'x') || !strchr(mapping->permissions, 'p'))
        return context_fault(reader, "the mapping is %s", mapping->permissions);
    if (memcmp(header->signature, "OTEL_CTX", 8) != 0)
        return context_fault(reader, "the signature is another one");
    if (header->version != VERSION)
        return context_fault(reader, "the version is %u", header->version);
    if (header->published_at == 0)
        return context_fault(reader, "it is being changed, and stays so");
    if (header->published_at > (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec)
        return context_fault(reader, "it will be published later than now");
    if (header->payload_size == 0 || header->payload_size > PAYLOAD_MOST)
        return context_fault(reader, "the payload has %u bytes", header->payload_size);
    return CONTEXT_FOUND;
}

/* A number of base 128. */
static bool take_number(const uint8_t **at, const uint8_t *end, uint64_t *number)
{
    *number = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        *number |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* One field of ProcessContext, which is either the resource or one attribute. */
static const char *take_field(struct message *message, uint64_t field, const uint8_t *bytes,
                              size_t size)
{
    const ProtobufCMessageDescriptor *type =
        field == 1 ? &opentelemetry__proto__resource__v1__resource__descriptor
                   : &opentelemetry__proto__common__v1__key_value__descriptor;
    if (field != 1 && field != 2)
        return "a field that the message does not have";
    const char *problem = strict_problem(type, bytes, size);
    if (problem)
        return problem;
    ProtobufCMessage *one = protobuf_c_message_unpack(type, NULL, size, bytes);
    if (!one)
        return "a message that cannot be decoded";
    if (field == 1 && !message->resource) {
        message->resource = (Resource *)one;
    } else if (field == 2 && message->count < 64) {
        message->attributes[message->count++] = (KeyValue *)one;
    } else {
        protobuf_c_message_free_unpacked(one, NULL);
        return field == 1 ? "two resources" : "more attributes than anyone wants";
    }
    return NULL;
}

static const char *decode(struct message *message, const uint8_t *bytes, size_t size)
{
    const uint8_t *end = bytes + size;
    const char *problem = NULL;
    while (!problem && bytes < end) {
        uint64_t tag, length;
        if (!take_number(&bytes, end, &tag) || (tag & 7) != 2 ||
            !take_number(&bytes, end, &length) || length > (size_t)(end - bytes))
            return "a field of another type, or beyond the end";
        problem = take_field(message, tag >> 3, bytes, (size_t)length);
        bytes += length;
    }
    return problem;
}

static void forget(struct message *message)
{
    if (message->resource)
        protobuf_c_message_free_unpacked(&message->resource->base, NULL);
    for (size_t i = 0; i < message->count; i++)
        protobuf_c_message_free_unpacked(&message->attributes[i]->base, NULL);
}

static const char *text_of(const KeyValue *attribute)
{
    const AnyValue *value = attribute->value;
    return value && value->value_case ==
                        OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE
               ? value->string_value
               : NULL;
}

/* The names of the attributes that records may have. What is wrong with them. */
static const char *judge_keys(const AnyValue *value, struct context_process *process)
{
    if (!value ||
        value->value_case != OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_ARRAY_VALUE)
        return "a map of keys that is no array";
    process->keys = value->array_value->n_values;
    for (size_t i = 0; i < process->keys; i++) {
        const KeyValue key = {.value = value->array_value->values[i]};
        if (i == KEYS_MOST || !text_of(&key) || !*text_of(&key))
            return "a key that is no text, or empty, or one too many";
    }
    return NULL;
}

static const char *judge_attributes(const struct message *message, struct context_process *process)
{
    const char *problem = NULL;
    for (size_t i = 0; i < message->count && !problem; i++) {
        const KeyValue *one = message->attributes[i];
        for (size_t other = 0; other < i; other++)
            if (strcmp(one->key, message->attributes[other]->key) == 0)
                return "an attribute that is there twice";
        if (strcmp(one->key, "threadlocal.schema_version") == 0) {
            const char *text = text_of(one);
            if (!text || !*text)
                return "a version of its schema that is no text, or empty";
            snprintf(process->schema, sizeof process->schema, "%s", text);
        } else if (strcmp(one->key, "threadlocal.attribute_key_map") == 0) {
            problem = judge_keys(one->value, process);
        }
    }
    return problem;
}

static const char *judge_resource(const Resource *resource, struct context_process *process)
{
    if (!resource)
        return "no resource";
    process->resource_count = resource->n_attributes;
    for (size_t i = 0; i < resource->n_attributes; i++) {
        const KeyValue *one = resource->attributes[i];
        if (!one->key[0])
            return "an attribute of the resource without a key";
        if (strcmp(one->key, "service.name") == 0 && text_of(one))
            snprintf(process->service_name, sizeof process->service_name, "%s", text_of(one));
    }
    return NULL;
}

static enum context_found judge_payload(struct context_reader *reader, const uint8_t *bytes,
                                        size_t size, struct context_process *process)
{
    struct message message = {.count = 0};
    const char *problem = decode(&message, bytes, size);
    if (!problem)
        problem = judge_resource(message.resource, process);
    if (!problem)
        problem = judge_attributes(&message, process);
    forget(&message);
    return problem ? context_fault(reader, "the payload has %s", problem) : CONTEXT_FOUND;
}

/* The threads stand still, so that nothing changes meanwhile. */
enum context_found context_reader_process(struct context_reader *reader,
                                          struct context_process *process)
{
    static uint8_t payload[PAYLOAD_MOST];
    struct context_mapping mapping;
    struct header header;
    enum context_found found = find_mapping(reader, &mapping);
    if (found != CONTEXT_FOUND)
        return found;
    if (!context_read(reader, mapping.start, &header, sizeof header))
        return context_fault(reader, "the mapping cannot be read");
    found = judge_header(reader, &mapping, &header);
    if (found != CONTEXT_FOUND)
        return found;
    if (!context_read(reader, header.payload, payload, header.payload_size))
        return context_fault(reader, "the payload cannot be read");
    *process = (struct context_process){.published_at = header.published_at};
    return judge_payload(reader, payload, header.payload_size, process);
}

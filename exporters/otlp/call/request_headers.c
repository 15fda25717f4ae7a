/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/call/request_headers.c - the contracts are in request_headers.h. Exporter thread;
 * owns the texts. */
#include "exporters/otlp/call/request_headers.h"

#include "common/text/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A name and, behind its NUL, the value. */
static bool copy(otel_otlp_header *header, const char *name, const char *value)
{
    const size_t name_size = strlen(name) + 1;
    const size_t value_size = strlen(value) + 1;
    char *text = malloc(name_size + value_size);
    if (text == NULL)
        return false;
    memcpy(text, name, name_size);
    memcpy(text + name_size, value, value_size);
    *header = (otel_otlp_header){text, text + name_size};
    return true;
}

static void release(otel_otlp_header *header)
{
    free((char *)(uintptr_t)header->name);
}

void oteli_headers_clear(struct otel_otlp_request_headers *headers)
{
    for (size_t i = 0; i < headers->count; i++)
        release(&headers->list[i]);
    headers->count = 0;
}

void oteli_headers_fini(struct otel_otlp_request_headers *headers)
{
    oteli_headers_clear(headers);
    free(headers->list);
    *headers = (struct otel_otlp_request_headers){.list = NULL};
}

/* The entry of the header of this name, or a new one behind the others; NULL: no memory. */
static otel_otlp_header *entry_of(struct otel_otlp_request_headers *headers, const char *name)
{
    for (size_t i = 0; i < headers->count; i++)
        if (strcasecmp(headers->list[i].name, name) == 0)
            return &headers->list[i];
    if (headers->count == headers->room) {
        const size_t room = headers->room * 2 + 4;
        otel_otlp_header *larger = realloc(headers->list, room * sizeof *larger);
        if (larger == NULL)
            return NULL;
        headers->list = larger;
        headers->room = room;
    }
    return &headers->list[headers->count];
}

bool oteli_headers_put(struct otel_otlp_request_headers *headers, const char *name,
                       const char *value)
{
    otel_otlp_header made;
    otel_otlp_header *entry = entry_of(headers, name);
    if (entry == NULL || !copy(&made, name, value))
        return false;
    if (entry == &headers->list[headers->count])
        headers->count++;
    else
        release(entry);
    *entry = made;
    return true;
}

bool oteli_otlp_header_is_valid(const char *name, const char *value)
{
    if (name == NULL || value == NULL || !oteli_is_token(name, strlen(name)))
        return false;
    for (; *value != '\0'; value++) {
        if (((unsigned char)*value < 0x20 && *value != '\t') || *value == 0x7f)
            return false;
    }
    return true;
}

bool oteli_header_is_reserved(const char *name)
{
    static const char *const reserved[] = {
        "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding",
        "TE",           "Connection"};
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        if (strcasecmp(name, reserved[i]) == 0)
            return true;
    }
    return strncasecmp(name, "grpc-", 5) == 0;
}

otel_status otel_otlp_add_header(otel_otlp_request_headers *headers, const char *name,
                                 const char *value)
{
    if (!oteli_otlp_header_is_valid(name, value) || oteli_header_is_reserved(name))
        return OTEL_ERROR_INVALID_ARGUMENT;
    return oteli_headers_put(headers, name, value) ? OTEL_OK : OTEL_ERROR_NO_MEMORY;
}

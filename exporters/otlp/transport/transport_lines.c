/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/transport_lines.c - header lines as curl wants them. The exporting
 * thread, and the one that starts; a transport owns the lists. */
#include "exporters/otlp/transport/transport_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool append(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (longer != NULL)
        *list = longer;
    return longer != NULL;
}

static bool append_header(struct curl_slist **list, const otel_otlp_header *header)
{
    const size_t size = strlen(header->name) + strlen(header->value) + sizeof ": ";
    char *line = malloc(size);
    if (line == NULL)
        return false;
    /* "Name;" is how curl is told to send a header without a value. */
    snprintf(line, size, "%s%s%s", header->name, *header->value != '\0' ? ": " : ";",
             header->value);
    const bool is_done = append(list, line);
    free(line);
    return is_done;
}

static bool append_headers(struct curl_slist **list, const otel_otlp_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!append_header(list, &headers[i]))
            return false;
    }
    return true;
}

static bool is_among(const char *line, const otel_otlp_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(headers[i].name);
        if (strncasecmp(line, headers[i].name, length) == 0 &&
            (line[length] == ':' || line[length] == ';'))
            return true;
    }
    return false;
}

static bool append_others(struct curl_slist **list, const struct curl_slist *from,
                          const otel_otlp_header *headers, size_t count)
{
    for (; from != NULL; from = from->next) {
        if (!is_among(from->data, headers, count) && !append(list, from->data))
            return false;
    }
    return true;
}

/* A name without a value is left out by curl. Expect: large bodies go out at once. Accept-Encoding:
 * nobody is asked to compress a few bytes, though who does it anyway is understood. */
bool oteli_transport_make_lines(struct oteli_transport *transport, const otel_otlp_header *headers,
                                size_t count)
{
    return append(&transport->lines, "Expect:") && append(&transport->lines, "Accept-Encoding:") &&
           append_headers(&transport->lines, headers, count);
}

bool oteli_transport_copy_lines(struct oteli_transport *transport,
                                const struct oteli_transport *from)
{
    return append_others(&transport->lines, from->lines, NULL, 0);
}

struct curl_slist *oteli_transport_request_lines(struct oteli_transport *transport,
                                                 const struct oteli_transport_request *request)
{
    curl_slist_free_all(transport->request_lines);
    transport->request_lines = NULL;
    if (request->header_count == 0)
        return transport->lines;
    if (append_others(&transport->request_lines, transport->lines, request->headers,
                      request->header_count) &&
        append_headers(&transport->request_lines, request->headers, request->header_count))
        return transport->request_lines;
    return NULL;
}

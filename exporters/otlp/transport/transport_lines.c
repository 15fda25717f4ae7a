/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/transport_lines.c - header lines as curl wants them. The exporting
 * thread; a transport owns the list. */
#include "exporters/otlp/transport/transport_parts.h"

#include <stdio.h>
#include <stdlib.h>
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
    char *line;
    /* "Name;" is how curl is told to send a header without a value. */
    if (asprintf(&line, "%s%s%s", header->name, *header->value != '\0' ? ": " : ";",
                 header->value) < 0)
        return false;
    const bool is_done = append(list, line);
    free(line);
    return is_done;
}

static bool is_replaced(const otel_otlp_header *header,
                        const struct oteli_transport_request *request)
{
    for (size_t i = 0; i < request->header_count; i++) {
        if (strcasecmp(header->name, request->headers[i].name) == 0)
            return true;
    }
    return false;
}

/* A name without a value is left out by curl. Expect: large bodies go out at once. Accept-Encoding:
 * no receiver is asked to compress a few bytes, though a compressed answer is understood. */
struct curl_slist *oteli_transport_request_lines(struct oteli_transport *transport,
                                                 const struct oteli_transport_request *request)
{
    const struct oteli_transport_options *options = &transport->options;
    const bool is_plain = request->header_count == 0;
    if (is_plain && transport->lines_are_plain)
        return transport->lines;
    curl_slist_free_all(transport->lines);
    transport->lines = NULL;
    transport->lines_are_plain = false;
    bool is_done =
        append(&transport->lines, "Expect:") && append(&transport->lines, "Accept-Encoding:");
    for (size_t i = 0; is_done && i < options->header_count; i++)
        is_done = is_replaced(&options->headers[i], request) ||
                  append_header(&transport->lines, &options->headers[i]);
    for (size_t i = 0; is_done && i < request->header_count; i++)
        is_done = append_header(&transport->lines, &request->headers[i]);
    transport->lines_are_plain = is_done && is_plain;
    return is_done ? transport->lines : NULL;
}

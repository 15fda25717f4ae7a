/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/transport_options.c - copies of the texts in a transport's options. The
 * exporting thread, and the one that starts; a transport owns the copies. */
#include "exporters/otlp/transport/transport_parts.h"

#include <stdlib.h>
#include <string.h>

enum { TEXTS = 9 };

static void list_texts(struct oteli_transport_options *options, const char **texts[TEXTS])
{
    const char **const all[TEXTS] = {
        &options->url,         &options->unix_socket,  &options->user_agent,
        &options->proxy,       &options->no_proxy,     &options->tls.ca_file,
        &options->tls.ciphers, &options->tls.key_file, &options->tls.certificate_file};
    memcpy(texts, all, sizeof all);
}

/* Replace a text with a copy of it, if there is one. */
static bool own(const char **text)
{
    const bool is_given = *text != NULL;
    *text = is_given ? strdup(*text) : NULL;
    return !is_given || *text != NULL;
}

bool oteli_transport_own_options(struct oteli_transport_options *options)
{
    const char **texts[TEXTS];
    otel_otlp_header *headers = calloc(options->header_count + 1, sizeof *headers);
    bool is_done = headers != NULL;
    for (size_t i = 0; is_done && i < options->header_count; i++) {
        headers[i] = options->headers[i];
        const bool has_name = own(&headers[i].name);
        is_done = own(&headers[i].value) && has_name;
    }
    options->headers = headers;
    if (options->proxy == NULL)
        options->proxy = "";
    if (options->no_proxy == NULL)
        options->no_proxy = "";
    list_texts(options, texts);
    for (size_t i = 0; i < TEXTS; i++)
        is_done &= own(texts[i]);
    return is_done;
}

static void release(const char *text)
{
    free((char *)(uintptr_t)text);
}

void oteli_transport_free_options(struct oteli_transport_options *options)
{
    const char **texts[TEXTS];
    list_texts(options, texts);
    for (size_t i = 0; i < TEXTS; i++)
        release(*texts[i]);
    for (size_t i = 0; options->headers != NULL && i < options->header_count; i++) {
        release(options->headers[i].name);
        release(options->headers[i].value);
    }
    free((otel_otlp_header *)(uintptr_t)options->headers);
}

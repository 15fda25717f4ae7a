/* SPDX-License-Identifier: Apache-2.0 */
/* config/make_exporter.c - exporters as their settings say; see settings.h. Start/stop only. */
#include "config/settings.h"

#include "common/text/error_text.h"
#include "common/text/text.h"
#include "exporters/otlp/endpoint.h"

#include <errno.h>
#include <otel/console.h>
#include <otel/file.h>
#include <stdlib.h>

static bool is_same_name(const char *a, const char *b)
{
    return oteli_is_word(oteli_slice_of(a), b);
}

static bool has_header(const struct oteli_exporter_setting *setting, const char *name)
{
    for (size_t i = 0; i < setting->header_count; i++)
        if (is_same_name(setting->headers[i].name, name))
            return true;
    return false;
}

/* Those of `headers`, and those of the list that are not among them. */
static size_t merge_headers(const struct oteli_exporter_setting *setting,
                            const otel_otlp_header *listed, size_t listed_count,
                            otel_otlp_header *headers)
{
    size_t count = 0;
    for (size_t i = 0; i < listed_count; i++)
        if (!has_header(setting, listed[i].name))
            headers[count++] = listed[i];
    for (size_t i = 0; i < setting->header_count; i++)
        headers[count++] = setting->headers[i];
    return count;
}

bool oteli_make_otlp_options(const struct oteli_exporter_setting *setting,
                             struct oteli_made_otlp *otlp)
{
    *otlp = (struct oteli_made_otlp){.url = NULL};
    if ((setting->endpoint != NULL && !oteli_otlp_endpoint(OTELI_SIGNAL_TRACES, setting->protocol,
                                                           NULL, setting->endpoint, &otlp->url)) ||
        (setting->headers_list != NULL &&
         !oteli_otlp_headers_parse("headers_list", setting->headers_list, &otlp->listed,
                                   &otlp->listed_count)))
        goto fail;
    otlp->headers = calloc(otlp->listed_count + setting->header_count + 1, sizeof *otlp->headers);
    if (otlp->headers == NULL)
        goto fail;
    const size_t most =
        setting->max_request_bytes == OTEL_ZERO ? SIZE_MAX : (size_t)setting->max_request_bytes;
    otlp->options = (otel_otlp_options){
        .size = sizeof otlp->options,
        .endpoint = otlp->url,
        .headers = otlp->headers,
        .header_count = merge_headers(setting, otlp->listed, otlp->listed_count, otlp->headers),
        .timeout_ms = setting->timeout_ms,
        .max_request_bytes = most,
        .max_response_bytes = (size_t)setting->max_response_bytes,
        .protocol = setting->protocol,
        .compression = setting->compression,
        .ca_file = setting->ca_file,
        .key_file = setting->key_file,
        .certificate_file = setting->certificate_file,
        .insecure = setting->insecure,
    };
    return true;
fail:
    oteli_made_otlp_fini(otlp);
    return false;
}

void oteli_made_otlp_fini(struct oteli_made_otlp *otlp)
{
    oteli_otlp_headers_free(otlp->listed, otlp->listed_count);
    free(otlp->headers);
    free(otlp->url);
    *otlp = (struct oteli_made_otlp){.url = NULL};
}

static otel_status make_otlp(const struct oteli_exporter_setting *setting, otel_exporter *exporter)
{
    struct oteli_made_otlp otlp;
    if (!oteli_make_otlp_options(setting, &otlp))
        return OTEL_ERROR_NO_MEMORY;
    const otel_status status = otel_otlp_exporter_new(&otlp.options, exporter);
    oteli_made_otlp_fini(&otlp);
    return status;
}

otel_status oteli_make_exporter(const struct oteli_exporter_setting *setting,
                                struct oteli_faults *faults, otel_exporter *exporter)
{
    otel_status status = OTEL_ERROR_UNSUPPORTED;
    switch (setting->kind) {
    case OTELI_EXPORTER_OTLP:
        status = make_otlp(setting, exporter);
        break;
    case OTELI_EXPORTER_OTLP_FILE:
        status = otel_file_exporter_new(OTEL_FILE_OPTIONS(.path = setting->path), exporter);
        break;
    case OTELI_EXPORTER_CONSOLE:
        status = otel_console_exporter_new(NULL, exporter);
        break;
    case OTELI_EXPORTER_REGISTERED:
        status = setting->component.provider->create(setting->component.provider->state,
                                                     setting->component.properties, exporter);
        break;
    }
    if (status == OTEL_ERROR_SYSTEM && setting->path != NULL) {
        struct oteli_error_text text;
        oteli_fault(faults, setting->place, "this exporter cannot be made: %.240s: %s",
                    setting->path, oteli_error_text(errno, &text));
    } else if (status != OTEL_OK) {
        oteli_fault(faults, setting->place, "this exporter cannot be made: %s",
                    otel_status_string(status));
    }
    return status;
}

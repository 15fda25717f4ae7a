/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_body.c - the contracts are in view_body.h. */
#include "tools/view/view_body.h"

#include <stdlib.h>
#include <strings.h>

bool view_encoding_of(const char *name, size_t length, enum view_encoding *encoding)
{
    *encoding = VIEW_IDENTITY;
    if (length == 4 && strncasecmp(name, "gzip", 4) == 0)
        *encoding = VIEW_GZIP;
    else if (length == 4 && strncasecmp(name, "zstd", 4) == 0)
        *encoding = VIEW_ZSTD;
    else
        return length == 0 || (length == 8 && strncasecmp(name, "identity", 8) == 0);
    return true;
}

void view_body_add(struct view_body *body, const void *data, size_t length)
{
    if (body->refusal.status != 0)
        return;
    if (body->stream == NULL)
        body->stream = open_memstream(&body->bytes, &body->length);
    if (body->stream != NULL && (size_t)ftell(body->stream) + length > VIEW_BODY_MAX)
        body->refusal = view_too_large;
    else if (body->stream == NULL || fwrite(data, 1, length, body->stream) != length)
        body->refusal = view_no_memory;
}

void view_body_close(struct view_body *body)
{
    if (body->stream != NULL && fclose(body->stream) != 0)
        body->refusal = view_no_memory;
    body->stream = NULL;
}

void view_body_fini(struct view_body *body)
{
    view_body_close(body);
    free(body->bytes);
    body->bytes = NULL;
}

struct view_refusal view_body_give(const struct view_taker *taker, enum view_encoding encoding,
                                   const char *bytes, size_t length, char why[VIEW_WHY_BYTES])
{
    struct view_refusal refusal = {0};
    const uint8_t *message = (const uint8_t *)(bytes != NULL ? bytes : "");
    uint8_t *inflated = NULL;
    if (encoding != VIEW_IDENTITY) {
        refusal = view_inflate(encoding, message, length, &inflated, &length);
        message = inflated;
    }
    if (refusal.status == 0)
        refusal = (struct view_refusal){
            taker->take(taker->state, message, length, why, VIEW_WHY_BYTES), why};
    free(inflated);
    return refusal;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/carrier.c - see carrier.h. */
#include "tests/support/carrier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void carrier_put(struct carrier *carrier, const char *name, const char *value, size_t length)
{
    if (carrier->count == CARRIER_HEADERS || length >= CARRIER_VALUE ||
        strlen(name) >= CARRIER_NAME)
        abort();
    snprintf(carrier->headers[carrier->count].name, CARRIER_NAME, "%s", name);
    memset(carrier->headers[carrier->count].value, '#', CARRIER_VALUE);
    memcpy(carrier->headers[carrier->count].value, value, length);
    carrier->headers[carrier->count].length = length;
    carrier->count++;
}

void carrier_add(struct carrier *carrier, const char *name, const char *value)
{
    carrier_put(carrier, name, value, strlen(value));
}

const char *carrier_get(void *state, const char *name, size_t index, size_t *length)
{
    static char lent[CARRIER_VALUE];
    const struct carrier *carrier = state;
    memset(lent, '?', sizeof lent);
    for (size_t i = 0; i < carrier->count; i++)
        if (strcasecmp(carrier->headers[i].name, name) == 0 && index-- == 0) {
            *length = carrier->headers[i].length;
            return memcpy(lent, carrier->headers[i].value, *length);
        }
    return NULL;
}

void carrier_list(void *state, otel_visit_header *visit, void *visitor)
{
    const struct carrier *carrier = state;
    for (size_t i = 0; i < carrier->count; i++)
        visit(visitor, carrier->headers[i].name, strlen(carrier->headers[i].name));
}

void carrier_set(void *state, const char *name, const char *value, size_t length)
{
    struct carrier *carrier = state;
    if (strlen(value) != length)
        abort();
    for (size_t i = 0; i < carrier->count; i++)
        if (strcasecmp(carrier->headers[i].name, name) == 0)
            abort(); /* set twice */
    carrier_put(carrier, name, value, length);
}

const char *carrier_sent(const struct carrier *carrier, const char *name)
{
    static char text[CARRIER_VALUE];
    for (size_t i = 0; i < carrier->count; i++)
        if (strcasecmp(carrier->headers[i].name, name) == 0) {
            memcpy(text, carrier->headers[i].value, carrier->headers[i].length);
            text[carrier->headers[i].length] = '\0';
            return text;
        }
    return NULL;
}

const char *carrier_text(const struct carrier *carrier)
{
    static char text[CARRIER_VALUE];
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < carrier->count && at < sizeof text; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s: %.*s\n", carrier->headers[i].name,
                               (int)carrier->headers[i].length, carrier->headers[i].value);
    return text;
}

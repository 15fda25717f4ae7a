/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/carrier.h - headers as they came, or as they are to be sent: names are compared
 * without case, as HTTP does, values have no NUL behind them. */
#ifndef OTELI_TESTS_CARRIER_H
#define OTELI_TESTS_CARRIER_H

#include <otel/propagate.h>

enum { CARRIER_HEADERS = 80, CARRIER_NAME = 300, CARRIER_VALUE = 9000 };

struct carrier {
    struct {
        char name[CARRIER_NAME];
        char value[CARRIER_VALUE];
        size_t length;
    } headers[CARRIER_HEADERS];
    size_t count;
};

void carrier_put(struct carrier *carrier, const char *name, const char *value, size_t length);
void carrier_add(struct carrier *carrier, const char *name, const char *value);

/* The otel_get_header, otel_list_headers and otel_set_header of a carrier. The text that get
 * gives is overwritten by the next call. */
const char *carrier_get(void *state, const char *name, size_t index, size_t *length);
void carrier_list(void *state, otel_visit_header *visit, void *visitor);
void carrier_set(void *state, const char *name, const char *value, size_t length);

/* The first header of this name as a text, until the next call; NULL: there is none. */
const char *carrier_sent(const struct carrier *carrier, const char *name);

/* All headers, in their order: "name: value\n" each; until the next call. */
const char *carrier_text(const struct carrier *carrier);

#endif

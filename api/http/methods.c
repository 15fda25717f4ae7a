/* SPDX-License-Identifier: Apache-2.0 */
/* api/http/methods.c - the contracts are in api/http/methods.h. */
#include "api/http/methods.h"
#include "common/base/atomic.h"

#include <stdlib.h>

/* Lists that were chosen, each once. They stay until the library is unloaded: threads may be
 * reading one while another SDK is started. */
struct list {
    struct list *next;
    char text[];
};
static struct list *all_lists;

/* The text of one of them, or NULL. oteli_methods_choose writes it, with release; acquired by
 * oteli_methods_know. */
static const char *chosen;

bool oteli_methods_choose(const char *list)
{
    struct list *at = all_lists;
    while (list != NULL && at != NULL && strcmp(at->text, list) != 0)
        at = at->next;
    if (list != NULL && at == NULL) {
        at = malloc(sizeof *at + strlen(list) + 1);
        if (at == NULL)
            return false;
        memcpy(at->text, list, strlen(list) + 1);
        at->next = all_lists;
        all_lists = at;
    }
    OTELI_STORE_RELEASE_PTR(&chosen, list != NULL ? at->text : NULL);
    return true;
}

/* Of the same length. */
static inline bool is(const char *text, const char *usual)
{
    return memcmp(text, usual, strlen(usual)) == 0;
}

/* Whether it is one of the conventions. */
static bool is_usual(otel_slice method)
{
    const char *text = method.data;
    switch (method.length) {
    case 3:
        return is(text, "GET") || is(text, "PUT");
    case 4:
        return is(text, "POST") || is(text, "HEAD");
    case 5:
        return is(text, "PATCH") || is(text, "TRACE") || is(text, "QUERY");
    case 6:
        return is(text, "DELETE");
    case 7:
        return is(text, "OPTIONS") || is(text, "CONNECT");
    default:
        return false;
    }
}

static OTELI_NOINLINE bool is_listed(otel_slice method, const char *list)
{
    otel_slice rest = otel_slice_of(list);
    otel_slice known;
    while (method.length <= OTELI_METHOD_MOST && oteli_list_next(&rest, &known))
        if (known.length == method.length && memcmp(known.data, method.data, known.length) == 0)
            return true;
    return false;
}

bool oteli_methods_know(otel_slice method, const char *list)
{
    if (list == NULL)
        list = OTELI_LOAD_ACQUIRE_PTR(&chosen);
    return list == NULL ? is_usual(method) : is_listed(method, list);
}

void oteli_methods_free(void)
{
    OTELI_STORE_RELEASE_PTR(&chosen, NULL);
    while (all_lists != NULL) {
        struct list *list = all_lists;
        all_lists = list->next;
        free(list);
    }
}

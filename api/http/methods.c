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

bool oteli_methods_know(otel_slice method, const char *list)
{
    static const char *const usual[] = {"GET",     "POST",  "PUT",     "DELETE", "HEAD",
                                        "OPTIONS", "PATCH", "CONNECT", "TRACE",  "QUERY"};
    if (list == NULL)
        list = OTELI_LOAD_ACQUIRE_PTR(&chosen);
    for (size_t i = 0; list == NULL && i < sizeof usual / sizeof *usual; i++)
        if (oteli_is_text(method, usual[i]))
            return true;
    otel_slice rest = otel_slice_of(list);
    otel_slice known;
    while (method.length <= OTELI_METHOD_MOST && oteli_list_next(&rest, &known))
        if (known.length == method.length && memcmp(known.data, method.data, known.length) == 0)
            return true;
    return false;
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

/* SPDX-License-Identifier: Apache-2.0 */
/* api/http/methods.h - which methods HTTP spans know: those that an environment variable lists, or
 * those of the semantic conventions. */
#ifndef OTELI_HTTP_METHODS_H
#define OTELI_HTTP_METHODS_H

#include "common/base/internal_api.h"
#include "common/text/text.h"

/* The longest method that a list may have. */
enum { OTELI_METHOD_MOST = 90 };

/* Let the methods of a list, with commas between them, be those that are known, and no others; of
 * NULL: those of the conventions. False: no memory, and nothing has changed. Start/stop only. */
OTELI_INTERNAL_API bool oteli_methods_choose(const char *list);

/* Whether a method is known: to this list, or, if that is NULL, to the process. Any thread. */
bool oteli_methods_know(otel_slice method, const char *list);

void oteli_methods_free(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* functions/functions_start.c - puts the parts together when the library is loaded, and answers
 * otel/functions.h.
 *
 * A program that is traced without being changed calls nothing of this library. So this runs when
 * the library is loaded, before main. It reads three settings and, if functions are excluded by
 * name, the symbol tables. Spans are made once the program has started an SDK. */
#include <otel/functions.h>

#include "common/clock/time_units.h"
#include "common/config/configuration.h"
#include "common/os/fork.h"
#include "common/text/text.h"
#include "functions/entry_hooks.h"
#include "functions/exclude.h"
#include "functions/symbols.h"

#include <pthread.h>

static const char *excluded; /* OTEL_C_FUNCTIONS_EXCLUDE; NULL: nothing. Immutable after the load */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one update at a time */
static uint64_t excluded_serial; /* the modules that the exclude list was last applied to */

/* ---- settings ------------------------------------------------------------------------------ */

struct row {
    const char *variable;
    const char *default_text;
    int64_t min, max;
};
#define ROW(name, variable, type, default_text, min, max, words, option, doc) \
    static const struct row name = {variable, default_text, min, max};
OTELI_CONFIG_FUNCTIONS(ROW)

_Static_assert(OTELI_MAX_FUNCTION_DEPTH == OTELI_FRAMES_MOST, "the table says what fits");

static bool is_number(const struct row *row, const char *text, int64_t *number)
{
    return text != NULL && oteli_parse_whole(oteli_slice_of(text), number) && *number >= row->min &&
           *number <= row->max;
}

/* What is bad counts as unset. otel_start complains about it, which reads the same rows. */
static int64_t read_number(const struct row *row)
{
    int64_t number = 0;
    if (!is_number(row, oteli_env_get(row->variable), &number))
        is_number(row, row->default_text, &number);
    return number;
}

/* ---- functions that are excluded, and names ------------------------------------------------ */

/* In a forked child: without the locks of the parent's threads, which it does not have. */
static void forget(void)
{
    pthread_mutex_init(&lock, NULL);
    oteli_symbols_forget();
}

void otel_functions_rescan(void)
{
    if (excluded == NULL)
        return;
    pthread_mutex_lock(&lock);
    const uint64_t serial = oteli_symbols_serial();
    if (serial != excluded_serial) {
        oteli_exclude_update(excluded);
        excluded_serial = serial;
    }
    pthread_mutex_unlock(&lock);
}

/* Exporter thread. It is also the one that notices when modules have come. */
static size_t resolve(const void *address, char *name, size_t size)
{
    static bool has_warned; /* when there are spans of functions, so that the program is up */
    otel_functions_rescan();
    if (!has_warned)
        oteli_exclude_warn(excluded);
    has_warned = true;
    return oteli_symbols_name(address, name, size);
}

size_t otel_functions_name(const void *address, char *name, size_t size)
{
    if (size == 0)
        return oteli_symbols_name(address, NULL, 0);
    const size_t length = oteli_symbols_name(address, name, size - 1);
    name[length < size ? length : size - 1] = '\0';
    return length;
}

__attribute__((constructor)) static void on_load(void)
{
    const struct oteli_frames_limits limits = {
        .min_ns = (uint64_t)read_number(&functions_min_duration) * OTELI_NS_PER_US,
        .max_depth = (uint32_t)read_number(&functions_max_depth)};
    const char *exclude = oteli_env_get(functions_exclude.variable);
    excluded = exclude != NULL ? oteli_slice_copy(oteli_slice_of(exclude)) : NULL;
    oteli_fork_add(forget);
    otel_functions_rescan();
    otel_set_name_resolver(resolve);
    oteli_custom_start(otel_tracer_get("otel.functions", OTEL_VERSION), &limits);
}

/* What is excluded stays: other threads may be asking while the process ends. */
__attribute__((destructor)) static void free_at_exit(void)
{
    oteli_fork_notice();
    oteli_symbols_fini();
}

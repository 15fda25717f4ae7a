/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/tracer.c - get tracers: an interned table of lists that only grow. It has no lock, so
 * that a child forked at any moment can ask for tracers too. Any thread. */
#include "api/span/tracer.h"
#include "api/encode/key_value.h"
#include "api/thread/sdk_slot.h"
#include "api/thread/thread_state.h"
#include "common/base/alloc.h"
#include "common/base/sized.h"
#include "common/log.h"
#include "common/text/text.h"
#include "common/wire.h"

#include <otel/ffi.h>
#include <string.h>

enum { SCOPE_NAME = 1, SCOPE_VERSION = 2, SCOPE_ATTRIBUTES = 3 };

enum { HEADS = 1024 };

static otel_tracer *heads[HEADS]; /* by a hash of what makes a tracer different */

/* Even, and another one whenever tracers have to be asked for again. */
static uint64_t stamp = 2;

/* What otel_tracer_get returns when there is no memory for another tracer, and in an orphan, which
 * does not allocate. */
otel_tracer oteli_tracer_nameless = {.scope = {.name = {"", 0},
                                               .version = {"", 0},
                                               .schema_url = {"", 0},
                                               .attributes = {"", 0},
                                               .otlp = {"", 0}}};

static bool equals(otel_slice a, otel_slice b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

static size_t text_field_size(uint32_t field, otel_slice text)
{
    const size_t size = oteli_text_size(text.data, text.length);
    return size != 0 ? oteli_bytes_field_size(field, size) : 0;
}

static uint8_t *put_text_field(uint8_t *at, uint32_t field, otel_slice text, otel_slice *where)
{
    const size_t size = oteli_text_size(text.data, text.length);
    if (size == 0)
        return at;
    at = oteli_put_bytes_head(at, field, size);
    *where = (otel_slice){(const char *)at, size};
    return oteli_text_put(at, text.data, text.length, size);
}

/* One block: the struct, the InstrumentationScope message, the schema URL. */
static otel_tracer *make(otel_slice name, otel_slice version, const otel_tracer_options *options)
{
    const otel_slice schema_url = oteli_text_of(options->schema_url, options->schema_url_length);
    const otel_attribute *attributes = options->attributes;
    const size_t count = attributes != NULL ? options->attribute_count : 0;
    uint32_t dropped;
    const size_t attribute_bytes =
        oteli_key_values_size(attributes, count, UINT32_MAX, SIZE_MAX, &dropped);
    const size_t message_bytes = text_field_size(SCOPE_NAME, name) +
                                 text_field_size(SCOPE_VERSION, version) + attribute_bytes;
    const size_t url_bytes = oteli_text_size(schema_url.data, schema_url.length);
    otel_tracer *tracer = oteli_calloc(1, sizeof *tracer + message_bytes + url_bytes);
    if (tracer == NULL)
        return NULL;
    uint8_t *message = (uint8_t *)(tracer + 1);
    otel_scope_view *scope = &tracer->scope;
    scope->name = (otel_slice){"", 0};
    scope->version = (otel_slice){"", 0};
    uint8_t *at = put_text_field(message, SCOPE_NAME, name, &scope->name);
    at = put_text_field(at, SCOPE_VERSION, version, &scope->version);
    scope->attributes = (otel_slice){(const char *)at, attribute_bytes};
    at = oteli_key_values_put(at, SCOPE_ATTRIBUTES, attributes, count, UINT32_MAX, SIZE_MAX);
    scope->otlp = (otel_slice){(const char *)message, message_bytes};
    scope->schema_url = (otel_slice){(const char *)at, url_bytes};
    oteli_text_put(at, schema_url.data, schema_url.length, url_bytes);
    return tracer;
}

static bool is_same(const otel_tracer *a, const otel_tracer *b)
{
    return equals(a->scope.otlp, b->scope.otlp) && equals(a->scope.schema_url, b->scope.schema_url);
}

static otel_tracer **head_of(const otel_scope_view *scope)
{
    const uint64_t hash = oteli_hash(OTELI_HASH_BEGIN, scope->otlp.data, scope->otlp.length);
    return &heads[oteli_hash(hash, scope->schema_url.data, scope->schema_url.length) % HEADS];
}

/* The known tracer that is like this one, or this one, which is known from now on. */
static otel_tracer *intern(otel_tracer *tracer)
{
    otel_tracer **const head = head_of(&tracer->scope);
    otel_tracer *newest;
    do {
        newest = OTELI_LOAD_ACQUIRE_PTR(head); /* pairs with the CAS below */
        for (otel_tracer *known = newest; known != NULL; known = known->next)
            if (is_same(known, tracer))
                return known;
        tracer->next = newest;
    } while (!OTELI_CAS_FULL_PTR(head, newest, tracer));
    return tracer;
}

otel_tracer *otel_tracer_get(const char *name, const char *version)
{
    return otel_tracer_get_with(name, version, NULL);
}

otel_tracer *otel_tracer_get_with(const char *name, const char *version,
                                  const otel_tracer_options *options)
{
    return otel_tracer_get_p(name, otel_length_(name), version, otel_length_(version), options);
}

otel_tracer *otel_tracer_get_p(const char *name, size_t name_length, const char *version,
                               size_t version_length, const otel_tracer_options *options)
{
    static const otel_tracer_options none;
    otel_tracer_options kept;
    options = options != NULL ? oteli_sized(options, options->size, &kept, sizeof kept) : &none;
    if (name_length == 0)
        OTELI_LOG(OTEL_LOG_WARN, "a tracer was asked for without a name");
    otel_tracer *tracer =
        make((otel_slice){name, name_length}, (otel_slice){version, version_length}, options);
    if (tracer == NULL)
        return &oteli_tracer_nameless;
    otel_tracer *known = intern(tracer);
    if (known != tracer)
        free(tracer);
    return known;
}

bool otel_tracer_enabled(const otel_tracer *tracer)
{
    struct oteli_thread *thread = oteli_self;
    if (OTELI_UNLIKELY(thread->fast != oteli_load_relaxed_64(&oteli_fast_generation))) {
        if (oteli_load_acquire_64(&oteli_generation) == 0 || oteli_thread_is_busy(thread) ||
            oteli_thread_is_silent())
            return false;
        if (!oteli_thread_fits(thread))
            thread = oteli_thread_refresh();
    }
    if (thread == NULL || thread->program.has_no_outlet)
        return false;
    return !thread->program.asks_tracers || oteli_tracer_is_enabled(thread, tracer);
}

/* The program is asked in a call, so that what it starts meanwhile is refused, and not asked
 * for in turn. */
static bool ask(struct oteli_thread *thread, const otel_tracer *tracer)
{
    bool is_enabled = true;
    const struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    if (sdk != NULL && sdk->generation == thread->generation)
        is_enabled = sdk->is_tracer_enabled(sdk, &tracer->scope);
    oteli_sdk_return(thread);
    return is_enabled;
}

bool oteli_tracer_is_enabled(struct oteli_thread *thread, const otel_tracer *tracer)
{
    otel_tracer *asked = tracer != NULL ? (otel_tracer *)(uintptr_t)tracer : &oteli_tracer_nameless;
    const uint64_t now = oteli_load_acquire_64(&stamp);
    const uint64_t known = oteli_load_relaxed_64(&asked->verdict);
    if ((known & ~UINT64_C(1)) == now)
        return (known & 1) != 0;
    if (!oteli_thread_enter_call(thread))
        return true; /* its span will be refused */
    const bool is_enabled = ask(thread, asked);
    oteli_thread_leave_call(thread);
    oteli_store_relaxed_64(&asked->verdict, now | is_enabled);
    return is_enabled;
}

void otel_tracers_reconfigure(void)
{
    oteli_add_full_64(&stamp, 2);
}

void oteli_tracers_free(void)
{
    for (size_t i = 0; i < HEADS; i++)
        while (heads[i] != NULL) {
            otel_tracer *next = heads[i]->next;
            free(heads[i]);
            heads[i] = next;
        }
}

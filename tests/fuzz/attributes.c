/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/attributes.c - everything that can be said of spans, in any order and with any
 * values, under any limits: the input is a program for the API.
 *
 * What was said is written down by a model that knows only the specification. At its end each
 * span must be what the model says: protobuf-c unpacks it, a strict receiver (support/strict.h)
 * finds no fault in it, and attributes, counts, name and status are those of the model. */
#include "tests/fuzz/fuzz.h"
#include "tests/support/received.h"
#include "tests/support/strict.h"

#include <stdio.h>

enum { ATTRIBUTES = 9, EVENTS = 11, LINKS = 13, EVENT_ATTRIBUTES = 3, LINK_ATTRIBUTES = 4 };
enum { SPANS = 4, LIST = 12, DEPTH = 8, MEMORY = 1 << 22, CALLS = 400, KEPT = 1 << 15 };
enum { DEEPEST = 31 }; /* of OTEL_C_ATTRIBUTE_VALUE_DEPTH_LIMIT */

/* ---- the input --------------------------------------------------------------------------- */

static struct {
    const uint8_t *at;
    size_t left;
    char memory[MEMORY]; /* of values, until the next call */
    size_t used;
} input;

static unsigned next(void)
{
    if (input.left == 0)
        return 0;
    input.left--;
    return *input.at++;
}

static void *take(size_t size)
{
    void *memory = input.memory + input.used;
    input.used += (size + 15) & ~(size_t)15;
    fuzz_check(input.used <= sizeof input.memory);
    return memory;
}

/* A text of the input's own bytes, sometimes many times over; it ends with a NUL. */
static const char *some_text(size_t *length)
{
    const unsigned shape = next();
    size_t size = shape & 15;
    const size_t times = (shape & 0xf0) == 0xf0 && input.used < MEMORY / 4 ? 100 : 1;
    size = size < input.left ? size : input.left;
    char *text = take(size * times + 1);
    for (size_t i = 0; i < times; i++)
        memcpy(text + i * size, input.at, size);
    text[size * times] = '\0';
    input.at += size;
    input.left -= size;
    *length = size * times;
    return text;
}

/* Without a NUL inside. NULL sometimes. */
static const char *some_string(void)
{
    if (next() == 0)
        return NULL;
    size_t length;
    return some_text(&length);
}

static const char *some_key(void)
{
    static const char *const usual[] = {"a", "b", "http.method", "http.status",
                                        "é", "",  "\xff",        "\xfe"};
    const unsigned which = next();
    return which < 200 ? usual[which % 8] : some_string();
}

static int64_t some_integer(void)
{
    uint64_t value = 0;
    for (unsigned size = next() % 9; size > 0; size--)
        value = value << 8 | next();
    return (int64_t)value;
}

static double some_real(void)
{
    const int64_t bits = some_integer();
    double real;
    memcpy(&real, &bits, sizeof real);
    return real;
}

static otel_value some_value(unsigned depth);

static otel_value some_array(otel_value_type type, size_t count)
{
    const char **strings = take(count * sizeof *strings);
    bool *booleans = take(count * sizeof *booleans);
    int64_t *integers = take(count * sizeof *integers);
    double *reals = take(count * sizeof *reals);
    for (size_t i = 0; i < count; i++) {
        strings[i] = type == OTEL_VALUE_STRING_ARRAY ? some_string() : NULL;
        booleans[i] = type == OTEL_VALUE_BOOL_ARRAY && next() % 2 != 0;
        integers[i] = type == OTEL_VALUE_INT_ARRAY ? some_integer() : 0;
        reals[i] = type == OTEL_VALUE_DOUBLE_ARRAY ? some_real() : 0;
    }
    if (type == OTEL_VALUE_STRING_ARRAY)
        return otel_value_string_array(strings, count);
    if (type == OTEL_VALUE_BOOL_ARRAY)
        return otel_value_bool_array(booleans, count);
    if (type == OTEL_VALUE_INT_ARRAY)
        return otel_value_int_array(integers, count);
    return otel_value_double_array(reals, count);
}

static const otel_attribute *some_list(size_t count, unsigned depth)
{
    otel_attribute *list = take(count * sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = otel_attribute_of(some_key(), some_value(depth));
    return list;
}

static otel_value some_nested(otel_value_type type, size_t count, unsigned depth)
{
    if (depth == DEPTH || input.left == 0)
        count = 0;
    if (type == OTEL_VALUE_MAP)
        return otel_value_map(some_list(count, depth + 1), count);
    otel_value *values = take(count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = some_value(depth + 1);
    return otel_value_array(values, count);
}

static otel_value some_value(unsigned depth)
{
    const unsigned what = next();
    const otel_value_type type = (otel_value_type)(what % 13); /* 12 is no type */
    const size_t count = what / 13 % 5;
    size_t length;
    otel_value value = otel_value_empty();
    switch (type) {
    case OTEL_VALUE_STRING: {
        const char *text = some_text(&length);
        return otel_value_string_n(text, length);
    }
    case OTEL_VALUE_BYTES: {
        const char *bytes = some_text(&length);
        return otel_value_bytes(bytes, length);
    }
    case OTEL_VALUE_BOOL:
        return otel_value_bool(count != 0);
    case OTEL_VALUE_INT:
        return otel_value_int(some_integer());
    case OTEL_VALUE_DOUBLE:
        return otel_value_double(some_real());
    case OTEL_VALUE_STRING_ARRAY:
    case OTEL_VALUE_BOOL_ARRAY:
    case OTEL_VALUE_INT_ARRAY:
    case OTEL_VALUE_DOUBLE_ARRAY:
        return some_array(type, count);
    case OTEL_VALUE_ARRAY:
    case OTEL_VALUE_MAP:
        return some_nested(type, count, depth);
    case OTEL_VALUE_EMPTY:
        break;
    default:
        value.type = type;
        break;
    }
    return value;
}

/* ---- the model --------------------------------------------------------------------------- */

static struct {
    size_t length, depth;
    unsigned attributes, events, links, event_attributes, link_attributes;
} limits;

struct model_list {
    struct strict_bytes keys[CALLS];
    struct strict_bytes values[CALLS];
    unsigned count;
    unsigned dropped;
};

struct model {
    bool is_open;
    bool is_entered;
    otel_span span;
    struct model_list attributes;
    struct model_list *events[CALLS];
    struct model_list *links[CALLS];
    unsigned event_count, dropped_events, link_count, dropped_links;
    otel_span_status status;
    struct strict_bytes name, message;
};

static struct model models[SPANS];

static void *kept[KEPT]; /* what the model has on the heap, until the input ends */
static size_t kept_count;

static void require(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "not so: %s\n", what);
    abort();
}

static void *keep(void *memory)
{
    require(memory != NULL && kept_count < KEPT, "the model has room");
    return kept[kept_count++] = memory;
}

static struct strict_bytes kept_bytes(struct strict_bytes made)
{
    if (made.data != NULL)
        keep(made.data);
    return made;
}

static struct strict_bytes string_of(const char *text)
{
    return kept_bytes(strict_text(text, text != NULL ? strlen(text) : 0));
}

static int index_of(const struct model_list *list, struct strict_bytes key)
{
    for (unsigned i = 0; i < list->count; i++)
        if (list->keys[i].length == key.length &&
            memcmp(list->keys[i].data, key.data, key.length) == 0)
            return (int)i;
    return -1;
}

static void model_set(struct model_list *list, unsigned limit, const char *key,
                      const otel_value *value)
{
    if (key == NULL || *key == '\0')
        return;
    const struct strict_bytes name = string_of(key);
    int at = index_of(list, name);
    if (at < 0 && list->count >= limit) {
        list->dropped++;
        return;
    }
    if (at < 0) {
        require(list->count < CALLS, "the list has room");
        at = (int)list->count++;
        list->keys[at] = name;
    }
    list->values[at] = kept_bytes(strict_value(value, limits.length, (unsigned)limits.depth));
}

/* A list that is given at once: its keys that are left out are counted once each. */
static struct model_list *model_list(const otel_attribute *given, size_t count, unsigned limit)
{
    struct model_list *list = keep(calloc(1, sizeof *list));
    for (size_t i = 0; i < count; i++)
        model_set(list, CALLS, given[i].key, &given[i].value);
    if (list->count > limit) {
        list->dropped = list->count - limit;
        list->count = limit;
    }
    return list;
}

/* ---- calls ------------------------------------------------------------------------------- */

static void model_link(struct model *model, const otel_link *link)
{
    const bool is_valid = otel_span_context_is_valid(&link->context);
    if (!is_valid && (link->attributes == NULL || link->attribute_count == 0))
        return;
    if (model->link_count >= limits.links)
        model->dropped_links++;
    else
        model->links[model->link_count++] = model_list(
            link->attributes, link->attributes ? link->attribute_count : 0, limits.link_attributes);
}

static otel_link some_link(void)
{
    otel_link link = {{{0}, {0}, 0, false, {0}, 0}, NULL, 0};
    const unsigned shape = next();
    link.context.trace_id[0] = shape & 1;
    link.context.span_id[7] = shape >> 1 & 1;
    link.context.is_remote = (shape & 4) != 0;
    link.attribute_count = (shape >> 3) % LIST;
    if (shape < 0xf8)
        link.attributes = some_list(link.attribute_count, 1);
    return link;
}

static void begin(struct model *model)
{
    if (model->is_open)
        return;
    const unsigned shape = next();
    const char *name = some_string();
    const otel_link link = some_link();
    otel_tracer *tracer = otel_tracer_get("fuzz", NULL);
    otel_span_options options = {.size = sizeof options, .root = (shape & 2) != 0};
    options.attribute_count = shape >> 2 & 7;
    options.attributes = some_list(options.attribute_count, 1);
    options.links = &link;
    options.link_count = shape >> 5 & 1;
    model->is_entered = shape & 1;
    model->span = model->is_entered ? otel_span_enter(tracer, name, &options)
                                    : otel_span_start(tracer, name, &options);
    model->is_open = true;
    model->name = string_of(name);
    for (size_t i = 0; i < options.attribute_count; i++)
        model_set(&model->attributes, limits.attributes, options.attributes[i].key,
                  &options.attributes[i].value);
    if (options.link_count != 0)
        model_link(model, &link);
}

static void set(struct model *model)
{
    const unsigned how = next();
    const char *key = some_key();
    const size_t length = key != NULL ? strlen(key) : 0;
    otel_value value = some_value(1);
    const otel_span_ref ref = otel_span_ref_of(&model->span);
    if (value.type == OTEL_VALUE_STRING && how % 2 == 0)
        otel_span_set_string_n(ref, key, length, value.as.string, value.length);
    else if (value.type == OTEL_VALUE_INT && how % 2 == 0)
        otel_span_set_int(model->span, key, value.as.integer);
    else if (value.type == OTEL_VALUE_DOUBLE && how % 2 == 0)
        otel_span_set_double(model->span, key, value.as.real);
    else if (value.type == OTEL_VALUE_BOOL && how % 2 == 0)
        otel_span_set_bool(model->span, key, value.as.boolean);
    else
        otel_span_set_value(model->span, key, value);
    if (model->is_open)
        model_set(&model->attributes, limits.attributes, key, &value);
}

static void add_event(struct model *model)
{
    const size_t count = next() % LIST;
    const otel_attribute *list = some_list(count, 1);
    const char *name = some_string();
    const unsigned time = next();
    otel_span_add_event_at(model->span, name, time, list, count);
    if (!model->is_open)
        return;
    if (model->event_count >= limits.events)
        model->dropped_events++;
    else
        model->events[model->event_count++] = model_list(list, count, limits.event_attributes);
}

static void set_status(struct model *model)
{
    const otel_span_status status = (otel_span_status)(next() % 4);
    const char *message = some_string();
    otel_span_set_status(model->span, status, message);
    const bool is_known = status == OTEL_SPAN_STATUS_OK || status == OTEL_SPAN_STATUS_ERROR;
    if (!model->is_open || !is_known || model->status == OTEL_SPAN_STATUS_OK)
        return;
    model->status = status;
    model->message = string_of(status == OTEL_SPAN_STATUS_ERROR ? message : NULL);
}

static void check_list(otel_slice message, uint32_t number, const struct model_list *list,
                       size_t count, unsigned dropped)
{
    require(count == list->count, "the number of attributes");
    require(dropped == list->dropped, "the number of dropped attributes");
    for (unsigned i = 0; i < list->count; i++) {
        otel_slice any;
        const struct strict_bytes *key = &list->keys[i];
        const struct strict_bytes *value = &list->values[i];
        require(received_value(message, number, (const char *)key->data, key->length, &any),
                "an attribute is there");
        require(any.length == value->length, "the size of a value");
        require(any.length == 0 || memcmp(any.data, value->data, any.length) == 0, "a value");
    }
}

static bool is_text(const char *text, const struct strict_bytes *expected)
{
    const size_t length = strlen(text);
    return length == expected->length && (length == 0 || memcmp(text, expected->data, length) == 0);
}

static void check_received(const struct model *model)
{
    const size_t last = received_count() - 1;
    const received_pb_span *got = received_span(last);
    const otel_slice bytes = received_bytes(last);
    otel_slice part;
    check_list(bytes, ATTRIBUTES, &model->attributes, got->n_attributes,
               got->dropped_attributes_count);
    require(got->n_events == model->event_count, "the number of events");
    require(got->dropped_events_count == model->dropped_events, "the number of dropped events");
    require(got->n_links == model->link_count, "the number of links");
    require(got->dropped_links_count == model->dropped_links, "the number of dropped links");
    for (unsigned i = 0; i < model->event_count; i++) {
        require(received_part(bytes, EVENTS, i, &part), "an event");
        check_list(part, EVENT_ATTRIBUTES, model->events[i], got->events[i]->n_attributes,
                   got->events[i]->dropped_attributes_count);
    }
    for (unsigned i = 0; i < model->link_count; i++) {
        require(received_part(bytes, LINKS, i, &part), "a link");
        check_list(part, LINK_ATTRIBUTES, model->links[i], got->links[i]->n_attributes,
                   got->links[i]->dropped_attributes_count);
    }
    require((got->status != NULL ? (int)got->status->code : 0) == (int)model->status, "the status");
    require(is_text(got->status != NULL ? got->status->message : "", &model->message),
            "the description");
    require(is_text(got->name, &model->name), "the name");
}

static void end(struct model *model)
{
    const size_t before = received_count();
    otel_span_end(model->span);
    require(received_count() == before + model->is_open, "a span is exported once");
    if (model->is_open)
        check_received(model);
    *model = (struct model){.span = model->span}; /* to be used when it is dead */
}

static void rename_span(struct model *model)
{
    const char *name = some_string();
    otel_span_update_name(model->span, name);
    if (model->is_open)
        model->name = string_of(name);
}

static void call(void)
{
    const unsigned what = next();
    struct model *model = &models[what / 16 % SPANS];
    input.used = 0;
    switch (what % 16) {
    case 0:
    case 1:
        begin(model);
        break;
    case 2:
        end(model);
        break;
    case 3:
    case 4:
        add_event(model);
        break;
    case 5: {
        const otel_link link = some_link();
        otel_span_add_link(model->span, &link);
        if (model->is_open)
            model_link(model, &link);
        break;
    }
    case 6:
        set_status(model);
        break;
    case 7:
        rename_span(model);
        break;
    default:
        set(model);
        break;
    }
}

static unsigned some_limit(void)
{
    const unsigned limit = next();
    return limit < 128 ? limit % 12 : 128;
}

static int64_t option(unsigned limit)
{
    return limit != 0 ? (int64_t)limit : OTEL_ZERO;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input.at = data;
    input.left = size;
    limits.attributes = some_limit();
    limits.events = some_limit();
    limits.links = some_limit();
    limits.event_attributes = some_limit();
    limits.link_attributes = some_limit();
    limits.depth = some_limit();
    if (limits.depth > DEEPEST)
        limits.depth = DEEPEST;
    const unsigned length = some_limit();
    limits.length = length < 128 ? length : SIZE_MAX;
    received_start(
        OTEL_SDK_OPTIONS(.span_attribute_count_limit = option(limits.attributes),
                         .span_event_count_limit = option(limits.events),
                         .span_link_count_limit = option(limits.links),
                         .event_attribute_count_limit = option(limits.event_attributes),
                         .link_attribute_count_limit = option(limits.link_attributes),
                         .attribute_value_depth_limit = option((unsigned)limits.depth),
                         .attribute_value_length_limit = length < 128 ? option(length) : 0));
    for (size_t i = 0; i < CALLS && input.left != 0; i++)
        call();
    for (size_t i = 0; i < SPANS; i++) {
        end(&models[i]);
        memset(&models[i], 0, sizeof models[i]);
    }
    received_stop();
    while (kept_count != 0)
        free(kept[--kept_count]);
    return 0;
}

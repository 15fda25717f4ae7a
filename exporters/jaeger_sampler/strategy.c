/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/jaeger_sampler/strategy.c - the contracts are in strategy.h. */
#include "exporters/jaeger_sampler/strategy.h"

#include "common/text/text.h"
#include "exporters/otlp/protocol/json_reader.h"

#include <stdlib.h>
#include <string.h>

/* Its thousandths fit into 64 bits, in which they are described. */
#define RATE_MAX 1e15

enum { NUMBER_LENGTH_MAX = 63 };

static void set_rate(struct oteli_rate *rate, double per_second)
{
    rate->per_second = per_second;
    rate->saved = per_second > 1 ? per_second : 1;
    rate->looked_ns = 0;
}

bool oteli_rate_take(struct oteli_rate *rate, uint64_t now_ns)
{
    if (!(rate->per_second > 0))
        return false;
    const double most = rate->per_second > 1 ? rate->per_second : 1;
    const uint64_t passed_ns = now_ns > rate->looked_ns ? now_ns - rate->looked_ns : 0;
    rate->saved += (double)passed_ns * 1e-9 * rate->per_second;
    if (rate->saved > most)
        rate->saved = most;
    rate->looked_ns = now_ns > rate->looked_ns ? now_ns : rate->looked_ns;
    if (rate->saved < 1)
        return false;
    rate->saved -= 1;
    return true;
}

static void set_probability(struct oteli_operation *operation, double probability)
{
    operation->probability = probability;
    operation->ratio = oteli_ratio_of(probability);
}

/* False: it is none. */
static bool read_number(struct oteli_json *json, double *number)
{
    otel_slice digits;
    char text[NUMBER_LENGTH_MAX + 1];
    if (!oteli_json_number(json, &digits))
        return false;
    const bool is_read =
        digits.length <= NUMBER_LENGTH_MAX &&
        oteli_parse_decimal((otel_slice){oteli_slice_put(text, digits), digits.length}, number);
    if (!is_read)
        oteli_json_refuse(json);
    return is_read;
}

/* A number from 0 to `limit`, which larger ones become if `is_capped`; `*number` stays as it is
 * where there is none. */
static void read_within(struct oteli_json *json, double limit, bool is_capped, double *number)
{
    double found;
    if (!read_number(json, &found))
        return;
    if (is_capped && found > limit)
        found = limit;
    if (found >= 0 && found <= limit)
        *number = found;
    else
        oteli_json_refuse(json);
}

static void read_probability(struct oteli_json *json, double *probability)
{
    read_within(json, 1, false, probability);
}

static void read_rate(struct oteli_json *json, double *rate)
{
    read_within(json, RATE_MAX, true, rate);
}

/* {"samplingRate": 0.5}, for example; what is left out is 0. */
static void read_member_of(struct oteli_json *json, const char *name,
                           void (*read)(struct oteli_json *json, double *number), double *number)
{
    otel_slice key;
    for (bool first = oteli_json_object(json); oteli_json_member(json, &first, &key);) {
        if (oteli_json_is(key, name))
            read(json, number);
        else
            oteli_json_skip(json);
    }
}

static void read_probabilistic(struct oteli_json *json, double *probability)
{
    read_member_of(json, "samplingRate", read_probability, probability);
}

/* One operation behind the others. */
static void read_operation(struct oteli_json *json, struct oteli_strategy *strategy)
{
    struct oteli_operation *longer =
        realloc(strategy->operations, (strategy->operation_count + 1) * sizeof *longer);
    if (longer == NULL) {
        oteli_json_refuse(json);
        return;
    }
    strategy->operations = longer;
    struct oteli_operation *operation = &longer[strategy->operation_count++];
    *operation = (struct oteli_operation){.probability = 0};
    double probability = 0;
    bool has_probability = false;
    otel_slice key;
    for (bool first = oteli_json_object(json); oteli_json_member(json, &first, &key);) {
        if (oteli_json_is(key, "operation") && operation->name.data == NULL) {
            char *name;
            (void)oteli_json_text(json, &name);
            operation->name = oteli_slice_of(name);
        } else if (oteli_json_is(key, "probabilisticSampling")) {
            read_probabilistic(json, &probability);
            has_probability = true;
        } else {
            oteli_json_skip(json);
        }
    }
    set_probability(operation, probability);
    if (operation->name.data == NULL || !has_probability)
        oteli_json_refuse(json);
}

static void read_operations(struct oteli_json *json, struct oteli_strategy *strategy)
{
    for (bool first = oteli_json_array(json); oteli_json_element(json, &first);)
        read_operation(json, strategy);
}

/* Of two operations, by their names. */
static int compare(const void *a, const void *b)
{
    const otel_slice one = ((const struct oteli_operation *)a)->name;
    const otel_slice other = ((const struct oteli_operation *)b)->name;
    const size_t common = one.length < other.length ? one.length : other.length;
    const int order = common != 0 ? memcmp(one.data, other.data, common) : 0;
    return order != 0 ? order : (one.length > other.length) - (one.length < other.length);
}

static void read_operation_sampling(struct oteli_json *json, struct oteli_strategy *strategy)
{
    double probability = 0;
    double lower_bound = 0;
    otel_slice key;
    for (bool first = oteli_json_object(json); oteli_json_member(json, &first, &key);) {
        if (oteli_json_is(key, "defaultSamplingProbability"))
            read_probability(json, &probability);
        else if (oteli_json_is(key, "defaultLowerBoundTracesPerSecond"))
            read_rate(json, &lower_bound);
        else if (oteli_json_is(key, "perOperationStrategies") && !oteli_json_null(json))
            read_operations(json, strategy);
        else if (!oteli_json_is(key, "perOperationStrategies"))
            oteli_json_skip(json);
    }
    strategy->kind = OTELI_STRATEGY_OPERATIONS;
    set_probability(&strategy->others, probability);
    set_rate(&strategy->others.lower_bound, lower_bound);
    for (size_t i = 0; i < strategy->operation_count; i++)
        set_rate(&strategy->operations[i].lower_bound, lower_bound);
    if (!json->failed && strategy->operation_count != 0)
        qsort(strategy->operations, strategy->operation_count, sizeof *strategy->operations,
              compare);
}

/* What the members of an answer say, apart from operations. */
struct answer {
    bool wants_rate;
    bool has_operations;
    bool has_probability;
    bool has_rate;
    double probability;
    double rate;
};

/* The name or, as older servers have it, the number. */
static void read_type(struct oteli_json *json, bool *wants_rate)
{
    otel_slice type;
    if (json->failed)
        return;
    struct oteli_json ahead = *json;
    const bool is_text = oteli_json_string(&ahead, &type);
    if (is_text)
        *json = ahead;
    else if (!oteli_json_number(json, &type))
        return;
    *wants_rate = oteli_json_is(type, is_text ? "RATE_LIMITING" : "1");
    if (!*wants_rate && !oteli_json_is(type, is_text ? "PROBABILISTIC" : "0"))
        oteli_json_refuse(json);
}

static void read_member(struct oteli_json *json, otel_slice key, struct oteli_strategy *strategy,
                        struct answer *answer)
{
    if (oteli_json_null(json))
        return;
    if (oteli_json_is(key, "strategyType")) {
        read_type(json, &answer->wants_rate);
    } else if (oteli_json_is(key, "probabilisticSampling")) {
        read_probabilistic(json, &answer->probability);
        answer->has_probability = true;
    } else if (oteli_json_is(key, "rateLimitingSampling")) {
        read_member_of(json, "maxTracesPerSecond", read_rate, &answer->rate);
        answer->has_rate = true;
    } else if (oteli_json_is(key, "operationSampling") && !answer->has_operations) {
        read_operation_sampling(json, strategy);
        answer->has_operations = true;
    } else {
        oteli_json_skip(json);
    }
}

/* Strategies for operations go before one for all, which is there for older clients. False: the
 * strategy that the type names is not there. */
static bool choose(struct oteli_strategy *strategy, const struct answer *answer)
{
    if (answer->has_operations)
        return true;
    strategy->kind = answer->wants_rate ? OTELI_STRATEGY_RATE : OTELI_STRATEGY_RATIO;
    set_probability(&strategy->others, answer->probability);
    set_rate(&strategy->rate, answer->rate);
    return answer->wants_rate ? answer->has_rate : answer->has_probability;
}

struct oteli_strategy *oteli_strategy_parse(const char *text, size_t length)
{
    struct oteli_strategy *strategy = calloc(1, sizeof *strategy);
    if (strategy == NULL)
        return NULL;
    struct answer answer = {.wants_rate = false};
    struct oteli_json json = oteli_json_begin(text, length);
    otel_slice key;
    for (bool first = oteli_json_object(&json); oteli_json_member(&json, &first, &key);)
        read_member(&json, key, strategy, &answer);
    if (oteli_json_end(&json) && choose(strategy, &answer))
        return strategy;
    oteli_strategy_free(strategy);
    return NULL;
}

void oteli_strategy_free(struct oteli_strategy *strategy)
{
    if (strategy == NULL)
        return;
    for (size_t i = 0; i < strategy->operation_count; i++)
        free((char *)(uintptr_t)strategy->operations[i].name.data);
    free(strategy->operations);
    free(strategy);
}

bool oteli_strategy_samples(struct oteli_strategy *strategy, otel_slice name,
                            const uint8_t trace_id[16], uint64_t now_ns)
{
    if (strategy->kind == OTELI_STRATEGY_RATIO)
        return oteli_ratio_samples(&strategy->others.ratio, trace_id);
    if (strategy->kind == OTELI_STRATEGY_RATE)
        return oteli_rate_take(&strategy->rate, now_ns);
    const struct oteli_operation wanted = {.name = name};
    struct oteli_operation *operation =
        strategy->operation_count != 0 ? bsearch(&wanted, strategy->operations,
                                                 strategy->operation_count, sizeof wanted, compare)
                                       : NULL;
    if (operation == NULL)
        operation = &strategy->others;
    const bool by_chance = oteli_ratio_samples(&operation->ratio, trace_id);
    const bool by_bound = oteli_rate_take(&operation->lower_bound, now_ns);
    return by_chance || by_bound;
}

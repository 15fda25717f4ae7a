/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/read_sampler.c - a tree of samplers as an array, in which each comes before its
 * parts: whoever makes them goes from the end to the beginning. Start/stop only. */
#include "config/settings.h"

#include <otel/sampler.h>
#include <string.h>

struct reader {
    struct oteli_pool *pool;
    struct oteli_faults *faults;
    struct oteli_sampler_setting *samplers;
    const struct oteli_node **nodes; /* {kind: settings}, in the same places */
    bool *are_composable;
    size_t count;
};

static size_t add(struct reader *reader, const struct oteli_node *node, bool is_composable)
{
    if (node == NULL)
        return 0;
    reader->nodes[reader->count] = node;
    reader->are_composable[reader->count] = is_composable;
    return reader->count++;
}

static enum oteli_sampler_kind kind_of(const char *key, bool is_composable)
{
    static const struct {
        const char *key;
        bool is_composable;
        enum oteli_sampler_kind kind;
    } kinds[] = {
        {"always_on", false, OTELI_SAMPLER_ALWAYS_ON},
        {"always_off", false, OTELI_SAMPLER_ALWAYS_OFF},
        {"trace_id_ratio_based", false, OTELI_SAMPLER_RATIO},
        {"probability/development", false, OTELI_SAMPLER_PROBABILITY},
        {"parent_based", false, OTELI_SAMPLER_PARENT_BASED},
        {"always_record", false, OTELI_SAMPLER_ALWAYS_RECORD},
        {"composite/development", false, OTELI_SAMPLER_COMPOSITE},
        {"jaeger_remote/development", false, OTELI_SAMPLER_JAEGER_REMOTE},
        {"always_on", true, OTELI_COMPOSABLE_ALWAYS_ON},
        {"always_off", true, OTELI_COMPOSABLE_ALWAYS_OFF},
        {"probability", true, OTELI_COMPOSABLE_PROBABILITY},
        {"parent_threshold", true, OTELI_COMPOSABLE_PARENT_THRESHOLD},
        {"rule_based", true, OTELI_COMPOSABLE_RULE_BASED},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].is_composable == is_composable && strcmp(kinds[i].key, key) == 0)
            return kinds[i].kind;
    return OTELI_SAMPLER_REGISTERED;
}

static unsigned kinds_of(const struct oteli_node *list)
{
    static const char *const names[] = {"internal", "server", "client", "producer", "consumer"};
    unsigned kinds = 0;
    const struct oteli_item *item = list != NULL ? list->items : NULL;
    for (; item != NULL; item = item->next)
        for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
            if (strcmp(item->value->text, names[i]) == 0)
                kinds |= 1U << i;
    return kinds;
}

static unsigned parents_of(const struct oteli_node *list)
{
    unsigned parents = 0;
    const struct oteli_item *item = list != NULL ? list->items : NULL;
    for (; item != NULL; item = item->next) {
        if (strcmp(item->value->text, "none") == 0)
            parents |= OTEL_RULE_PARENT_NONE;
        else if (strcmp(item->value->text, "remote") == 0)
            parents |= OTEL_RULE_PARENT_REMOTE;
        else if (strcmp(item->value->text, "local") == 0)
            parents |= OTEL_RULE_PARENT_LOCAL;
    }
    return parents;
}

static void read_rule(struct reader *reader, const struct oteli_node *node,
                      struct oteli_rule_setting *rule)
{
    const struct oteli_node *values = oteli_node_value(node, "attribute_values");
    const struct oteli_node *patterns = oteli_node_value(node, "attribute_patterns");
    struct oteli_pool *pool = reader->pool;
    rule->value_key = oteli_read_text(values, "key");
    rule->values = oteli_read_texts(values, "values", pool, reader->faults, &rule->value_count);
    rule->pattern_key = oteli_read_text(patterns, "key");
    rule->included =
        oteli_read_texts(patterns, "included", pool, reader->faults, &rule->included_count);
    rule->excluded =
        oteli_read_texts(patterns, "excluded", pool, reader->faults, &rule->excluded_count);
    rule->kinds = kinds_of(oteli_node_value(node, "span_kinds"));
    rule->parents = parents_of(oteli_node_value(node, "parent"));
    rule->sampler = add(reader, oteli_node_value(node, "sampler"), true);
}

static void read_rules(struct reader *reader, const struct oteli_node *list,
                       struct oteli_sampler_setting *sampler)
{
    if (list == NULL)
        return;
    sampler->rules = oteli_pool_array(reader->pool, list->count, sizeof *sampler->rules);
    if (sampler->rules == NULL) {
        oteli_fault_no_memory(reader->faults);
        return;
    }
    for (const struct oteli_item *item = list->items; item != NULL; item = item->next)
        read_rule(reader, item->value, &sampler->rules[sampler->rule_count++]);
}

static void read_one(struct reader *reader, size_t index)
{
    static const char *const parts[OTELI_SAMPLER_PARTS] = {
        "root", "remote_parent_sampled", "remote_parent_not_sampled", "local_parent_sampled",
        "local_parent_not_sampled"};
    struct oteli_sampler_setting *sampler = &reader->samplers[index];
    const struct oteli_item *item = reader->nodes[index]->items;
    const struct oteli_node *body = item->value;
    sampler->kind = kind_of(item->key, reader->are_composable[index]);
    sampler->place = item->key_place;
    switch (sampler->kind) {
    case OTELI_SAMPLER_RATIO:
    case OTELI_SAMPLER_PROBABILITY:
    case OTELI_COMPOSABLE_PROBABILITY: {
        const struct oteli_node *ratio = oteli_node_value(body, "ratio");
        sampler->ratio = ratio != NULL ? ratio->real : 1;
        break;
    }
    case OTELI_SAMPLER_PARENT_BASED:
    case OTELI_SAMPLER_ALWAYS_RECORD:
        for (size_t i = 0; i < OTELI_SAMPLER_PARTS; i++)
            sampler->parts[i] = add(reader, oteli_node_value(body, parts[i]), false);
        break;
    case OTELI_SAMPLER_COMPOSITE:
        sampler->parts[0] = add(reader, body, true);
        break;
    case OTELI_SAMPLER_JAEGER_REMOTE:
        sampler->endpoint = oteli_read_text(body, "endpoint");
        sampler->interval_ms = oteli_read_number(body, "interval");
        sampler->parts[0] = add(reader, oteli_node_value(body, "initial_sampler"), false);
        break;
    case OTELI_COMPOSABLE_PARENT_THRESHOLD:
        sampler->parts[0] = add(reader, oteli_node_value(body, "root"), true);
        break;
    case OTELI_COMPOSABLE_RULE_BASED:
        read_rules(reader, oteli_node_value(body, "rules"), sampler);
        break;
    case OTELI_SAMPLER_REGISTERED:
        sampler->component = oteli_component_read(OTEL_COMPONENT_SAMPLER, item);
        break;
    default:
        break;
    }
}

void oteli_samplers_read(const struct oteli_node *sampler, struct oteli_pool *pool,
                         struct oteli_faults *faults, struct oteli_settings *settings)
{
    if (sampler == NULL)
        return;
    /* A sampler is two nodes at least, so there are fewer of them than that. */
    const size_t most = sampler->weight;
    struct reader reader = {.pool = pool, .faults = faults};
    reader.samplers = oteli_pool_array(pool, most, sizeof *reader.samplers);
    reader.nodes = oteli_pool_array(pool, most, sizeof *reader.nodes);
    reader.are_composable = oteli_pool_array(pool, most, sizeof *reader.are_composable);
    if (reader.samplers == NULL || reader.nodes == NULL || reader.are_composable == NULL) {
        oteli_fault_no_memory(faults);
        return;
    }
    add(&reader, sampler, false);
    for (size_t i = 0; i < reader.count; i++)
        read_one(&reader, i);
    settings->samplers = reader.samplers;
    settings->sampler_count = reader.count;
}

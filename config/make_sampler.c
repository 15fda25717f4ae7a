/* SPDX-License-Identifier: Apache-2.0 */
/* config/make_sampler.c - make the sampler that a configuration file describes, with those that it
 * is made of. Start/stop only; what is made is the caller's.
 *
 * The schema has been checked: each sampler is a mapping with one key. Samplers are made of
 * samplers, at most as deep as a document may be nested. */
#include "config/read/registry.h"
#include "config/settings.h"

#include <otel/jaeger_remote.h>
#include <otel/sampler.h>
#include <stdlib.h>
#include <string.h>

struct maker {
    struct oteli_file *file;
    const char *service_name;
};

static otel_status make_sampler(const struct maker *maker, const struct oteli_node *node,
                                otel_sampler *sampler);
static otel_status make_composable(const struct maker *maker, const struct oteli_node *node,
                                   otel_composable *composable);

static void free_sampler(const otel_sampler *sampler)
{
    if (sampler->free != NULL)
        sampler->free(sampler->state);
}

static double ratio_of(const struct oteli_node *body)
{
    const struct oteli_node *ratio = oteli_node_value(body, "ratio");
    return ratio != NULL ? ratio->real : 1;
}

/* One that is not given stays what it is. */
static otel_status make_part(const struct maker *maker, const struct oteli_node *body,
                             const char *key, otel_sampler *part)
{
    const struct oteli_node *node = oteli_node_value(body, key);
    return node != NULL ? make_sampler(maker, node, part) : OTEL_OK;
}

static otel_status make_parent_based(const struct maker *maker, const struct oteli_node *body,
                                     otel_sampler *sampler)
{
    otel_parent_based_options options = {.size = sizeof options, .root = otel_sampler_always_on()};
    const struct {
        const char *key;
        otel_sampler *part;
    } parts[] = {
        {"root", &options.root},
        {"remote_parent_sampled", &options.remote_parent_sampled},
        {"remote_parent_not_sampled", &options.remote_parent_not_sampled},
        {"local_parent_sampled", &options.local_parent_sampled},
        {"local_parent_not_sampled", &options.local_parent_not_sampled},
    };
    const size_t count = sizeof parts / sizeof parts[0];
    otel_status status = OTEL_OK;
    for (size_t i = 0; i < count && status == OTEL_OK; i++)
        status = make_part(maker, body, parts[i].key, parts[i].part);
    if (status == OTEL_OK)
        return otel_sampler_parent_based(&options, sampler);
    for (size_t i = 0; i < count; i++)
        free_sampler(parts[i].part);
    return status;
}

static otel_status make_always_record(const struct maker *maker, const struct oteli_node *body,
                                      otel_sampler *sampler)
{
    otel_sampler root = {.size = 0};
    const otel_status status = make_part(maker, body, "root", &root);
    return status == OTEL_OK ? otel_sampler_always_record(root, sampler) : status;
}

static otel_status make_composite(const struct maker *maker, const struct oteli_node *body,
                                  otel_sampler *sampler)
{
    otel_composable root;
    const otel_status status = make_composable(maker, body, &root);
    return status == OTEL_OK ? otel_sampler_composite(root, sampler) : status;
}

static otel_status make_jaeger_remote(const struct maker *maker, const struct oteli_node *body,
                                      otel_sampler *sampler)
{
    otel_sampler initial = {.size = 0};
    const otel_status status = make_part(maker, body, "initial_sampler", &initial);
    if (status != OTEL_OK)
        return status;
    return otel_sampler_jaeger_remote(
        OTEL_JAEGER_REMOTE_OPTIONS(.endpoint = oteli_read_text(body, "endpoint"),
                                   .service_name = maker->service_name,
                                   .polling_interval_ms = oteli_read_number(body, "interval"),
                                   .initial = initial),
        sampler);
}

/* Report a sampler that cannot be made, unless one that it consists of has been reported. */
static void report(const struct maker *maker, size_t faults_before, const struct oteli_item *item,
                   otel_status status)
{
    if (status != OTEL_OK && maker->file->faults == faults_before)
        oteli_fault(maker->file, item->key_place, "this sampler cannot be made: %s",
                    otel_status_string(status));
}

static otel_status make_sampler(const struct maker *maker, const struct oteli_node *node,
                                otel_sampler *sampler)
{
    const size_t faults_before = maker->file->faults;
    const struct oteli_item *item = node->items;
    const struct oteli_node *body = item->value;
    otel_sampler made = {.size = 0};
    otel_status status = OTEL_OK;
    if (strcmp(item->key, "always_on") == 0)
        made = otel_sampler_always_on();
    else if (strcmp(item->key, "always_off") == 0)
        made = otel_sampler_always_off();
    else if (strcmp(item->key, "trace_id_ratio_based") == 0)
        status = otel_sampler_trace_id_ratio(ratio_of(body), &made);
    else if (strcmp(item->key, "probability/development") == 0)
        status = otel_sampler_probability(ratio_of(body), &made);
    else if (strcmp(item->key, "parent_based") == 0)
        status = make_parent_based(maker, body, &made);
    else if (strcmp(item->key, "always_record") == 0)
        status = make_always_record(maker, body, &made);
    else if (strcmp(item->key, "composite/development") == 0)
        status = make_composite(maker, body, &made);
    else if (strcmp(item->key, "jaeger_remote/development") == 0)
        status = make_jaeger_remote(maker, body, &made);
    else
        status = oteli_registry_create(OTEL_COMPONENT_SAMPLER, item, &made);
    report(maker, faults_before, item, status);
    if (status == OTEL_OK)
        *sampler = made;
    return status;
}

/* --- Samplers that are composed of others --- */

/* The bits of the words in a list, of which the first is 1. */
static unsigned bits_of(const struct oteli_node *mapping, const char *key, const char *const *words,
                        unsigned count)
{
    unsigned bits = 0;
    size_t listed;
    const struct oteli_item *item = oteli_read_list(mapping, key, &listed);
    for (; item != NULL; item = item->next)
        for (unsigned i = 0; i < count; i++)
            if (strcmp(item->value->text, words[i]) == 0)
                bits |= 1U << i;
    return bits;
}

static otel_status make_rule(const struct maker *maker, const struct oteli_node *node,
                             otel_sampling_rule *rule)
{
    static const char *const kinds[] = {"internal", "server", "client", "producer", "consumer"};
    static const char *const parents[] = {"none", "local", "remote"}; /* OTEL_RULE_PARENT_… */
    const struct oteli_node *values = oteli_node_value(node, "attribute_values");
    const struct oteli_node *patterns = oteli_node_value(node, "attribute_patterns");
    struct oteli_file *file = maker->file;
    rule->attribute_key = oteli_read_text(values, "key");
    rule->attribute_values = oteli_read_texts(values, "values", file, &rule->attribute_value_count);
    rule->pattern_key = oteli_read_text(patterns, "key");
    rule->included = oteli_read_texts(patterns, "included", file, &rule->included_count);
    rule->excluded = oteli_read_texts(patterns, "excluded", file, &rule->excluded_count);
    rule->kinds = bits_of(node, "span_kinds", kinds, 5);
    rule->parents = bits_of(node, "parent", parents, 3);
    if (file->has_no_memory)
        return OTEL_ERROR_NO_MEMORY;
    return make_composable(maker, oteli_node_value(node, "sampler"), &rule->sampler);
}

static otel_status make_rule_based(const struct maker *maker, const struct oteli_node *body,
                                   otel_composable *composable)
{
    size_t count;
    const struct oteli_item *item = oteli_read_list(body, "rules", &count);
    otel_sampling_rule *rules = calloc(count + 1, sizeof *rules);
    if (rules == NULL)
        return OTEL_ERROR_NO_MEMORY;
    otel_status status = OTEL_OK;
    for (size_t i = 0; item != NULL && status == OTEL_OK; item = item->next)
        status = make_rule(maker, item->value, &rules[i++]);
    if (status == OTEL_OK) {
        status = otel_composable_rule_based(rules, count, composable);
    } else {
        for (size_t i = 0; i < count; i++)
            if (rules[i].sampler.free != NULL)
                rules[i].sampler.free(rules[i].sampler.state);
    }
    free(rules);
    return status;
}

static otel_status make_parent_threshold(const struct maker *maker, const struct oteli_node *body,
                                         otel_composable *composable)
{
    otel_composable root;
    const otel_status status = make_composable(maker, oteli_node_value(body, "root"), &root);
    return status == OTEL_OK ? otel_composable_parent_threshold(root, composable) : status;
}

static otel_status make_composable(const struct maker *maker, const struct oteli_node *node,
                                   otel_composable *composable)
{
    const size_t faults_before = maker->file->faults;
    const struct oteli_item *item = node->items;
    otel_status status = OTEL_OK;
    if (strcmp(item->key, "always_on") == 0)
        *composable = otel_composable_always_on();
    else if (strcmp(item->key, "always_off") == 0)
        *composable = otel_composable_always_off();
    else if (strcmp(item->key, "probability") == 0)
        status = otel_composable_probability(ratio_of(item->value), composable);
    else if (strcmp(item->key, "parent_threshold") == 0)
        status = make_parent_threshold(maker, item->value, composable);
    else
        status = make_rule_based(maker, item->value, composable);
    report(maker, faults_before, item, status);
    return status;
}

otel_status oteli_make_sampler(const struct oteli_settings *settings, const char *service_name,
                               struct oteli_file *file, otel_sampler *sampler)
{
    const struct maker maker = {file, service_name};
    return make_sampler(&maker, settings->sampler, sampler);
}

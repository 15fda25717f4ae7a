/* SPDX-License-Identifier: Apache-2.0 */
/* config/settings.c - a checked document as plain values; see settings.h. Start/stop only. */
#include "config/settings.h"

#include "common/text/text.h"

/* Severities of OpenTelemetry to those of OTEL_LOG_LEVEL. Nothing here is fatal. */
static const char *log_level_of(const char *severity)
{
    static const struct {
        const char *severity;
        const char *level;
    } levels[] = {
        {"trace", "debug"}, {"debug", "debug"}, {"info", "info"},
        {"warn", "warn"},   {"error", "error"}, {"fatal", "none"},
    };
    for (size_t i = 0; severity != NULL && i < sizeof levels / sizeof levels[0]; i++)
        if (strncmp(severity, levels[i].severity, strlen(levels[i].severity)) == 0)
            return levels[i].level;
    return NULL;
}

static void read_limits(const struct oteli_node *general, const struct oteli_node *span,
                        otel_sdk_options *options)
{
    options->attribute_value_length_limit =
        oteli_read_number(general, "attribute_value_length_limit");
    options->attribute_count_limit = oteli_read_number(general, "attribute_count_limit");
    options->attribute_value_depth_limit = oteli_read_number(span, "attribute_value_depth_limit");
    if (options->attribute_value_depth_limit == 0)
        options->attribute_value_depth_limit =
            oteli_read_number(general, "attribute_value_depth_limit");
    options->span_attribute_value_length_limit =
        oteli_read_number(span, "attribute_value_length_limit");
    options->span_attribute_count_limit = oteli_read_number(span, "attribute_count_limit");
    options->span_event_count_limit = oteli_read_number(span, "event_count_limit");
    options->span_link_count_limit = oteli_read_number(span, "link_count_limit");
    options->event_attribute_count_limit = oteli_read_number(span, "event_attribute_count_limit");
    options->link_attribute_count_limit = oteli_read_number(span, "link_attribute_count_limit");
}

/* --- Propagators --- */

static bool has_name(const char *names, otel_slice name)
{
    otel_slice rest = oteli_slice_of(names);
    otel_slice one;
    while (oteli_list_next(&rest, &one))
        if (one.length == name.length && memcmp(one.data, name.data, name.length) == 0)
            return true;
    return false;
}

static void add_name(char *names, otel_slice name)
{
    const size_t length = strlen(names);
    if (has_name(names, name))
        return;
    names[length] = ',';
    memcpy(names + length + (length != 0), name.data, name.length);
}

static bool is_propagator(otel_slice name)
{
    return has_name("tracecontext,baggage,b3,b3multi,jaeger,none", name);
}

/* The mappings first, then the list, each name once. "none" is what others leave of it. */
static void read_propagators(const struct oteli_node *node, struct oteli_pool *pool,
                             struct oteli_faults *faults, struct oteli_settings *settings)
{
    const struct oteli_node *composite = oteli_node_value(node, "composite");
    const char *list = oteli_read_text(node, "composite_list");
    if (node == NULL)
        return;
    size_t size = sizeof "none" + (list != NULL ? strlen(list) + 1 : 0);
    const struct oteli_item *first = composite != NULL ? composite->items : NULL;
    for (const struct oteli_item *item = first; item != NULL; item = item->next)
        size += strlen(item->value->items->key) + 1;
    char *names = oteli_read_array(pool, faults, size, 1);
    if (names == NULL)
        return;
    for (const struct oteli_item *item = first; item != NULL; item = item->next)
        add_name(names, oteli_slice_of(item->value->items->key));
    otel_slice rest = oteli_slice_of(list);
    otel_slice name;
    while (oteli_list_next(&rest, &name))
        if (!is_propagator(name))
            oteli_fault(faults, oteli_node_value(node, "composite_list")->place,
                        "propagator.composite_list has \"%.*s\", which is not in this build",
                        (int)(name.length < 80 ? name.length : 80), name.data);
        else if (name.length != 4 || memcmp(name.data, "none", 4) != 0)
            add_name(names, name);
    settings->options.propagators = names[0] != '\0' ? names : "none";
}

/* --- Tracers --- */

static void read_tracers(const struct oteli_node *configurator, struct oteli_pool *pool,
                         struct oteli_faults *faults, struct oteli_settings *settings)
{
    const struct oteli_node *list = oteli_node_value(configurator, "tracers");
    settings->has_tracer_rules = configurator != NULL;
    settings->are_tracers_enabled =
        oteli_read_bool(oteli_node_value(configurator, "default_config"), "enabled", true);
    if (list == NULL)
        return;
    struct oteli_tracer_setting *tracers =
        oteli_read_array(pool, faults, list->count, sizeof *tracers);
    if (tracers == NULL)
        return;
    for (const struct oteli_item *item = list->items; item != NULL; item = item->next)
        tracers[settings->tracer_count++] = (struct oteli_tracer_setting){
            oteli_read_text(item->value, "name"),
            oteli_read_bool(oteli_node_value(item->value, "config"), "enabled", true)};
    settings->tracers = tracers;
}

/* --- The profiler --- */

/* One that is there, even if nothing is said of it, is to run. */
static void read_profiler(const struct oteli_node *own, otel_sdk_options *options)
{
    const struct oteli_node *profiler = oteli_node_value(own, "profiler");
    options->profiler = oteli_read_text(profiler, "source");
    options->profiler_hz = oteli_read_number(profiler, "hz");
    options->profiler_signal = oteli_read_number(profiler, "signal");
    options->profiler_out = oteli_read_text(profiler, "out");
    options->profiler_endpoint = oteli_read_text(profiler, "endpoint");
    options->pprof_label_style = oteli_read_text(profiler, "label_style");
    options->profiler_names = oteli_read_text(profiler, "names");
    if (options->profiler == NULL && oteli_node_find(own, "profiler") != NULL)
        options->profiler = "auto";
}

void oteli_settings_read(const struct oteli_node *root, struct oteli_pool *pool,
                         struct oteli_faults *faults, struct oteli_settings *settings)
{
    const struct oteli_node *provider = oteli_node_value(root, "tracer_provider");
    *settings = (struct oteli_settings){
        .pool = pool,
        .sampler = oteli_node_value(provider, "sampler"),
        .is_disabled = provider == NULL || oteli_read_bool(root, "disabled", false),
        .options = {.size = sizeof settings->options,
                    .log_level = log_level_of(oteli_read_text(root, "log_level"))},
    };
    read_limits(oteli_node_value(root, "attribute_limits"), oteli_node_value(provider, "limits"),
                &settings->options);
    read_profiler(oteli_node_value(oteli_node_value(root, "distribution"), "otel-c"),
                  &settings->options);
    if (provider == NULL)
        oteli_doubt(faults, root->place, "there is no tracer_provider: spans are not recorded");
    read_propagators(oteli_node_value(root, "propagator"), pool, faults, settings);
    oteli_resource_read(oteli_node_value(root, "resource"), pool, faults, settings);
    oteli_processors_read(oteli_node_value(provider, "processors"), pool, faults, settings);
    read_tracers(oteli_node_value(provider, "tracer_configurator/development"), pool, faults,
                 settings);
}

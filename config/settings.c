/* SPDX-License-Identifier: Apache-2.0 */
/* config/settings.c - a checked document as plain values; see settings.h. Start/stop only. */
#include "config/settings.h"

#include "common/config/configuration.h"
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

static bool is_propagator(otel_slice name)
{
    otel_slice rest = oteli_slice_of("tracecontext,baggage,b3,b3multi,jaeger,none");
    otel_slice one;
    while (oteli_list_next(&rest, &one))
        if (one.length == name.length && memcmp(one.data, name.data, name.length) == 0)
            return true;
    return false;
}

static char *add_name(char *end, const char *names, otel_slice name)
{
    if (end != names)
        *end++ = ',';
    return oteli_slice_put(end, name) + name.length;
}

/* The mappings first, then the list; the SDK takes each name once. "none" is what others leave of
 * it. */
static void read_propagators(const struct oteli_node *node, struct oteli_file *file,
                             struct oteli_settings *settings)
{
    if (node == NULL)
        return;
    const char *composite = oteli_read_keys(node, "composite", file);
    const char *list = oteli_read_text(node, "composite_list");
    otel_slice rest = oteli_slice_of(list);
    otel_slice name = oteli_slice_of(composite);
    char *names = oteli_file_take(file, name.length + rest.length + sizeof ",none", 1);
    if (names == NULL)
        return;
    char *end = name.length != 0 ? add_name(names, names, name) : names;
    while (oteli_list_next(&rest, &name))
        if (!is_propagator(name))
            oteli_fault(file, oteli_node_value(node, "composite_list")->place,
                        "propagator.composite_list has \"%.*s\", which is not in this build",
                        (int)(name.length < 80 ? name.length : 80), name.data);
        else if (!oteli_is_text(name, "none"))
            end = add_name(end, names, name);
    settings->options.propagators = end != names ? names : "none";
}

/* --- Batch processors --- */

/* Put what a batch processor says beside what those before it said. False: another number. */
static bool put_batch(const struct oteli_node *batch, otel_sdk_options *options)
{
    const struct {
        const char *key;
        int64_t *option;
    } rows[] = {{"schedule_delay", &options->bsp_schedule_delay},
                {"export_timeout", &options->bsp_export_timeout},
                {"max_queue_size", &options->bsp_max_queue_size},
                {"max_export_batch_size", &options->bsp_max_export_batch_size}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int64_t number = oteli_read_number(batch, rows[i].key);
        if (number != 0 && *rows[i].option != 0 && number != *rows[i].option)
            return false;
        if (number != 0)
            *rows[i].option = number;
    }
    return true;
}

/* All batch processors share one queue here: what one of them says of it counts for all. */
static void read_batches(const struct oteli_node *processors, struct oteli_file *file,
                         struct oteli_settings *settings)
{
    size_t index = 0;
    const struct oteli_item *item = processors != NULL ? processors->items : NULL;
    for (; item != NULL; item = item->next, index++) {
        const struct oteli_item *kind = item->value->items;
        if (strcmp(kind->key, "batch") == 0 && !put_batch(kind->value, &settings->options))
            oteli_fault(file, kind->key_place,
                        "tracer_provider.processors[%zu].batch has other settings than a batch "
                        "processor before it, and all of them share one queue in this build",
                        index);
    }
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

void oteli_settings_read(const struct oteli_node *root, struct oteli_file *file,
                         struct oteli_settings *settings)
{
    const struct oteli_node *provider = oteli_node_value(root, "tracer_provider");
    *settings = (struct oteli_settings){
        .processors = oteli_node_value(provider, "processors"),
        .sampler = oteli_node_value(provider, "sampler"),
        .configurator = oteli_node_value(provider, "tracer_configurator/development"),
        .is_disabled = provider == NULL || oteli_read_bool(root, "disabled", false),
        .options = {.size = sizeof settings->options,
                    .log_level = log_level_of(oteli_read_text(root, "log_level"))},
    };
    read_limits(oteli_node_value(root, "attribute_limits"), oteli_node_value(provider, "limits"),
                &settings->options);
    read_profiler(oteli_node_value(oteli_node_value(root, "distribution"), "otel-c"),
                  &settings->options);
    if (provider == NULL)
        oteli_doubt(file, root->place, "there is no tracer_provider: spans are not recorded");
    read_propagators(oteli_node_value(root, "propagator"), file, settings);
    oteli_resource_read(oteli_node_value(root, "resource"), file, settings);
    read_batches(settings->processors, file, settings);
}

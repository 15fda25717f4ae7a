/* SPDX-License-Identifier: Apache-2.0 */
/* config/settings.c - a checked document as plain values; see settings.h. Start/stop only. */
#include "config/settings.h"

#include "common/config/configuration.h"
#include "common/text/text.h"

#include <inttypes.h>

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

/* A default that is not said and one that is are the same. The defaults are those of
 * common/config/config_table.h. */
static int64_t number_or(const struct oteli_node *mapping, const char *key, int64_t otherwise)
{
    const int64_t number = oteli_read_number(mapping, key);
    return number != 0 ? number : otherwise;
}

static bool is_same_batch(const otel_sdk_options *a, const otel_sdk_options *b)
{
    return a->bsp_schedule_delay == b->bsp_schedule_delay &&
           a->bsp_export_timeout == b->bsp_export_timeout &&
           a->bsp_max_queue_size == b->bsp_max_queue_size &&
           a->bsp_max_export_batch_size == b->bsp_max_export_batch_size;
}

/* All batch processors share one queue here, so they must agree on its settings. */
static void read_batches(const struct oteli_node *processors, struct oteli_file *file,
                         struct oteli_settings *settings)
{
    size_t index = 0;
    bool is_first = true;
    const struct oteli_item *item = processors != NULL ? processors->items : NULL;
    for (; item != NULL; item = item->next, index++) {
        const struct oteli_item *kind = item->value->items;
        if (strcmp(kind->key, "batch") != 0)
            continue;
        const int64_t queue = number_or(kind->value, "max_queue_size", 2048);
        const int64_t size = number_or(kind->value, "max_export_batch_size", 512);
        const otel_sdk_options batch = {
            .bsp_schedule_delay = number_or(kind->value, "schedule_delay", 5000),
            .bsp_export_timeout = number_or(kind->value, "export_timeout", 30000),
            .bsp_max_queue_size = queue,
            .bsp_max_export_batch_size = size < queue ? size : queue,
        };
        if (is_first && size > queue)
            oteli_doubt(file, kind->key_place,
                        "tracer_provider.processors[%zu].batch has batches of %" PRId64
                        " spans, which do not fit in its queue of %" PRId64
                        "; using batches of %" PRId64,
                        index, size, queue, queue);
        if (is_first)
            oteli_config_put_over(&settings->options, &batch);
        else if (!is_same_batch(&batch, &settings->options))
            oteli_fault(file, kind->key_place,
                        "tracer_provider.processors[%zu].batch has other settings than the batch "
                        "processor before it, and all of them share one queue in this build",
                        index);
        is_first = false;
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

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/yaml.c - configuration files: whatever the bytes, they are refused with faults, or
 * are settings in which everything that is read is there. */
#include "config/build_options.h"
#include "config/yaml_file.h"
#include "tests/fuzz/fuzz.h"

/* libfyaml 0.7 loses 2 KiB on some of the texts that it refuses. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml.so";
}

static void check_sampler(const struct oteli_settings *settings, struct oteli_file *file)
{
    otel_sampler sampler = {.size = 0};
    if (settings->sampler == NULL || oteli_make_sampler(settings, NULL, file, &sampler) != OTEL_OK)
        return;
    if (sampler.free != NULL)
        sampler.free(sampler.state);
}

static void check_settings(const struct oteli_settings *settings, struct oteli_file *file)
{
    size_t length = 0;
    for (size_t i = 0; i < settings->attribute_count; i++)
        length += strlen(settings->attributes[i].key);
    const struct oteli_node *processors = settings->processors;
    const struct oteli_item *item = processors != NULL ? processors->items : NULL;
    for (; item != NULL; item = item->next) {
        const struct oteli_item *exporter = oteli_exporter_of(item->value);
        otel_otlp_options otlp;
        if (exporter != NULL && oteli_read_otlp(exporter, file, &otlp))
            for (size_t i = 0; i < otlp.header_count; i++)
                length += strlen(otlp.headers[i].value);
    }
    const otel_scope_view scope = {.name = {"fuzz", 4}};
    if (settings->configurator != NULL)
        length += oteli_file_enables_tracer((void *)(uintptr_t)settings->configurator, &scope);
    if (length > OTELI_POOL_MOST || (!settings->is_disabled && processors == NULL))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oteli_file file = {.path = "fuzz.yaml"};
    struct oteli_settings settings;
    fuzz_be_quiet();
    const otel_status status = oteli_file_parse((const char *)data, size, &file, &settings);
    if ((status == OTEL_OK) != (file.faults == 0))
        abort();
    if (status == OTEL_OK) {
        check_settings(&settings, &file);
        check_sampler(&settings, &file);
    }
    oteli_pool_fini(&file.pool);
    return 0;
}

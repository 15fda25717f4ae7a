/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/yaml.c - configuration files: whatever the bytes, they are refused with faults, or
 * are settings in which everything that is read is there. */
#include "config/yaml_file.h"
#include "tests/fuzz/fuzz.h"

/* libfyaml 0.7 loses 2 KiB on some of the texts that it refuses. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml.so";
}

static void check_sampler(const struct oteli_settings *settings, struct oteli_faults *faults)
{
    otel_sampler sampler = {.size = 0};
    if (settings->sampler == NULL ||
        oteli_make_sampler(settings, NULL, faults, &sampler) != OTEL_OK)
        return;
    if (sampler.free != NULL)
        sampler.free(sampler.state);
}

static void check_settings(const struct oteli_settings *settings)
{
    size_t length = 0;
    for (size_t i = 0; i < settings->attribute_count; i++)
        length += strlen(settings->attributes[i].key);
    for (size_t i = 0; i < settings->processor_count; i++)
        for (size_t j = 0; j < settings->processors[i].exporter.otlp.header_count; j++)
            length += strlen(settings->processors[i].exporter.otlp.headers[j].value);
    for (size_t i = 0; i < settings->tracer_count; i++)
        length += strlen(settings->tracers[i].pattern);
    if (length > OTELI_POOL_MOST || (!settings->is_disabled && settings->processor_count == 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oteli_pool pool = {.blocks = NULL};
    struct oteli_faults faults = {.file = "fuzz.yaml"};
    struct oteli_settings settings;
    fuzz_be_quiet();
    const otel_status status =
        oteli_file_parse((const char *)data, size, &pool, &faults, &settings);
    if ((status == OTEL_OK) != (faults.count == 0))
        abort();
    if (status == OTEL_OK) {
        check_settings(&settings);
        check_sampler(&settings, &faults);
    }
    oteli_pool_fini(&pool);
    return 0;
}

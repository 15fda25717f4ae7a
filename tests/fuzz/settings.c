/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/settings.c - any text in any variable: the first byte chooses a row of the table
 * of settings, the rest is its value. Whatever it is, the configuration is one that works. */
#include "common/config/configuration.h"
#include "tests/fuzz/fuzz.h"

static void look_at_number(const struct oteli_config_row *row, int64_t number)
{
    const bool is_unlimited =
        number == OTELI_UNLIMITED && (row->type == OTELI_TYPE_TIMEOUT || row->default_text == NULL);
    if (!is_unlimited && (number < row->min || number > row->max))
        abort();
}

static void look_at_word(const struct oteli_config_row *row, const char *word)
{
    if (word == NULL) {
        fuzz_check(row->default_text == NULL);
        return;
    }
    for (; *word != '\0'; word++)
        if ((*word >= 'A' && *word <= 'Z') || *word == ' ')
            abort();
}

static void look_at(const struct oteli_config *config, const struct oteli_config_row *row)
{
    const void *field = (const char *)config + row->offset;
    switch (row->type) {
    case OTELI_TYPE_COUNT:
    case OTELI_TYPE_DURATION:
    case OTELI_TYPE_TIMEOUT:
        look_at_number(row, *(const int64_t *)field);
        break;
    case OTELI_TYPE_ENUM:
    case OTELI_TYPE_LIST:
        look_at_word(row, *(char *const *)field);
        break;
    case OTELI_TYPE_BOOL:
    case OTELI_TYPE_STRING:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const struct oteli_config_row *row = &oteli_config_rows[data[0] % oteli_config_row_count];
    char *text = fuzz_text(data + 1, size - 1);
    if (text == NULL)
        return 0;
    fuzz_be_quiet();
    setenv(row->variable, text, 1);
    struct oteli_config config;
    fuzz_check(oteli_config_load(&config, NULL, true) == OTEL_OK);
    for (size_t i = 0; i < oteli_config_row_count; i++)
        look_at(&config, &oteli_config_rows[i]);
    fuzz_check(config.bsp_max_export_batch_size <= config.bsp_max_queue_size);
    oteli_config_fini(&config);
    unsetenv(row->variable);
    free(text);
    return 0;
}

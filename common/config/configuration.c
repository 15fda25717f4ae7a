/* SPDX-License-Identifier: Apache-2.0 */
/* common/config/configuration.c - from the table to an oteli_config: options, environment,
 * defaults.
 *
 * Runs on the thread that starts the SDK; owns the texts of the config it fills in. */
#include "common/config/configuration.h"

#include "common/config/config_text.h"
#include "common/log.h"
#include "common/text/secrets.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OFFSET_OTELI_OPTION(name) ((ptrdiff_t)offsetof(otel_sdk_options, name))
#define OFFSET_OTELI_NO_OPTION(name) ((ptrdiff_t)-1)

/* The name of a setting is the end of what messages call its option (oteli_config_called). */
#define OPTIONS "otel_sdk_options."
enum { NAME_AT = sizeof OPTIONS - 1 };

/* clang-format off */
#define DATA_OF(name, variable, type, default_text, min, max, words, option, doc)    \
    {&(OPTIONS #name)[NAME_AT], variable, type, default_text, min, max, words,        \
     offsetof(struct oteli_config, name), OFFSET_##option(name), doc, OPTIONS "defaults->" #name},
/* clang-format on */
const struct oteli_config_row oteli_config_rows[] = {OTELI_CONFIG_TABLE(DATA_OF)};

#define INDEX_OF(name, ...) ROW_##name,
enum { OTELI_CONFIG_TABLE(INDEX_OF) ROW_COUNT };
_Static_assert(ROW_COUNT == (int)OTELI_CONFIG_ROWS && ROW_COUNT <= UINT8_MAX, "a giver's general");
const size_t oteli_config_row_count = ROW_COUNT;

/* A member of otel_sdk_options has the type that its row says: text or number. One that is
 * true or false is a text, because as a bool it could not be unset. */
#define IS_TEXT(type) \
    ((type) == OTELI_TYPE_STRING || (type) == OTELI_TYPE_ENUM || (type) == OTELI_TYPE_LIST)
#define IS_TEXT_IN_CODE(type) (IS_TEXT(type) || (type) == OTELI_TYPE_BOOL)
#define HAS_TYPE(name, type) \
    __builtin_types_compatible_p(__typeof__(((otel_sdk_options *)NULL)->name), type)
#define CHECK_OTELI_NO_OPTION(name, type)
#define CHECK_OTELI_OPTION(name, type)                                                             \
    _Static_assert(IS_TEXT_IN_CODE(type) ? HAS_TYPE(name, const char *) : HAS_TYPE(name, int64_t), \
                   "otel_sdk_options." #name " has another type than its row");
#define CHECK(name, variable, type, default_text, min, max, words, option, doc) \
    CHECK_##option(name, type)
OTELI_CONFIG_TABLE(CHECK)

/* Where a setting that is unset takes its value from. */
static const struct {
    size_t specific;
    size_t general;
} fallbacks[] = {
    {ROW_span_attribute_value_length_limit, ROW_attribute_value_length_limit},
    {ROW_span_attribute_count_limit, ROW_attribute_count_limit},
    {ROW_exporter_otlp_traces_headers, ROW_exporter_otlp_headers},
    {ROW_exporter_otlp_traces_timeout, ROW_exporter_otlp_timeout},
    {ROW_exporter_otlp_traces_protocol, ROW_exporter_otlp_protocol},
    {ROW_exporter_otlp_traces_compression, ROW_exporter_otlp_compression},
    {ROW_exporter_otlp_traces_certificate, ROW_exporter_otlp_certificate},
    {ROW_exporter_otlp_traces_client_key, ROW_exporter_otlp_client_key},
    {ROW_exporter_otlp_traces_client_certificate, ROW_exporter_otlp_client_certificate},
    {ROW_exporter_otlp_traces_insecure, ROW_exporter_otlp_insecure},
};

struct loader {
    struct oteli_config *config;
    const otel_sdk_options *options;
    const otel_sdk_options *defaults; /* of the program; NULL: none */
    bool read_environment;
    bool given[ROW_COUNT]; /* by code, the environment or the program's defaults, and good */
};

static bool is_text(const struct oteli_config_row *row)
{
    return IS_TEXT(row->type);
}

static void *field_of(struct oteli_config *config, const struct oteli_config_row *row)
{
    return (char *)config + row->offset;
}

static bool is_from(const struct oteli_config *config, size_t index,
                    enum oteli_config_source source)
{
    return config->givers[index].source == source;
}

/* The row whose giver gave the value of a field. */
static size_t giver_of(const struct oteli_config *config, const void *field)
{
    const size_t offset = (size_t)((const char *)field - (const char *)config);
    size_t index = 0;
    while (index + 1 < ROW_COUNT && oteli_config_rows[index].offset != offset)
        index++;
    const struct oteli_config_giver *giver = &config->givers[index];
    return giver->source == OTELI_FROM_GENERAL ? giver->general : index;
}

bool oteli_config_is_program_default(const struct oteli_config *config, const void *field)
{
    return is_from(config, giver_of(config, field), OTELI_FROM_PROGRAM);
}

bool oteli_config_is_in_code(const struct oteli_config *config, const void *field)
{
    return is_from(config, giver_of(config, field), OTELI_FROM_CODE) ||
           oteli_config_is_program_default(config, field);
}

static const char PROGRAM[] = "default of the program";

const char *oteli_config_origin(const struct oteli_config *config, const void *field)
{
    const size_t index = giver_of(config, field);
    switch (config->givers[index].source) {
    case OTELI_FROM_CODE:
        return "code";
    case OTELI_FROM_PROGRAM:
        return PROGRAM;
    case OTELI_FROM_ENVIRONMENT:
        return oteli_config_rows[index].variable;
    default:
        return "default";
    }
}

const char *oteli_config_called(const struct oteli_config *config, const void *field)
{
    const struct oteli_config_row *row = &oteli_config_rows[giver_of(config, field)];
    if (oteli_config_is_program_default(config, field))
        return row->default_name;
    return oteli_config_is_in_code(config, field) ? row->name - NAME_AT : row->variable;
}

/* What is wrong with a word of an enumeration or a list. */
static void explain_word(const struct oteli_config_row *row, otel_status status, otel_slice culprit,
                         bool in_code, char *out, size_t size)
{
    /* No word has a colon, but the list can be a URL that belongs into another variable. */
    const char *colon = memchr(culprit.data, ':', culprit.length);
    const int length = (int)(colon != NULL ? colon - culprit.data : (ptrdiff_t)culprit.length);
    char shown[65];
    char words[200];
    snprintf(shown, sizeof shown, "%.*s%s", length < 60 ? length : 60, culprit.data,
             colon != NULL ? ":***" : "");
    oteli_setting_words(row, in_code, words, sizeof words);
    if (status == OTEL_ERROR_UNSUPPORTED)
        snprintf(out, size, "has \"%s\", which otel-c does not support yet (it may be %s)", shown,
                 words);
    else if (row->type == OTELI_TYPE_LIST && oteli_is_word(culprit, "none"))
        snprintf(out, size, "has \"none\" beside other words");
    else
        snprintf(out, size, "has the unknown word \"%s\" (it may be %s)", shown, words);
}

/* What is wrong with a value, as the end of a sentence that begins with it. */
static void explain(const struct oteli_config_row *row, otel_status status, otel_slice culprit,
                    bool in_code, char *out, size_t size)
{
    const char *unit = row->type == OTELI_TYPE_COUNT ? "" : "of milliseconds ";
    if (row->type == OTELI_TYPE_BOOL)
        snprintf(out, size, "is neither true nor false");
    else if (is_text(row))
        explain_word(row, status, culprit, in_code, out, size);
    else
        snprintf(out, size, "is not a whole number %sfrom %" PRId64 " to %" PRId64, unit, row->min,
                 row->max);
}

static bool is_unset(const struct oteli_config_row *row, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return true;
    return row->type != OTELI_TYPE_STRING && oteli_trim(oteli_slice_of(text)).length == 0;
}

/* What the options say, a number as digits; NULL: nothing, as in a member that an older caller's
 * struct does not have. */
static const char *text_in_code(const otel_sdk_options *options, const struct oteli_config_row *row,
                                char digits[32])
{
    union {
        const char *text;
        int64_t number;
    } member;
    const bool has_text = IS_TEXT_IN_CODE(row->type);
    const size_t size = has_text ? sizeof member.text : sizeof member.number;
    if (options == NULL || row->option_offset < 0 ||
        options->size < (size_t)row->option_offset + size)
        return NULL;
    memcpy(&member, (const char *)options + row->option_offset, size);
    if (has_text)
        return member.text;
    if (member.number == 0)
        return NULL;
    const bool is_zero = member.number == OTEL_ZERO && row->min <= 0;
    snprintf(digits, 32, "%" PRId64, is_zero ? 0 : member.number);
    return digits;
}

/* Take what code or the environment says, and whether it counts. What is bad is an error in code,
 * and in the environment a warning: there the good words of a list still count. */
static otel_status take_text(const struct oteli_config_row *row, const char *text,
                             enum oteli_config_source source, struct oteli_setting *setting,
                             bool *given)
{
    const bool in_code = source != OTELI_FROM_ENVIRONMENT;
    otel_slice culprit;
    if (is_unset(row, text))
        return OTEL_OK;
    const otel_status status =
        oteli_setting_parse(row, oteli_slice_of(text), in_code, setting, &culprit);
    if (status == OTEL_ERROR_NO_MEMORY)
        return status;
    *given = setting->text != NULL || row->type == OTELI_TYPE_BOOL ||
             (status == OTEL_OK && !is_text(row));
    if (status == OTEL_OK)
        return OTEL_OK;

    char why[320];
    char shown[201];
    explain(row, status, culprit, in_code, why, sizeof why);
    (void)oteli_hide_in_setting(text, shown, sizeof shown);
    if (in_code) {
        free(setting->text);
        OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "%s=\"%s\" %s",
                         source == OTELI_FROM_CODE ? row->name - NAME_AT : row->default_name, shown,
                         why);
        return status;
    }
    const char *instead = setting->text != NULL ? setting->text : row->default_text;
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "%s=\"%s\" %s; %s%.200s", row->variable, shown, why,
                     instead != NULL ? "using " : "it counts as unset",
                     instead != NULL ? instead : "");
    return OTEL_OK;
}

/* Whether the caller's struct has a member, all of it. */
#define HAS_MEMBER(options, member) \
    ((options)->size >= offsetof(otel_sdk_options, member) + sizeof(options)->member)

bool oteli_config_ignores_environment(const otel_sdk_options *options)
{
    return options != NULL && HAS_MEMBER(options, ignore_environment) &&
           options->ignore_environment;
}

void oteli_config_put_over(otel_sdk_options *options, const otel_sdk_options *over)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct oteli_config_row *row = &oteli_config_rows[i];
        if (row->option_offset < 0)
            continue;
        void *to = (char *)options + row->option_offset;
        const void *from = (const char *)over + row->option_offset;
        if (!IS_TEXT_IN_CODE(row->type)) {
            if (*(const int64_t *)from != 0)
                *(int64_t *)to = *(const int64_t *)from;
        } else if (*(const char *const *)from != NULL) {
            *(const char **)to = *(const char *const *)from;
        }
    }
}

/* Options without a row of the table. A callback is taken only together with its state. */
static void take_rowless(struct oteli_config *config, const otel_sdk_options *options,
                         const otel_sdk_options *defaults)
{
    if (defaults != NULL && HAS_MEMBER(defaults, service_version)) {
        config->program.service_version = defaults->service_version;
        config->program.resource = defaults->resource;
        config->program.resource_count = defaults->resource_count;
        config->program.resource_schema_url = defaults->resource_schema_url;
    }
    if (options == NULL)
        return;
    if (HAS_MEMBER(options, service_version))
        config->service_version = options->service_version;
    if (HAS_MEMBER(options, tail_keep_state)) {
        config->tail_keep = options->tail_keep;
        config->tail_keep_state = options->tail_keep_state;
    }
    if (HAS_MEMBER(options, resource_schema_url))
        config->resource_schema_url = options->resource_schema_url;
}

static otel_status from_default(const struct oteli_config_row *row, struct oteli_setting *setting)
{
    *setting = (struct oteli_setting){.number = OTELI_UNLIMITED};
    if (row->default_text == NULL)
        return OTEL_OK;
    otel_slice culprit;
    return oteli_setting_parse(row, oteli_slice_of(row->default_text), true, setting, &culprit);
}

/* The row, before this one in the table, that counts where this one is unset; ROW_COUNT: none. */
static size_t general_of(size_t index)
{
    if (index == ROW_exporter_otlp_traces_endpoint)
        return ROW_exporter_otlp_endpoint;
    for (size_t i = 0; i < sizeof fallbacks / sizeof fallbacks[0]; i++)
        if (fallbacks[i].specific == index)
            return fallbacks[i].general;
    return ROW_COUNT;
}

/* Whether a source may give a value that code has not given. The argument of a sampler is for the
 * one that the same source names, and a specific default of the program yields to a general setting
 * of anyone else. */
static bool may_give(const struct loader *loader, size_t index, enum oteli_config_source source)
{
    const struct oteli_config *config = loader->config;
    if (source == OTELI_FROM_ENVIRONMENT && !loader->read_environment)
        return false;
    if (index == ROW_traces_sampler_arg)
        return is_from(config, ROW_traces_sampler, source);
    const size_t general = source == OTELI_FROM_PROGRAM ? general_of(index) : ROW_COUNT;
    return general == ROW_COUNT || is_from(config, general, OTELI_FROM_DEFAULT) ||
           is_from(config, general, OTELI_FROM_PROGRAM);
}

static otel_status load_row(struct loader *loader, size_t index)
{
    static const uint8_t sources[] = {OTELI_FROM_CODE, OTELI_FROM_ENVIRONMENT, OTELI_FROM_PROGRAM};
    const struct oteli_config_row *row = &oteli_config_rows[index];
    struct oteli_setting setting = {.text = NULL};
    bool given = false;
    otel_status status = OTEL_OK;
    uint8_t *source = &loader->config->givers[index].source;
    for (size_t i = 0; i < sizeof sources && status == OTEL_OK && !given; i++) {
        const bool in_code = sources[i] != OTELI_FROM_ENVIRONMENT;
        const otel_sdk_options *options =
            sources[i] == OTELI_FROM_CODE ? loader->options : loader->defaults;
        char digits[32];
        if (sources[i] != OTELI_FROM_CODE && !may_give(loader, index, sources[i]))
            continue;
        status = take_text(
            row, in_code ? text_in_code(options, row, digits) : oteli_env_get(row->variable),
            sources[i], &setting, &given);
        *source = given ? sources[i] : OTELI_FROM_DEFAULT;
    }
    if (status == OTEL_OK && !given)
        status = from_default(row, &setting);
    if (status != OTEL_OK)
        return status;

    void *field = field_of(loader->config, row);
    if (is_text(row))
        *(char **)field = setting.text;
    else if (row->type == OTELI_TYPE_BOOL)
        *(bool *)field = setting.boolean;
    else
        *(int64_t *)field = setting.number;
    loader->given[index] = given;
    return OTEL_OK;
}

static void apply_log_level(const char *word)
{
    static const char *const words[] = {
        [OTEL_LOG_NONE] = "none", [OTEL_LOG_ERROR] = "error", [OTEL_LOG_WARN] = "warn",
        [OTEL_LOG_INFO] = "info", [OTEL_LOG_DEBUG] = "debug",
    };
    for (int level = OTEL_LOG_NONE; level <= OTEL_LOG_DEBUG; level++) {
        if (strcmp(word, words[level]) == 0)
            oteli_log_set_level((otel_log_level)level);
    }
}

static otel_status apply_fallbacks(struct loader *loader)
{
    for (size_t i = 0; i < sizeof fallbacks / sizeof fallbacks[0]; i++) {
        if (loader->given[fallbacks[i].specific])
            continue;
        const struct oteli_config_row *specific = &oteli_config_rows[fallbacks[i].specific];
        loader->config->givers[fallbacks[i].specific] =
            (struct oteli_config_giver){OTELI_FROM_GENERAL, (uint8_t)fallbacks[i].general};
        void *to = field_of(loader->config, specific);
        const void *from = field_of(loader->config, &oteli_config_rows[fallbacks[i].general]);
        if (specific->type == OTELI_TYPE_BOOL) {
            *(bool *)to = *(const bool *)from;
            continue;
        }
        if (!is_text(specific)) {
            *(int64_t *)to = *(const int64_t *)from;
            continue;
        }
        const char *text = *(char *const *)from;
        if (text == NULL)
            continue;
        *(char **)to = oteli_slice_copy(oteli_slice_of(text));
        if (*(char **)to == NULL)
            return OTEL_ERROR_NO_MEMORY;
    }
    return OTEL_OK;
}

/* Where no number of spans is given, bytes limit the queue before the number does. A batch must fit
 * in the queue; and while one is being exported, the queue has to hold what ends meanwhile. */
static void settle_queue(struct oteli_config *config)
{
    if (config->bsp_max_queue_size == OTELI_UNLIMITED)
        config->bsp_max_queue_size = config->queue_max_bytes / OTELI_LEAST_SPAN_BYTES;
    const int64_t queue = config->bsp_max_queue_size;
    const int64_t batch = config->bsp_max_export_batch_size;
    const bool is_of_environment =
        is_from(config, ROW_bsp_max_queue_size, OTELI_FROM_ENVIRONMENT) ||
        is_from(config, ROW_bsp_max_export_batch_size, OTELI_FROM_ENVIRONMENT);
    const char *variables =
        is_of_environment ? " (OTEL_BSP_MAX_EXPORT_BATCH_SIZE, OTEL_BSP_MAX_QUEUE_SIZE)" : "";
    if (batch > queue) {
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                         "a batch of %" PRId64 " spans does not fit in a queue of %" PRId64
                         "; using batches of %" PRId64 "%s",
                         batch, queue, queue, variables);
        config->bsp_max_export_batch_size = queue;
    } else if (batch > queue / 2) {
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                         "batches of %" PRId64 " spans fill more than half of a queue of %" PRId64
                         "; under load, spans will be dropped while a batch is exported%s",
                         batch, queue, variables);
    }
}

/* The argument of a ratio sampler becomes the ratio in force: 1.0 where it is none, or bad. */
static otel_status settle_ratio(struct oteli_config *config)
{
    char *const given = config->traces_sampler_arg;
    double ratio;
    if (strstr(config->traces_sampler, "traceidratio") == NULL ||
        (given != NULL && oteli_parse_ratio(given, &ratio)))
        return OTEL_OK;
    if (given != NULL) {
        const bool in_code = oteli_config_is_in_code(config, &config->traces_sampler_arg);
        char shown[201];
        OTELI_LOG_ALWAYS(
            in_code ? OTEL_LOG_ERROR : OTEL_LOG_WARN, "%s=\"%s\" is no number from 0 to 1%s",
            oteli_config_called(config, &config->traces_sampler_arg),
            oteli_hide_in_setting(given, shown, sizeof shown), in_code ? "" : "; using 1.0");
        if (in_code)
            return OTEL_ERROR_INVALID_ARGUMENT;
        config->givers[ROW_traces_sampler_arg].source = OTELI_FROM_DEFAULT;
    }
    free(given);
    config->traces_sampler_arg = oteli_slice_copy(oteli_slice_of("1.0"));
    return config->traces_sampler_arg != NULL ? OTEL_OK : OTEL_ERROR_NO_MEMORY;
}

static otel_status load(struct oteli_config *config, const otel_sdk_options *options,
                        bool read_environment, bool sets_log_level)
{
    memset(config, 0, sizeof *config);
    const otel_sdk_options *defaults =
        options != NULL && HAS_MEMBER(options, defaults) ? options->defaults : NULL;
    if ((options != NULL && options->size == 0) || (defaults != NULL && defaults->size == 0)) {
        OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "otel_sdk_options%s: its size is 0, and has to be sizeof",
                         options->size == 0 ? "" : ".defaults");
        return OTEL_ERROR_INVALID_ARGUMENT;
    }
    struct loader loader = {
        .config = config,
        .options = options,
        .defaults = defaults,
        .read_environment = read_environment && !oteli_config_ignores_environment(options),
    };
    otel_status status = OTEL_OK;
    for (size_t i = 0; i < ROW_COUNT && status == OTEL_OK; i++) {
        status = load_row(&loader, i);
        if (i == ROW_log_level && status == OTEL_OK && sets_log_level)
            apply_log_level(config->log_level);
    }
    if (status == OTEL_OK)
        status = apply_fallbacks(&loader);
    if (status == OTEL_OK)
        status = settle_ratio(config);
    if (status != OTEL_OK) {
        oteli_config_fini(config);
        return status;
    }
    settle_queue(config);
    take_rowless(config, options, defaults);
    return OTEL_OK;
}

otel_status oteli_config_load(struct oteli_config *config, const otel_sdk_options *options,
                              bool read_environment)
{
    return load(config, options, read_environment, true);
}

otel_status oteli_config_look(struct oteli_config *config)
{
    return load(config, NULL, true, false);
}

void oteli_config_fini(struct oteli_config *config)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (is_text(&oteli_config_rows[i]))
            free(*(char **)field_of(config, &oteli_config_rows[i]));
    }
    memset(config, 0, sizeof *config);
}

void oteli_config_tell(const struct oteli_config *config, oteli_config_teller *tell,
                       const void *state)
{
    static const char *const from[] = {[OTELI_FROM_CODE] = "code",
                                       [OTELI_FROM_ENVIRONMENT] = "environment",
                                       [OTELI_FROM_PROGRAM] = PROGRAM,
                                       [OTELI_FROM_GENERAL] = NULL};
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct oteli_config_row *row = &oteli_config_rows[i];
        const char *giver = from[config->givers[i].source];
        char shown[256];
        const char *value =
            giver != NULL ? oteli_config_show(config, row, shown, sizeof shown) : NULL;
        if (value != NULL)
            tell(state, row->variable, value, giver);
    }
}

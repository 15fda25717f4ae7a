/* SPDX-License-Identifier: Apache-2.0 */
/* common/config/configuration.h - every setting of otel-c, from one table.
 *
 * common/config/config_table.h has one row a variable. From it come the fields of oteli_config,
 * their defaults, the parser, the range checks, the way from otel_sdk_options, and
 * docs/CONFIGURATION.md. Code beats environment beats the program's defaults
 * (otel_sdk_options.defaults) beat those of the table.
 *
 * Threads:  oteli_config_load runs in otel_start, on the caller's thread. Parts that need
 *           a few variables at another time ask oteli_config_look. The result is immutable.
 * Errors:   a bad value in the environment is one warning that names the variable, the
 *           value and what is used instead; then it counts as unset. A bad value in the
 *           options is an error, and is logged as one.
 * Source:   OpenTelemetry specification, configuration/common.md (types, empty is unset)
 *           and configuration/sdk-environment-variables.md. */
#ifndef OTELI_CONFIGURATION_H
#define OTELI_CONFIGURATION_H

#include "common/base/internal_api.h"
#include "common/config/config_table.h"
#include <otel/sdk.h>

/* Numbers are held as they are used: milliseconds, counts, bytes. A timeout or a length
 * without limit is OTELI_UNLIMITED. Texts are copies, NULL where unset.
 *
 * Settings for spans or traces already have the value of the general setting where they
 * are unset themselves: read span_attribute_count_limit, exporter_otlp_traces_timeout and
 * their like, never the general ones. Only the two OTLP endpoints stay apart, because
 * they are used differently. */
#define OTELI_UNLIMITED INT64_MAX

enum oteli_setting_type {
    OTELI_TYPE_STRING,
    OTELI_TYPE_BOOL,     /* "true" in any case is true, everything else is false */
    OTELI_TYPE_COUNT,    /* an integer within [min, max] */
    OTELI_TYPE_DURATION, /* milliseconds, 0 or more */
    OTELI_TYPE_TIMEOUT,  /* milliseconds, 0 means no limit */
    OTELI_TYPE_ENUM,     /* one word of a list, any case; kept in lower case */
    OTELI_TYPE_LIST      /* words of a list, comma separated; kept in lower case, each once */
};

#define OTELI_FIELD_OTELI_TYPE_STRING(name) char *name;
#define OTELI_FIELD_OTELI_TYPE_BOOL(name) bool name;
#define OTELI_FIELD_OTELI_TYPE_COUNT(name) int64_t name;
#define OTELI_FIELD_OTELI_TYPE_DURATION(name) int64_t name;
#define OTELI_FIELD_OTELI_TYPE_TIMEOUT(name) int64_t name;
#define OTELI_FIELD_OTELI_TYPE_ENUM(name) char *name;
#define OTELI_FIELD_OTELI_TYPE_LIST(name) char *name;

/* Where a value comes from. */
enum oteli_config_source {
    OTELI_FROM_DEFAULT,
    OTELI_FROM_CODE,        /* the options */
    OTELI_FROM_ENVIRONMENT, /* the variable of its row */
    OTELI_FROM_PROGRAM,     /* the defaults of the options */
    OTELI_FROM_GENERAL      /* unset: it is the value of another row, wherever that is from */
};
struct oteli_config_giver {
    uint8_t source;  /* enum oteli_config_source */
    uint8_t general; /* OTELI_FROM_GENERAL: that row */
};

#define OTELI_ROW(...) +1
enum { OTELI_CONFIG_ROWS = 0 OTELI_CONFIG_TABLE(OTELI_ROW) };
#undef OTELI_ROW

struct oteli_config {
#define OTELI_ROW(name, variable, type, default_text, min, max, words, option, doc) \
    OTELI_FIELD_##type(name)
    OTELI_CONFIG_TABLE(OTELI_ROW)
#undef OTELI_ROW

    /* Of the options only; NULL where they have none. */
    bool (*tail_keep)(void *state, const otel_tail *tail);
    void *tail_keep_state;

    /* Of the options, and of their defaults; borrowed: there while the SDK starts. */
    const char *service_version;
    const char *resource_schema_url;
    struct {
        const char *service_version;
        const otel_attribute *resource;
        size_t resource_count;
        const char *resource_schema_url;
    } program;

    /* Where each row's value comes from. */
    struct oteli_config_giver givers[OTELI_CONFIG_ROWS];
};

/* Fill in `config` from options (may be NULL), and from the environment when
 * `read_environment` and the options do not forbid it, and from the defaults, and set the
 * level of the log. Free it with oteli_config_fini; after an error there is nothing to free.
 * OTEL_ERROR_INVALID_ARGUMENT, OTEL_ERROR_UNSUPPORTED: what the options ask for cannot be,
 * or is not in this build. OTEL_ERROR_NO_MEMORY. */
OTELI_INTERNAL_API otel_status oteli_config_load(struct oteli_config *config,
                                                 const otel_sdk_options *options,
                                                 bool read_environment);
/* The environment alone, for a part that reads settings beside a running SDK: the level of the log
 * stays as the SDK has set it. */
OTELI_INTERNAL_API otel_status oteli_config_look(struct oteli_config *config);
OTELI_INTERNAL_API void oteli_config_fini(struct oteli_config *config);

/* Whether the options (or NULL) say that no variable counts. */
OTELI_INTERNAL_API bool oteli_config_ignores_environment(const otel_sdk_options *options);

/* Put what `over` has for settings, as far as it is set, over what `options` have. */
OTELI_INTERNAL_API void oteli_config_put_over(otel_sdk_options *options,
                                              const otel_sdk_options *over);

/* For messages about the value of a field of `config`: where it comes from, as "default", "code",
 * "default of the program" or a variable; and by which name its giver knows it: a variable, or
 * "otel_sdk_options." and a member, which is static text as well. */
OTELI_INTERNAL_API const char *oteli_config_origin(const struct oteli_config *config,
                                                   const void *field);
OTELI_INTERNAL_API const char *oteli_config_called(const struct oteli_config *config,
                                                   const void *field);

/* Whether the value of a field is from code, be it as a default; and whether as a default. */
OTELI_INTERNAL_API bool oteli_config_is_in_code(const struct oteli_config *config,
                                                const void *field);

OTELI_INTERNAL_API bool oteli_config_is_program_default(const struct oteli_config *config,
                                                        const void *field);

/* The rows as data, for the generator of docs/CONFIGURATION.md and for tools. */
struct oteli_config_row {
    const char *name;
    const char *variable;
    enum oteli_setting_type type;
    const char *default_text; /* as it would stand in the environment; NULL: unset */
    int64_t min, max;         /* OTELI_TYPE_COUNT, _DURATION, _TIMEOUT */
    const char *words;        /* space separated; OTELI_TYPE_ENUM and _LIST. A word may have
                                 a mark in front: common/config/config_table.h */
    size_t offset;            /* in struct oteli_config */
    ptrdiff_t option_offset;  /* in otel_sdk_options; -1: environment only */
    const char *doc;
    const char *default_name; /* of its option in the program's defaults, for messages */
};
extern const struct oteli_config_row oteli_config_rows[];
extern const size_t oteli_config_row_count;

/* Tell each setting that is not the default, without secrets; `from`: "environment", "code" or
 * "default of the program". */
typedef void oteli_config_teller(const void *state, const char *variable, const char *value,
                                 const char *from);
OTELI_INTERNAL_API void oteli_config_tell(const struct oteli_config *config,
                                          oteli_config_teller *tell, const void *state);

/* Read a decimal number from 0 to 1, perhaps with an exponent, whatever the locale; blanks
 * around it are fine and anything else is not. false: it is no such number. */
OTELI_INTERNAL_API bool oteli_parse_ratio(const char *text, double *ratio);

/* common/config/env.c: the only caller of getenv. NULL when unset or empty, and in a program with
 * more rights than its caller (setuid and its like). For what has no row, and only while the SDK
 * starts or an exporter is made; copy what it returns. */
OTELI_INTERNAL_API const char *oteli_env_get(const char *variable);

/* All of it, as `name=value` texts ended by NULL; and that which may be believed, which is nothing
 * in a program with more rights than its caller. */
const char *const *oteli_env_all(void);
const char *const *oteli_env_trusted(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/config_origins_test.c - specification of oteli_config_load_with_origins: where every
 * setting comes from. What they are is in config_test.c. */
#include "common/config.h"

#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <stdlib.h>
#include <string.h>

static void say_nothing(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    (void)message;
}

static int begin(void **state)
{
    (void)state;
    for (size_t i = 0; i < oteli_config_row_count; i++)
        unsetenv(oteli_config_rows[i].variable);
    otel_log_set_handler(say_nothing, NULL);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    oteli_leaks_check();
    otel_log_set_handler(NULL, NULL);
    return 0;
}

/* The row of a variable, and where its value came from. */
static const struct oteli_config_origin *origin_of(const struct oteli_config_origin *origins,
                                                   const char *variable)
{
    for (size_t i = 0; i < oteli_config_row_count; i++) {
        if (strcmp(oteli_config_rows[i].variable, variable) == 0)
            return &origins[i];
    }
    fail_msg("no row has %s", variable);
    return NULL;
}

AROUND_EACH(begin, end);

TEST(every_value_knows_where_it_comes_from)
{
    setenv("OTEL_TRACES_SAMPLER", "always_off", 1);
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "700", 1);
    setenv("OTEL_BSP_SCHEDULE_DELAY", "soon", 1);
    setenv("OTEL_TRACES_EXPORTER", "otlp,pigeon", 1);
    struct oteli_config_origin *origins = calloc(oteli_config_row_count, sizeof *origins);
    const otel_sdk_options *options = OTEL_SDK_OPTIONS(.service_name = "shop");
    struct oteli_config config;

    assert_int_equal(oteli_config_load_with_origins(&config, options, true, origins), OTEL_OK);

    assert_int_equal(origin_of(origins, "OTEL_SERVICE_NAME")->source, OTELI_FROM_CODE);
    assert_int_equal(origin_of(origins, "OTEL_TRACES_SAMPLER")->source, OTELI_FROM_ENVIRONMENT);
    assert_int_equal(origin_of(origins, "OTEL_PROPAGATORS")->source, OTELI_FROM_DEFAULT);
    assert_string_equal(origin_of(origins, "OTEL_PROPAGATORS")->problem, "");
    const struct oteli_config_origin *timeout =
        origin_of(origins, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT");
    assert_int_equal(timeout->source, OTELI_FROM_GENERAL);
    assert_string_equal(oteli_config_rows[timeout->general].variable, "OTEL_EXPORTER_OTLP_TIMEOUT");
    assert_int_equal(origins[timeout->general].source, OTELI_FROM_ENVIRONMENT);
    const struct oteli_config_origin *delay = origin_of(origins, "OTEL_BSP_SCHEDULE_DELAY");
    assert_int_equal(delay->source, OTELI_FROM_DEFAULT);
    assert_string_equal(delay->problem, "is not a whole number of milliseconds from 0 to "
                                        "2147483647; using 5000");
    const struct oteli_config_origin *exporter = origin_of(origins, "OTEL_TRACES_EXPORTER");
    assert_int_equal(exporter->source, OTELI_FROM_ENVIRONMENT);
    assert_string_equal(
        exporter->problem,
        "has the unknown word \"pigeon\" (it may be otlp, console, otlp/stdout, none); "
        "using otlp");
    oteli_config_fini(&config);
    free(origins);
}

TEST(a_ratio_that_is_none_counts_as_the_whole)
{
    static const char *const bad[] = {"10", "1/10", "10%", "-1"};
    struct oteli_config_origin *origins = calloc(oteli_config_row_count, sizeof *origins);
    setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio", 1);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv("OTEL_TRACES_SAMPLER_ARG", bad[i], 1);
        struct oteli_config config;

        assert_int_equal(oteli_config_load_with_origins(&config, NULL, true, origins), OTEL_OK);

        const struct oteli_config_origin *origin = origin_of(origins, "OTEL_TRACES_SAMPLER_ARG");
        assert_string_equal(origin->problem, "is no number from 0 to 1; using 1.0");
        assert_int_equal(origin->source, OTELI_FROM_DEFAULT);
        assert_string_equal(config.traces_sampler_arg, "1.0");
        oteli_config_fini(&config);
    }
    free(origins);
}

TEST(an_argument_that_no_ratio_reads_is_not_looked_at)
{
    struct oteli_config_origin *origins = calloc(oteli_config_row_count, sizeof *origins);
    struct oteli_config config;
    setenv("OTEL_TRACES_SAMPLER", "parentbased_jaeger_remote", 1);
    setenv("OTEL_TRACES_SAMPLER_ARG", "endpoint=http://localhost", 1);

    assert_int_equal(oteli_config_load_with_origins(&config, NULL, true, origins), OTEL_OK);

    assert_string_equal(origin_of(origins, "OTEL_TRACES_SAMPLER_ARG")->problem, "");
    assert_string_equal(config.traces_sampler_arg, "endpoint=http://localhost");
    oteli_config_fini(&config);
    free(origins);
}

TEST(what_does_not_fit_together_is_said_of_the_value_that_gives_way)
{
    setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100", 1);
    setenv("OTEL_TRACES_SAMPLER_ARG", "0.5", 1);
    struct oteli_config_origin *origins = calloc(oteli_config_row_count, sizeof *origins);
    struct oteli_config config;

    assert_int_equal(oteli_config_load_with_origins(&config, NULL, true, origins), OTEL_OK);

    assert_string_equal(origin_of(origins, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE")->problem,
                        "is 512 and does not fit in the queue; using 100");
    assert_string_equal(origin_of(origins, "OTEL_TRACES_SAMPLER_ARG")->problem,
                        "is for the sampler that OTEL_TRACES_SAMPLER names, and that names none; "
                        "it counts as unset");
    assert_int_equal(origin_of(origins, "OTEL_TRACES_SAMPLER_ARG")->source, OTELI_FROM_DEFAULT);
    oteli_config_fini(&config);
    free(origins);
}

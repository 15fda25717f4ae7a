/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/tail_test.c - specification of sdk/tail.h: which traces are kept, and where the
 * rules come from. */
#include "sdk/tail.h"
#include "tests/support/unit.h"

#include <stdlib.h>

enum { MS = 1000000 };

static int begin(void **state)
{
    (void)state;
    unsetenv("OTEL_C_TAIL_KEEP_SLOWER_THAN");
    unsetenv("OTEL_C_TAIL_KEEP_ERRORS");
    unsetenv("OTEL_C_HELD_MAX_BYTES");
    return 0;
}

static unsigned asked;

static bool ask(void *answer, const otel_tail *tail)
{
    (void)tail;
    asked++;
    return *(const bool *)answer;
}

static bool yes = true;
static bool no = false;

AROUND_EACH(begin, NULL);

TEST_WITH(NULL, NULL, the_verdict)
{
    const int64_t none = OTELI_UNLIMITED;
    const struct {
        int64_t slower_than_ms;
        bool errors;
        bool *answer; /* of the program; NULL: it is not asked */
        uint64_t duration_ns;
        bool has_error;
        bool is_kept;
        unsigned asked;
    } rows[] = {
        /* slower than */
        {100, false, NULL, 100 * MS - 1, false, false, 0},
        {100, false, NULL, 100 * MS, false, true, 0},
        {100, false, NULL, 99 * MS, true, false, 0},
        {0, false, NULL, 0, false, true, 0},
        {INT32_MAX, false, NULL, 1000 * MS, false, false, 0},
        {INT32_MAX, false, NULL, UINT64_MAX, false, true, 0},
        /* errors */
        {none, true, NULL, 1, false, false, 0},
        {none, true, NULL, 1, true, true, 0},
        {none, true, NULL, UINT64_MAX, false, false, 0},
        /* one reason is enough */
        {100, true, NULL, 99 * MS, false, false, 0},
        {100, true, NULL, 99 * MS, true, true, 0},
        {100, true, NULL, 101 * MS, false, true, 0},
        /* the program alone decides */
        {none, false, &yes, 1, false, true, 1},
        {none, false, &no, 1, true, false, 1},
        /* or when nothing else says yes */
        {100, true, &no, 101 * MS, false, true, 0},
        {100, true, &no, 1, true, true, 0},
        {100, true, &yes, 1, false, true, 1},
        {100, true, &no, 1, false, false, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct oteli_config config = {.tail_keep_slower_than = rows[i].slower_than_ms,
                                            .tail_keep_errors = rows[i].errors,
                                            .tail_keep = rows[i].answer != NULL ? ask : NULL,
                                            .tail_keep_state = rows[i].answer};
        const otel_tail tail = {.size = sizeof tail,
                                .duration_ns = rows[i].duration_ns,
                                .has_error = rows[i].has_error};
        struct oteli_tail_rules rules;
        asked = 0;
        oteli_tail_init(&rules, &config);

        assert_true(oteli_tail_has_rules(&rules));
        if (oteli_tail_keeps(&rules, &tail) != rows[i].is_kept || asked != rows[i].asked)
            fail_msg("row %zu", i);
    }
}

TEST_WITH(NULL, NULL, without_a_rule_there_is_nothing_to_decide)
{
    const struct oteli_config config = {.tail_keep_slower_than = OTELI_UNLIMITED};
    struct oteli_tail_rules rules;

    oteli_tail_init(&rules, &config);

    assert_false(oteli_tail_has_rules(&rules));
}

TEST(a_word_in_code_beats_the_environment)
{
    static const struct {
        const char *code;
        const char *environment;
        bool value;
    } rows[] = {
        {NULL, NULL, false},      {NULL, "true", true},       {"", "true", true},
        {"false", "true", false}, {" False ", "true", false}, {"TRUE", "false", true},
        {"true", NULL, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct oteli_config config;
        unsetenv("OTEL_C_TAIL_KEEP_ERRORS");
        if (rows[i].environment != NULL)
            setenv("OTEL_C_TAIL_KEEP_ERRORS", rows[i].environment, 1);

        assert_int_equal(
            oteli_config_load(&config, OTEL_SDK_OPTIONS(.tail_keep_errors = rows[i].code), true),
            OTEL_OK);

        assert_int_equal(config.tail_keep_errors, rows[i].value);
        oteli_config_fini(&config);
    }
}

static bool keep_all(void *state, const otel_tail *tail)
{
    (void)state;
    (void)tail;
    return true;
}

TEST(rules_come_from_options_and_environment)
{
    int mine;
    setenv("OTEL_C_TAIL_KEEP_SLOWER_THAN", "250", 1);
    setenv("OTEL_C_HELD_MAX_BYTES", "1000", 1);
    struct oteli_config config;

    assert_int_equal(
        oteli_config_load(&config,
                          OTEL_SDK_OPTIONS(.tail_keep = keep_all, .tail_keep_state = &mine,
                                           .held_max_bytes = 2000),
                          true),
        OTEL_OK);

    assert_int_equal(config.tail_keep_slower_than, 250);
    assert_int_equal(config.held_max_bytes, 2000);
    assert_true(config.tail_keep == keep_all);
    assert_ptr_equal(config.tail_keep_state, &mine);
    oteli_config_fini(&config);
}

TEST(a_function_without_its_state_is_none)
{
    static const size_t sizes[] = {
        offsetof(otel_sdk_options, tail_keep),
        offsetof(otel_sdk_options, tail_keep_state),
        offsetof(otel_sdk_options, tail_keep_state) + 4,
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const otel_sdk_options options = {.size = sizes[i], .tail_keep = keep_all};
        struct oteli_config config;

        assert_int_equal(oteli_config_load(&config, &options, true), OTEL_OK);

        assert_true(config.tail_keep == NULL);
        oteli_config_fini(&config);
    }
}

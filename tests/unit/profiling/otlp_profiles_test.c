/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as an OTLP request: what a decoder that is not ours finds in it, that it is encoded as
 * protobuf-c encodes the same, and that it keeps the rules of OTLP. */
#include "common/text/utf8.h"
#include "profiling/otlp/otlp_profiles.h"
#include "tests/support/dice.h"
#include "tests/support/leaks.h"
#include "tests/support/profile_double.h"
#include "tests/support/profile_rules.h"
#include "tests/support/unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST(name) \
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__##name

static const struct oteli_otlp_origin origin = {
    .resource = "\x10\x01", /* dropped_attributes_count: 1 */
    .resource_length = 2,
    .schema_url = "https://opentelemetry.io/schemas/1.44.0",
    .ids = {{1}, {2}},
};

static const struct oteli_otlp_origin nobody = {.resource = "", .ids = {{1}, {2}}};
static const struct oteli_otlp_origin *from = &origin;

static struct profile_double made;
static profiles_request *request;

static void forget_request(void)
{
    if (request != NULL)
        REQUEST(free_unpacked)(request, NULL);
    request = NULL;
}

static int end(void **state)
{
    (void)state;
    forget_request();
    return 0;
}

/* Encode, decode with protobuf-c, and look whether it would have written the same. */
static void send_through(const otel_profile *profile)
{
    char broken[PROFILE_RULES_SIZE];
    size_t length = 0;
    forget_request();
    uint8_t *bytes = oteli_otlp_profiles_encode(profile, from, &length);
    assert_non_null(bytes);
    request = REQUEST(unpack)(NULL, length, bytes);
    assert_non_null(request);
    assert_int_equal(REQUEST(get_packed_size)(request), length);
    uint8_t *again = malloc(length);
    assert_non_null(again);
    REQUEST(pack)(request, again);
    assert_memory_equal(again, bytes, length);
    free(again);
    free(bytes);
    (void)profile_rules_broken(request, broken);
    assert_string_equal(broken, "");
}

static const profiles_profile *profile_of(size_t index)
{
    assert_int_equal(request->n_resource_profiles, 1);
    assert_int_equal(request->resource_profiles[0]->n_scope_profiles, 1);
    assert_int_equal(request->resource_profiles[0]->scope_profiles[0]->n_profiles,
                     OTELI_OTLP_PROFILES);
    return request->resource_profiles[0]->scope_profiles[0]->profiles[index];
}

/* --- Samples as text --- */

static char text[4096];

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - used, format, arguments);
    va_end(arguments);
}

static const char *string_of(int32_t index)
{
    return request->dictionary->string_table[index];
}

/* " key=value key=value", in the order in which they stand. */
static void say_attributes(size_t count, const int32_t *indices)
{
    for (size_t i = 0; i < count; i++) {
        const Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit *attribute =
            request->dictionary->attribute_table[indices[i]];
        say(" %s=", string_of(attribute->key_strindex));
        if (attribute->value->value_case ==
            OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE)
            say("%" PRId64, attribute->value->int_value);
        else
            say("%s", attribute->value->string_value);
    }
}

/* What is beside the labels is looked at by integration.otlp_profiles. The samples of the profile
 * that counts them. */
static const char *samples_text(void)
{
    const profiles_profile *profile = profile_of(1);
    text[0] = '\0';
    for (size_t i = 0; i < profile->n_samples; i++) {
        say("%" PRId64 " |", profile->samples[i]->values[0]);
        say_attributes(profile->samples[i]->n_attribute_indices,
                       profile->samples[i]->attribute_indices);
        say("\n");
    }
    return text;
}

AROUND_EACH(NULL, end);

/* The rules are looked after: each of these numbers of the request leads nowhere, or to nothing
 * new. */
TEST(a_request_that_breaks_a_rule_is_noticed)
{
    profile_double_init(&made);
    send_through(&made.profile);
    profiles_dictionary *dictionary = request->dictionary;
    profiles_sample *sample = profile_of(0)->samples[0];
    const struct {
        int32_t *number;
        int32_t wrong;
        const char *rule;
    } ways[] = {
        {&sample->stack_index, 1000, "Sample.stack_index.range"},
        {&sample->link_index, -1, "Sample.link_index.range"},
        {&sample->attribute_indices[0], 1000, "Sample.attribute_indices.range"},
        {&sample->attribute_indices[0], sample->attribute_indices[1],
         "Sample.attribute_indices.key"},
        {&profile_of(0)->sample_type->type_strindex, 1000, "ValueType.type_strindex.range"},
        {&profile_of(1)->period_type->unit_strindex, -7, "ValueType.unit_strindex.range"},
        {&dictionary->stack_table[1]->location_indices[0], 1000, "Stack.location_indices.range"},
        {&dictionary->location_table[1]->mapping_index, 3, "Location.mapping_index.range"},
        {&dictionary->location_table[1]->lines[0]->function_index, 3, "Line.function_index.range"},
        {&dictionary->mapping_table[1]->attribute_indices[0], 0, "Mapping.build_id"},
        {&dictionary->function_table[1]->name_strindex, 0, "Function.nameless"},
        {&dictionary->attribute_table[1]->key_strindex, 0, "KeyValueAndUnit.empty"},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char broken[PROFILE_RULES_SIZE];
        const int32_t right = *ways[i].number;
        *ways[i].number = ways[i].wrong;
        (void)profile_rules_broken(request, broken);
        if (strstr(broken, ways[i].rule) == NULL)
            fail_msg("%s: broken are: %s", ways[i].rule, broken);
        *ways[i].number = right;
    }
}

/* --- Threads and labels --- */

TEST(what_is_known_of_the_thread_goes_before_labels_that_say_the_same)
{
    static const struct {
        const char *labels[6];
        const char *name;
        const char *text;
    } table[] = {
        {{"query", "", "thread.id", "17", "thread.name", "mine"},
         "worker",
         "1 | thread.id=4711 thread.name=worker query=\n"},
        {{"query", "A", "thread.id", "17", "thread.name", "mine"},
         "",
         "1 | thread.id=4711 query=A thread.name=mine\n"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        profile_double_begin(&made);
        made.threads[0].name = profile_double_text(&made, table[i].name);
        const uint32_t stack = profile_double_stack(&made, NULL, 0);
        const uint32_t set = profile_double_labels(&made, table[i].labels, 3);
        profile_double_sample(
            &made, (struct oteli_profile_sample){.stack = stack, .label_set = set, .count = 1});

        send_through(&made.profile);

        assert_string_equal(samples_text(), table[i].text);
    }
}

/* --- Any profile --- */

/* As the builder of profiles makes texts: valid UTF-8, and not long. */
static const char *good_text(struct dice *dice)
{
    const char *rolled = dice_text(dice);
    const size_t length = strlen(rolled);
    return length < sizeof made.strings[0] && oteli_utf8_is_valid(rolled, length) ? rolled
                                                                                  : "mended";
}

static void roll_tables(struct dice *dice)
{
    static const char *const keys[] = {"http.route", "key", "thread.id", "thread.name"};
    for (size_t i = 1; i < 6; i++) {
        made.mappings[i] = (struct oteli_profile_mapping){
            .start = 0x1000 * dice_below(dice, 4),
            .limit = 0x10000,
            .path = profile_double_text(&made, good_text(dice)),
            .identity.build_id_length = (uint8_t)dice_below(dice, 21),
            .identity.has_htlhash = dice_one_in(dice, 2)};
    }
    made.profile.mappings.count = 6;
    for (size_t i = 0; i < 20; i++)
        made.locations[i] = (struct oteli_profile_location){
            dice_below(dice, 6), dice_below(dice, 8),
            dice_one_in(dice, 2) ? profile_double_text(&made, good_text(dice)) : 0};
    made.profile.locations.count = 20;
    for (size_t i = 0; i < 8; i++) {
        uint32_t locations[8];
        const uint32_t count = dice_below(dice, 8);
        for (size_t j = 0; j < count; j++)
            locations[j] = dice_below(dice, 20);
        profile_double_stack(&made, locations, count);
        profile_double_link(&made, (uint8_t)(1 + dice_below(dice, 3)), (uint8_t)(1 + i % 3),
                            (uint8_t)dice_below(dice, 2));
    }
    for (size_t i = 0; i < 4; i++) {
        const char *texts[8];
        const uint32_t count = dice_below(dice, 5);
        for (size_t j = 0; j < count; j++) {
            texts[2 * j] = keys[j];
            texts[2 * j + 1] = good_text(dice);
        }
        profile_double_labels(&made, texts, count);
        made.threads[i] = (struct oteli_profile_thread){(pid_t)(1 + i), 0};
        if (dice_one_in(dice, 2))
            made.threads[i].name = profile_double_text(&made, good_text(dice));
    }
    made.profile.threads.count = 4;
}

TEST(any_profile_keeps_the_rules_and_its_sums)
{
    struct dice dice;
    dice_init(&dice, 7);
    for (size_t round = 0; round < 100; round++) {
        uint64_t sums[OTELI_OTLP_PROFILES] = {0};
        profile_double_begin(&made);
        roll_tables(&dice);
        for (size_t i = 1 + dice_below(&dice, 60); i != 0; i--) {
            const struct oteli_profile_sample sample = {.stack = dice_below(&dice, 8),
                                                        .link = dice_below(&dice, 9),
                                                        .label_set = dice_below(&dice, 5),
                                                        .thread = dice_below(&dice, 4),
                                                        .count = 1 + dice_below(&dice, 1000000)};
            profile_double_sample(&made, sample);
            sums[1] += sample.count;
        }
        sums[0] = sums[1] * PROFILE_DOUBLE_PERIOD_NS;

        from = round % 2 != 0 ? &nobody : &origin;
        send_through(&made.profile);

        for (size_t kind = 0; kind < OTELI_OTLP_PROFILES; kind++) {
            const profiles_profile *profile = profile_of(kind);
            for (size_t i = 0; i < profile->n_samples; i++)
                sums[kind] -= (uint64_t)profile->samples[i]->values[0];
            assert_int_equal(sums[kind], 0);
        }
        dice_forget(&dice);
    }
    dice_fini(&dice);
}

TEST(without_memory_there_is_no_request)
{
    profile_double_init(&made);
    for (size_t nth = 1;; nth++) {
        size_t length;
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        uint8_t *bytes = oteli_otlp_profiles_encode(&made.profile, &origin, &length);
        const bool has_failed = oteli_leaks_failed();

        assert_int_equal(bytes != NULL, !has_failed);

        free(bytes);
        oteli_leaks_check();
        if (!has_failed) {
            assert_true(nth > 5);
            return;
        }
    }
}

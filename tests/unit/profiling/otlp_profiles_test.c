/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as an OTLP request: what a decoder that is not ours finds in it, that it is encoded as
 * protobuf-c encodes the same, and that it keeps the rules of OTLP. */
#include "profiling/otlp_profiles.h"
#include "profiling/profile_builder.h"
#include "tests/support/dice.h"
#include "tests/support/leaks.h"
#include "tests/support/profile_double.h"
#include "tests/support/profile_rules.h"
#include "tests/support/resolved_sample.h"
#include "tests/support/unit.h"

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

/* Encode, decode with protobuf-c, and look whether it would have written the same. */
static profiles_request *send_through(struct oteli_otlp_profiles *encoder,
                                      const otel_profile *profile)
{
    size_t length = 0;
    const uint8_t *bytes = oteli_otlp_profiles_encode(encoder, profile, &origin, &length);
    assert_non_null(bytes);
    profiles_request *request = REQUEST(unpack)(NULL, length, bytes);
    assert_non_null(request);
    assert_int_equal(REQUEST(get_packed_size)(request), length);
    uint8_t *again = malloc(length);
    assert_non_null(again);
    REQUEST(pack)(request, again);
    assert_memory_equal(again, bytes, length);
    free(again);
    return request;
}

static void assert_keeps_the_rules(const profiles_request *request)
{
    char broken[PROFILE_RULES_SIZE];
    if (profile_rules_broken(request, broken) != 0)
        fail_msg("%s", broken);
}

static const profiles_profile *profile_of(const profiles_request *request, size_t index)
{
    assert_int_equal(request->n_resource_profiles, 1);
    assert_int_equal(request->resource_profiles[0]->n_scope_profiles, 1);
    assert_int_equal(request->resource_profiles[0]->scope_profiles[0]->n_profiles,
                     OTELI_OTLP_PROFILES);
    return request->resource_profiles[0]->scope_profiles[0]->profiles[index];
}

static const char *string_of(const profiles_request *request, int32_t index)
{
    assert_in_range(index, 0, request->dictionary->n_string_table - 1);
    return request->dictionary->string_table[index];
}

/* "key=value key=value", in the order in which they stand. */
static const char *attributes_of(const profiles_request *request, size_t count,
                                 const int32_t *indices)
{
    static char text[1024];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit *attribute =
            request->dictionary->attribute_table[indices[i]];
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)attribute->value->int_value);
        const bool is_number = attribute->value->value_case ==
                               OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=%s", i != 0 ? " " : "",
                                 string_of(request, attribute->key_strindex),
                                 is_number ? number : attribute->value->string_value);
    }
    return text;
}

static const char *attributes_of_sample(const profiles_request *request,
                                        const profiles_sample *sample)
{
    return attributes_of(request, sample->n_attribute_indices, sample->attribute_indices);
}

/* The addresses of a sample's stack, leaf first. */
static const char *stack_of(const profiles_request *request, const profiles_sample *sample)
{
    static char text[256];
    const Opentelemetry__Proto__Profiles__V1development__Stack *stack =
        request->dictionary->stack_table[sample->stack_index];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < stack->n_location_indices; i++)
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%s%llx", i != 0 ? " " : "",
            (unsigned long long)request->dictionary->location_table[stack->location_indices[i]]
                ->address);
    return text;
}

/* --- What it says --- */

TEST(a_request_is_encoded_as_protobuf_c_would_and_keeps_the_rules)
{
    struct profile_double made;
    struct oteli_otlp_profiles encoder = {.sums = NULL};
    profile_double_init(&made);

    profiles_request *request = send_through(&encoder, &made.profile);

    assert_keeps_the_rules(request);
    REQUEST(free_unpacked)(request, NULL);
    oteli_otlp_profiles_fini(&encoder);
}

TEST(what_is_profiled_says_the_resource_and_the_scope)
{
    struct profile_double made;
    struct oteli_otlp_profiles encoder = {.sums = NULL};
    profile_double_init(&made);

    profiles_request *request = send_through(&encoder, &made.profile);

    assert_int_equal(request->resource_profiles[0]->resource->dropped_attributes_count, 1);
    assert_string_equal(request->resource_profiles[0]->schema_url, origin.schema_url);
    assert_string_equal(request->resource_profiles[0]->scope_profiles[0]->scope->name, "otel-c");
    assert_string_equal(request->resource_profiles[0]->scope_profiles[0]->scope->version,
                        OTEL_VERSION);
    REQUEST(free_unpacked)(request, NULL);
    oteli_otlp_profiles_fini(&encoder);
}

TEST(the_first_profile_is_of_time_and_the_second_of_samples)
{
    static const char *const types[][2] = {{"cpu", "nanoseconds"}, {"samples", "count"}};
    struct profile_double made;
    struct oteli_otlp_profiles encoder = {.sums = NULL};
    profile_double_init(&made);

    profiles_request *request = send_through(&encoder, &made.profile);

    for (size_t i = 0; i < OTELI_OTLP_PROFILES; i++) {
        const profiles_profile *profile = profile_of(request, i);
        assert_string_equal(string_of(request, profile->sample_type->type_strindex), types[i][0]);
        assert_string_equal(string_of(request, profile->sample_type->unit_strindex), types[i][1]);
        assert_string_equal(string_of(request, profile->period_type->type_strindex), "cpu");
        assert_string_equal(string_of(request, profile->period_type->unit_strindex), "nanoseconds");
        assert_int_equal(profile->period, PROFILE_DOUBLE_PERIOD_NS);
        assert_int_equal(profile->time_unix_nano, made.profile.start_unix_ns);
        assert_int_equal(profile->duration_nano, made.profile.duration_ns);
        assert_int_equal(profile->profile_id.len, 16);
        assert_memory_equal(profile->profile_id.data, origin.ids[i], 16);
        assert_int_equal(profile->n_samples, 5);
    }
    REQUEST(free_unpacked)(request, NULL);
    oteli_otlp_profiles_fini(&encoder);
}

TEST(each_sample_has_its_stack_span_labels_and_thread)
{
    static const struct {
        const char *stack;
        const char *attributes;
        uint8_t trace; /* 0: no span */
        int count;
    } expected[] = {
        {"7f0000001000 401234 401000", "thread.id=4711 thread.name=worker http.route=/find query=A",
         0x11, 70},
        {"7f0000001000 401234 401000", "http.route=/find query=A thread.id=4712", 0x11, 5},
        {"401234 401000", "thread.id=4712 http.route=/sell", 0x12, 20},
        {"401234 401000", "thread.id=4712", 0, 4},
        {"600010 1234 401000", "thread.id=4711 thread.name=worker", 0, 1},
    };
    struct profile_double made;
    struct oteli_otlp_profiles encoder = {.sums = NULL};
    profile_double_init(&made);

    profiles_request *request = send_through(&encoder, &made.profile);

    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const profiles_sample *sample = profile_of(request, 1)->samples[i];
        const profiles_sample *time = profile_of(request, 0)->samples[i];
        assert_string_equal(stack_of(request, sample), expected[i].stack);
        assert_string_equal(attributes_of_sample(request, sample), expected[i].attributes);
        assert_int_equal(sample->n_values, 1);
        assert_int_equal(sample->values[0], expected[i].count);
        assert_int_equal(time->values[0], expected[i].count * PROFILE_DOUBLE_PERIOD_NS);
        assert_int_equal(sample->link_index != 0, expected[i].trace != 0);
        if (expected[i].trace == 0)
            continue;
        const Opentelemetry__Proto__Profiles__V1development__Link *link =
            request->dictionary->link_table[sample->link_index];
        assert_int_equal(link->trace_id.data[15], expected[i].trace);
        assert_int_equal(link->span_id.data[7], expected[i].trace + 0x10);
    }
    REQUEST(free_unpacked)(request, NULL);
    oteli_otlp_profiles_fini(&encoder);
}

TEST(mappings_say_their_file_and_build_and_locations_are_native)
{
    struct profile_double made;
    struct oteli_otlp_profiles encoder = {.sums = NULL};
    profile_double_init(&made);

    profiles_request *request = send_through(&encoder, &made.profile);

    const profiles_dictionary *dictionary = request->dictionary;
    assert_int_equal(dictionary->n_mapping_table, 3); /* one says no build, and is not there */
    for (size_t i = 1; i < 3; i++) {
        const Opentelemetry__Proto__Profiles__V1development__Mapping *mapping =
            dictionary->mapping_table[i];
        const bool is_shop = mapping->memory_start == 0x400000;
        assert_string_equal(string_of(request, mapping->filename_strindex),
                            is_shop ? "/usr/bin/shop" : "/lib/libfast.so");
        assert_int_equal(mapping->file_offset, is_shop ? 0x1000 : 0);
        assert_string_equal(
            attributes_of(request, mapping->n_attribute_indices, mapping->attribute_indices),
            is_shop ? "process.executable.build_id.gnu=b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1"
                    : "process.executable.build_id.htlhash=a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5");
    }
    for (size_t i = 1; i < dictionary->n_location_table; i++) {
        const Opentelemetry__Proto__Profiles__V1development__Location *location =
            dictionary->location_table[i];
        assert_string_equal(
            attributes_of(request, location->n_attribute_indices, location->attribute_indices),
            "profile.frame.type=native");
        assert_int_equal(location->mapping_index == 0,
                         location->address == 0x600010 || location->address == 0x1234);
    }
    REQUEST(free_unpacked)(request, NULL);
    oteli_otlp_profiles_fini(&encoder);
}

/* The name of a location's function; "": it has none. */
static const char *name_of(const profiles_request *request, size_t location)
{
    const Opentelemetry__Proto__Profiles__V1development__Location *row =
        request->dictionary->location_table[location];
    if (row->n_lines == 0)
        return "";
    assert_int_equal(row->n_lines, 1);
    assert_int_equal(row->lines[0]->line, 0);
    const Opentelemetry__Proto__Profiles__V1development__Function *function =
        request->dictionary->function_table[row->lines[0]->function_index];
    assert_int_equal(function->name_strindex, function->system_name_strindex);
    assert_int_equal(function->filename_strindex, 0);
    assert_int_equal(function->start_line, 0);
    return string_of(request, function->name_strindex);
}

TEST(functions_have_names_where_the_profile_has)
{
    struct profile_double made;
    struct oteli_otlp_profiles encoder = {.sums = NULL};
    profile_double_init(&made);

    profiles_request *request = send_through(&encoder, &made.profile);

    const profiles_dictionary *dictionary = request->dictionary;
    assert_int_equal(dictionary->n_function_table, 3);
    for (size_t i = 1; i < dictionary->n_location_table; i++) {
        const uint64_t address = dictionary->location_table[i]->address;
        const bool is_sort = address == 0x401234 || address == 0x7f0000001000;
        assert_string_equal(name_of(request, i), is_sort               ? "sort"
                                                 : address == 0x401000 ? "main"
                                                                       : "");
    }
    REQUEST(free_unpacked)(request, NULL);
    oteli_otlp_profiles_fini(&encoder);
}

TEST(a_profile_without_names_has_no_functions)
{
    struct profile_double made;
    struct oteli_otlp_profiles encoder = {.sums = NULL};
    profile_double_init(&made);
    for (size_t i = 0; i < made.profile.location_count; i++)
        made.locations[i].name = 0;

    profiles_request *request = send_through(&encoder, &made.profile);

    assert_keeps_the_rules(request);
    assert_int_equal(request->dictionary->n_function_table, 1);
    for (size_t i = 0; i < request->dictionary->n_location_table; i++)
        assert_int_equal(request->dictionary->location_table[i]->n_lines, 0);
    REQUEST(free_unpacked)(request, NULL);
    oteli_otlp_profiles_fini(&encoder);
}

/* --- What is equal, and what is bad --- */

TEST(samples_that_otlp_cannot_tell_apart_are_added_up)
{
    struct profile_double made;
    struct oteli_otlp_profiles encoder = {.sums = NULL};
    profile_double_begin(&made);
    made.locations[0].address = 0x1234;
    made.profile.location_count = 1;
    const uint32_t stack = profile_double_stack(&made, (const uint32_t[]){0}, 1);
    const uint32_t rooted = profile_double_link(&made, 0x11, 0x21, 0x20);
    const uint32_t same = profile_double_link(&made, 0x11, 0x21, 0);
    profile_double_sample(
        &made, (struct oteli_profile_sample){.stack = stack, .link = rooted, .count = 3});
    profile_double_sample(&made,
                          (struct oteli_profile_sample){.stack = stack, .link = same, .count = 4});

    profiles_request *request = send_through(&encoder, &made.profile);

    assert_keeps_the_rules(request);
    assert_int_equal(request->dictionary->n_link_table, 2);
    assert_int_equal(profile_of(request, 1)->n_samples, 1);
    assert_int_equal(profile_of(request, 1)->samples[0]->values[0], 7);
    REQUEST(free_unpacked)(request, NULL);
    oteli_otlp_profiles_fini(&encoder);
}

TEST(a_label_cannot_speak_for_the_thread_nor_without_a_key)
{
    static const char *const labels[] = {"",     "nothing", "thread.id", "17", "thread.name",
                                         "mine", "query",   ""};
    struct profile_double made;
    struct oteli_otlp_profiles encoder = {.sums = NULL};
    profile_double_begin(&made);
    made.threads[0].name = profile_double_text(&made, "worker");
    const uint32_t stack = profile_double_stack(&made, NULL, 0);
    const uint32_t set = profile_double_labels(&made, labels, 4);
    profile_double_sample(
        &made, (struct oteli_profile_sample){.stack = stack, .label_set = set, .count = 1});

    profiles_request *request = send_through(&encoder, &made.profile);

    const profiles_sample *sample = profile_of(request, 0)->samples[0];
    assert_keeps_the_rules(request);
    assert_string_equal(attributes_of_sample(request, sample),
                        "thread.id=4711 thread.name=worker query=");
    assert_int_equal(sample->stack_index, 0);
    REQUEST(free_unpacked)(request, NULL);
    oteli_otlp_profiles_fini(&encoder);
}

TEST(texts_that_are_no_utf8_are_mended_and_still_there_once)
{
    static const char *const labels[] = {"a\xff", "one", "a\xfe", "two"};
    struct profile_double made;
    struct oteli_otlp_profiles encoder = {.sums = NULL};
    profile_double_begin(&made);
    const uint32_t stack = profile_double_stack(&made, NULL, 0);
    const uint32_t set = profile_double_labels(&made, labels, 2);
    profile_double_sample(
        &made, (struct oteli_profile_sample){.stack = stack, .label_set = set, .count = 1});

    profiles_request *request = send_through(&encoder, &made.profile);

    assert_keeps_the_rules(request);
    assert_string_equal(attributes_of_sample(request, profile_of(request, 0)->samples[0]),
                        "thread.id=4711 a\xef\xbf\xbd=one");
    REQUEST(free_unpacked)(request, NULL);
    oteli_otlp_profiles_fini(&encoder);
}

/* --- Any profile --- */

static void roll_tables(struct profile_double *made, struct dice *dice)
{
    for (size_t i = 1; i < 6; i++) {
        made->mappings[i] =
            (struct oteli_profile_mapping){.start = 0x1000 * dice_below(dice, 4),
                                           .limit = 0x10000,
                                           .path = profile_double_text(made, dice_text(dice)),
                                           .build_id_length = (uint8_t)dice_below(dice, 21),
                                           .has_htlhash = dice_one_in(dice, 2)};
    }
    made->profile.mapping_count = 6;
    for (size_t i = 0; i < 20; i++)
        made->locations[i] = (struct oteli_profile_location){
            dice_below(dice, 6), dice_below(dice, 8),
            dice_one_in(dice, 2) ? profile_double_text(made, dice_text(dice)) : 0};
    made->profile.location_count = 20;
    for (size_t i = 0; i < 8; i++) {
        uint32_t locations[8];
        const uint32_t count = dice_below(dice, 8);
        for (size_t j = 0; j < count; j++)
            locations[j] = dice_below(dice, 20);
        profile_double_stack(made, locations, count);
        profile_double_link(made, (uint8_t)(1 + dice_below(dice, 3)), (uint8_t)(1 + i % 3),
                            (uint8_t)dice_below(dice, 2));
    }
    for (size_t i = 0; i < 4; i++) {
        const char *texts[8];
        const uint32_t count = dice_below(dice, 5);
        for (size_t j = 0; j < (size_t)2 * count; j++)
            texts[j] = dice_text(dice);
        profile_double_labels(made, texts, count);
        made->threads[i] = (struct oteli_profile_thread){(pid_t)(1 + i), 0};
        if (dice_one_in(dice, 2))
            made->threads[i].name = profile_double_text(made, dice_text(dice));
    }
    made->profile.thread_count = 4;
}

TEST(any_profile_keeps_the_rules_and_its_sums)
{
    struct dice dice;
    struct oteli_otlp_profiles encoder = {.sums = NULL};
    dice_init(&dice, 7);
    for (size_t round = 0; round < 100; round++) {
        struct profile_double made;
        uint64_t sums[OTELI_OTLP_PROFILES] = {0};
        profile_double_begin(&made);
        roll_tables(&made, &dice);
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

        profiles_request *request = send_through(&encoder, &made.profile);

        assert_keeps_the_rules(request);
        for (size_t kind = 0; kind < OTELI_OTLP_PROFILES; kind++) {
            const profiles_profile *profile = profile_of(request, kind);
            for (size_t i = 0; i < profile->n_samples; i++)
                sums[kind] -= (uint64_t)profile->samples[i]->values[0];
            assert_int_equal(sums[kind], 0);
        }
        REQUEST(free_unpacked)(request, NULL);
        dice_forget(&dice);
    }
    dice_fini(&dice);
    oteli_otlp_profiles_fini(&encoder);
}

/* Code of this program and of the C library, and a frame that is in no file. */
static void add_samples(struct oteli_profile_builder *builder)
{
    static const char nowhere[1];
    for (uint64_t i = 0; i < 20; i++) {
        struct made_sample made;
        made_sample_begin(&made);
        made_sample_frame(&made, (const void *)(i % 2 != 0 ? (uintptr_t)strlen : (uintptr_t)abort));
        made_sample_frame(&made, (const char *)(uintptr_t)add_samples + i);
        if (i % 3 == 0)
            made_sample_frame(&made, nowhere);
        if (i % 4 != 0) {
            made_sample_label(&made, "query", i % 8 < 4 ? "A" : "B", NULL);
            made_sample_span(&made, 1 + i % 3, 1 + i % 5, i % 2);
        }
        assert_true(oteli_profile_builder_add(builder, &made.resolved));
    }
}

TEST(what_the_builder_makes_keeps_the_rules)
{
    struct oteli_otlp_profiles encoder = {.sums = NULL};
    struct oteli_profile_builder *builder =
        oteli_profile_builder_new(PROFILE_DOUBLE_PERIOD_NS, 4096);
    assert_non_null(builder);
    for (size_t round = 0; round < 2; round++) {
        int64_t samples = 0;
        add_samples(builder);
        const otel_profile *profile = oteli_profile_builder_finish(builder);
        assert_non_null(profile);

        profiles_request *request = send_through(&encoder, profile);

        assert_keeps_the_rules(request);
        assert_true(request->dictionary->n_mapping_table >= 3);
        for (size_t i = 0; i < profile_of(request, 1)->n_samples; i++)
            samples += profile_of(request, 1)->samples[i]->values[0];
        assert_int_equal(samples, 20);
        REQUEST(free_unpacked)(request, NULL);
    }
    oteli_profile_builder_free(builder);
    oteli_otlp_profiles_fini(&encoder);
}

TEST(an_encoder_that_has_been_used_encodes_like_a_new_one)
{
    struct profile_double large;
    struct profile_double small;
    struct oteli_otlp_profiles used = {.sums = NULL};
    struct oteli_otlp_profiles fresh = {.sums = NULL};
    size_t length;
    size_t fresh_length;
    profile_double_init(&large);
    profile_double_begin(&small);
    profile_double_stack(&small, NULL, 0);
    profile_double_sample(&small, (struct oteli_profile_sample){.count = 1});

    assert_non_null(oteli_otlp_profiles_encode(&used, &large.profile, &origin, &length));
    const uint8_t *bytes = oteli_otlp_profiles_encode(&used, &small.profile, &origin, &length);
    const uint8_t *others =
        oteli_otlp_profiles_encode(&fresh, &small.profile, &origin, &fresh_length);

    assert_int_equal(length, fresh_length);
    assert_memory_equal(bytes, others, length);
    oteli_otlp_profiles_fini(&used);
    oteli_otlp_profiles_fini(&fresh);
}

TEST(without_memory_there_is_no_request_and_with_it_again_there_is)
{
    struct profile_double made;
    profile_double_init(&made);
    for (size_t nth = 1;; nth++) {
        struct oteli_otlp_profiles encoder = {.sums = NULL};
        size_t length;
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        const bool is_done =
            oteli_otlp_profiles_encode(&encoder, &made.profile, &origin, &length) != NULL;
        const bool has_failed = oteli_leaks_failed();
        oteli_leaks_fail_at(0);

        assert_int_equal(is_done, !has_failed);
        assert_non_null(oteli_otlp_profiles_encode(&encoder, &made.profile, &origin, &length));

        oteli_otlp_profiles_fini(&encoder);
        oteli_leaks_check();
        if (!has_failed) {
            assert_true(nth > 5);
            return;
        }
    }
}

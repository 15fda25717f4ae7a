/* SPDX-License-Identifier: Apache-2.0 */
/* The checker of the rules for profiles: each of them can be broken, and is found. */
#include "profiling/otlp_profiles.h"
#include "tests/support/profile_double.h"
#include "tests/support/profile_rules.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST(name) \
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__##name

/* A request that keeps all rules, and is there to be spoilt. */
static profiles_request *request;

static profiles_request *good(void)
{
    static const struct oteli_otlp_origin origin = {.resource = "", .ids = {{1}, {2}}};
    struct profile_double made;
    struct oteli_otlp_profiles encoder = {.sums = NULL};
    size_t length;
    profile_double_init(&made);
    const uint8_t *bytes = oteli_otlp_profiles_encode(&encoder, &made.profile, &origin, &length);
    assert_non_null(bytes);
    profiles_request *decoded = REQUEST(unpack)(NULL, length, bytes);
    assert_non_null(decoded);
    oteli_otlp_profiles_fini(&encoder);
    return decoded;
}

static profiles_profile *profile(void)
{
    return request->resource_profiles[0]->scope_profiles[0]->profiles[0];
}

static profiles_dictionary *dictionary(void)
{
    return request->dictionary;
}

static void set_text(char **text, const char *to)
{
    free(*text);
    *text = strdup(to);
}

/* --- Ways to spoil it --- */

static void no_resource(void)
{
    request->n_resource_profiles = 0;
}

static void no_scope(void)
{
    request->resource_profiles[0]->n_scope_profiles = 0;
}

static void no_profile(void)
{
    request->resource_profiles[0]->scope_profiles[0]->n_profiles = 0;
}

static void stack_out_of_range(void)
{
    profile()->samples[0]->stack_index = (int32_t)dictionary()->n_stack_table;
}

static void negative_link(void)
{
    profile()->samples[0]->link_index = -1;
}

static void attribute_out_of_range(void)
{
    profile()->samples[0]->attribute_indices[0] = 1000;
}

static void attribute_twice(void)
{
    profiles_sample *sample = profile()->samples[0];
    sample->attribute_indices[0] = sample->attribute_indices[1];
}

static void type_out_of_range(void)
{
    profile()->sample_type->type_strindex = 1000;
}

static void period_unit_out_of_range(void)
{
    profile()->period_type->unit_strindex = -7;
}

static void no_value(void)
{
    profile()->samples[0]->n_values = 0;
}

static void two_values(void)
{
    profiles_sample *sample = profile()->samples[0];
    free(sample->values);
    sample->values = calloc(2, sizeof *sample->values);
    sample->n_values = 2;
}

static void add_times(profiles_sample *sample, size_t count, uint64_t time)
{
    sample->timestamps_unix_nano = calloc(count, sizeof *sample->timestamps_unix_nano);
    sample->n_timestamps_unix_nano = count;
    for (size_t i = 0; i < count; i++)
        sample->timestamps_unix_nano[i] = time;
}

static void another_shape(void)
{
    add_times(profile()->samples[1], 1, profile()->time_unix_nano);
}

static void other_lengths(void)
{
    add_times(profile()->samples[0], 2, profile()->time_unix_nano);
}

static void too_early(void)
{
    add_times(profile()->samples[0], 1, profile()->time_unix_nano - 1);
}

static void too_late(void)
{
    add_times(profile()->samples[0], 1, profile()->time_unix_nano + profile()->duration_nano);
}

static void same_sample(void)
{
    profiles_sample *one = profile()->samples[0];
    profiles_sample *other = profile()->samples[1];
    const int32_t first = one->attribute_indices[0];
    other->stack_index = one->stack_index;
    other->link_index = one->link_index;
    /* The same set in another order. */
    other->n_attribute_indices = 2;
    one->n_attribute_indices = 2;
    one->attribute_indices[0] = one->attribute_indices[1];
    one->attribute_indices[1] = first;
    other->attribute_indices[0] = one->attribute_indices[1];
    other->attribute_indices[1] = one->attribute_indices[0];
}

static void short_id(void)
{
    profile()->profile_id.len = 8;
}

static void zero_id(void)
{
    memset(profile()->profile_id.data, 0, profile()->profile_id.len);
}

static void first_string(void)
{
    set_text(&dictionary()->string_table[0], "x");
}

static void same_string(void)
{
    set_text(&dictionary()->string_table[2], dictionary()->string_table[1]);
}

static void bad_string(void)
{
    set_text(&dictionary()->string_table[1], "\xc0\x80");
}

static void first_mapping(void)
{
    dictionary()->mapping_table[0]->memory_limit = 1;
}

static void same_mapping(void)
{
    profiles_dictionary *all = dictionary();
    Opentelemetry__Proto__Profiles__V1development__Mapping *one = all->mapping_table[1];
    Opentelemetry__Proto__Profiles__V1development__Mapping *other = all->mapping_table[2];
    other->memory_start = one->memory_start;
    other->memory_limit = one->memory_limit;
    other->file_offset = one->file_offset;
    other->filename_strindex = one->filename_strindex;
    other->attribute_indices[0] = one->attribute_indices[0];
}

static void backward_mapping(void)
{
    dictionary()->mapping_table[1]->memory_limit = dictionary()->mapping_table[1]->memory_start;
}

static void mapping_of_no_build(void)
{
    dictionary()->mapping_table[1]->n_attribute_indices = 0;
}

static void file_out_of_range(void)
{
    dictionary()->mapping_table[1]->filename_strindex = 1000;
}

static void first_location(void)
{
    dictionary()->location_table[0]->address = 1;
}

static void same_location(void)
{
    dictionary()->location_table[1]->address = dictionary()->location_table[2]->address;
    dictionary()->location_table[1]->mapping_index = dictionary()->location_table[2]->mapping_index;
}

static void mapping_out_of_range(void)
{
    dictionary()->location_table[1]->mapping_index = 3;
}

static void function_out_of_range(void)
{
    dictionary()->location_table[1]->lines[0]->function_index =
        (int32_t)dictionary()->n_function_table;
}

static void no_function_is_called(void)
{
    for (size_t i = 0; i < dictionary()->n_location_table; i++)
        for (size_t j = 0; j < dictionary()->location_table[i]->n_lines; j++)
            dictionary()->location_table[i]->lines[j]->function_index = 1;
}

static void same_function(void)
{
    *dictionary()->function_table[2] = *dictionary()->function_table[1];
}

static void nameless_function(void)
{
    dictionary()->function_table[1]->name_strindex = 0;
    dictionary()->function_table[1]->system_name_strindex = 0;
}

static void name_out_of_range(void)
{
    dictionary()->function_table[1]->name_strindex = -1;
}

static void no_functions(void)
{
    dictionary()->n_function_table = 0;
}

static void long_first_link(void)
{
    ProtobufCBinaryData *id = &dictionary()->link_table[0]->trace_id;
    id->data = calloc(1, 16);
    id->len = 16;
}

static void short_link(void)
{
    dictionary()->link_table[1]->span_id.len = 7;
}

static void same_link(void)
{
    memcpy(dictionary()->link_table[2]->trace_id.data, dictionary()->link_table[1]->trace_id.data,
           16);
    memcpy(dictionary()->link_table[2]->span_id.data, dictionary()->link_table[1]->span_id.data, 8);
}

static void orphaned_link(void)
{
    for (size_t i = 0; i < 2; i++) {
        profiles_profile *one = request->resource_profiles[0]->scope_profiles[0]->profiles[i];
        for (size_t j = 0; j < one->n_samples; j++)
            one->samples[j]->link_index = 0;
    }
}

static void key_out_of_range(void)
{
    dictionary()->attribute_table[1]->key_strindex = 1000;
}

static void unit_out_of_range(void)
{
    dictionary()->attribute_table[1]->unit_strindex = -1;
}

static void attribute_without_a_key(void)
{
    dictionary()->attribute_table[1]->key_strindex = 0;
}

static void first_stack(void)
{
    Opentelemetry__Proto__Profiles__V1development__Stack *stack = dictionary()->stack_table[0];
    stack->location_indices = calloc(1, sizeof *stack->location_indices);
    stack->n_location_indices = 1;
    stack->location_indices[0] = 1;
}

static void location_out_of_range(void)
{
    dictionary()->stack_table[1]->location_indices[0] = 1000;
}

static void orphans(void)
{
    for (size_t i = 0; i < dictionary()->n_stack_table; i++)
        dictionary()->stack_table[i]->n_location_indices = 0;
}

static const struct {
    const char *rule;
    void (*spoil)(void);
} ways[] = {
    {"resource_profiles.empty", no_resource},
    {"scope_profiles.empty", no_scope},
    {"profiles.empty", no_profile},
    {"sample.stack_index.range", stack_out_of_range},
    {"sample.link_index.range", negative_link},
    {"sample.attribute_indices.range", attribute_out_of_range},
    {"sample.attribute_indices.key", attribute_twice},
    {"sample_type.type_strindex.range", type_out_of_range},
    {"period_type.unit_strindex.range", period_unit_out_of_range},
    {"sample.empty", no_value},
    {"sample.several_values", two_values},
    {"sample.shape", another_shape},
    {"sample.lengths", other_lengths},
    {"sample.timestamps", too_early},
    {"sample.timestamps", too_late},
    {"sample.identity", same_sample},
    {"profile_id", short_id},
    {"profile_id", zero_id},
    {"string_table.zero", first_string},
    {"string_table.duplicate", same_string},
    {"string_table.utf8", bad_string},
    {"mapping_table.zero", first_mapping},
    {"mapping_table.duplicate", same_mapping},
    {"mapping.limit", backward_mapping},
    {"mapping.build_id", mapping_of_no_build},
    {"mapping.filename_strindex.range", file_out_of_range},
    {"location_table.zero", first_location},
    {"location_table.duplicate", same_location},
    {"location.mapping_index.range", mapping_out_of_range},
    {"function_table.empty", no_functions},
    {"function_table.orphan", no_function_is_called},
    {"function_table.duplicate", same_function},
    {"function.nameless", nameless_function},
    {"function.name_strindex.range", name_out_of_range},
    {"line.function_index.range", function_out_of_range},
    {"link_table.zero", long_first_link},
    {"link_table.length", short_link},
    {"link_table.duplicate", same_link},
    {"link_table.orphan", orphaned_link},
    {"attribute.key_strindex.range", key_out_of_range},
    {"attribute.unit_strindex.range", unit_out_of_range},
    {"attribute.keyless", attribute_without_a_key},
    {"stack_table.zero", first_stack},
    {"stack.location_indices.range", location_out_of_range},
    {"location_table.orphan", orphans},
};

/* Lists are counted shorter to leave something out; decoding says how long they are. */
struct lengths {
    size_t resources, scopes, profiles, functions;
};

static struct lengths lengths_of(const profiles_request *whole)
{
    return (struct lengths){whole->n_resource_profiles,
                            whole->resource_profiles[0]->n_scope_profiles,
                            whole->resource_profiles[0]->scope_profiles[0]->n_profiles,
                            whole->dictionary->n_function_table};
}

static void restore(profiles_request *whole, struct lengths lengths)
{
    whole->n_resource_profiles = lengths.resources;
    whole->resource_profiles[0]->n_scope_profiles = lengths.scopes;
    whole->resource_profiles[0]->scope_profiles[0]->n_profiles = lengths.profiles;
    whole->dictionary->n_function_table = lengths.functions;
}

TEST(each_rule_is_found_broken)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char broken[PROFILE_RULES_SIZE];
        request = good();
        const struct lengths lengths = lengths_of(request);
        assert_int_equal(profile_rules_broken(request, broken), 0);

        ways[i].spoil();
        const size_t count = profile_rules_broken(request, broken);

        if (count == 0 || strstr(broken, ways[i].rule) == NULL)
            fail_msg("%s: %zu rules are broken: %s", ways[i].rule, count, broken);
        restore(request, lengths);
        REQUEST(free_unpacked)(request, NULL);
    }
}

TEST(a_request_without_a_dictionary_is_refused)
{
    char broken[PROFILE_RULES_SIZE];
    profiles_request empty =
        OPENTELEMETRY__PROTO__COLLECTOR__PROFILES__V1DEVELOPMENT__EXPORT_PROFILES_SERVICE_REQUEST__INIT;

    assert_int_equal(profile_rules_broken(&empty, broken), 1);
    assert_string_equal(broken, "dictionary.missing");
}

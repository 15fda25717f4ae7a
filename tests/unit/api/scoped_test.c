/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/scoped_test.c - specification of api/scoped.c where a context has many attributes. */
#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <otel/context.h>

#include <stdio.h>
#include <stdlib.h>

enum { MANY = 1000, DIFFERENT = 100 };

/* Three places with keys that come again and again; with memory for an index
 * of the keys and without. */
TEST(many_attributes_are_as_few)
{
    static char names[DIFFERENT][8];
    otel_attribute many[MANY];
    otel_attribute with[MANY];
    otel_attribute without[MANY];
    for (int i = 0; i < MANY; i++) {
        const int name = i * 7 % DIFFERENT;
        snprintf(names[name], sizeof names[name], "%d", name);
        many[i] = otel_attribute_of(i % 9 != 0 ? names[name] : NULL, otel_value_int(i));
    }
    otel_context_attributes places[4];
    otel_context context =
        otel_context_with_attributes((otel_context){.values = NULL}, many, 300, &places[0]);
    context = otel_context_with_attributes(context, many + 300, 610, &places[1]);
    context = otel_context_with_attributes(context, NULL, 0, &places[2]);
    context = otel_context_with_attributes(context, many + 910, 55, &places[3]);
    for (size_t nth = 1; nth <= 3; nth++) {
        assert_int_equal(otel_context_get_attributes(&context, with, MANY), DIFFERENT);
        oteli_leaks_fail_at(nth);
        assert_int_equal(otel_context_get_attributes(&context, without, MANY), DIFFERENT);
        assert_true(oteli_leaks_failed());
        for (size_t i = 0; i < DIFFERENT; i++) {
            assert_string_equal(with[i].key, without[i].key);
            assert_int_equal(with[i].value.as.integer, without[i].value.as.integer);
        }
    }
    assert_int_equal(with[0].value.as.integer, 910);
    assert_int_equal(otel_context_get_attributes(&context, with, 3), DIFFERENT);
}

/* Each key compared with each, this would not come back. */
TEST(very_many_attributes_come_to_an_end)
{
    enum { COUNT = 300000 };
    char(*names)[12] = malloc(COUNT * sizeof *names);
    otel_attribute *all = malloc(COUNT * sizeof *all);
    otel_context_attributes *places = malloc(COUNT / 1000 * sizeof *places);
    assert_true(names != NULL && all != NULL && places != NULL);
    otel_context context = {.values = NULL};
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "%07zu", i);
        all[i] = otel_attribute_of(names[i], otel_value_bool(true));
        if (i % 1000 == 999)
            context = otel_context_with_attributes(context, all + i - 999, 1000, &places[i / 1000]);
    }
    assert_int_equal(otel_context_get_attributes(&context, NULL, 0), COUNT);
    free(places);
    free(all);
    free(names);
}

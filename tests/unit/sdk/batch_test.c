/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/batch_test.c - specification of sdk/batch.h: the memory of a batch, and what
 * it says of its resource. The spans in it are view_test's. */
#include "sdk/batch.h"
#include "sdk/resource.h"

#include "tests/support/leaks.h"
#include "tests/support/unit.h"

TEST(a_new_batch_is_empty_and_knows_its_resource)
{
    static char bytes[] = "resource";
    const struct oteli_resource resource = {.otlp = bytes, .otlp_length = sizeof bytes};
    otel_batch batch;
    oteli_leaks_begin();

    assert_true(oteli_batch_init(&batch, 100, &resource));

    assert_int_equal(otel_batch_size(&batch), 0);
    assert_int_equal(batch.capacity, 100);
    assert_ptr_equal(otel_batch_resource(&batch).data, bytes);
    assert_int_equal(otel_batch_resource(&batch).length, sizeof bytes);
    assert_int_equal(otel_batch_resource_schema_url(&batch).length, 0);
    oteli_batch_fini(&batch);
    oteli_leaks_check();
}

TEST(without_memory_there_is_none)
{
    for (size_t nth = 1; nth <= 2; nth++) {
        otel_batch batch;
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);

        assert_false(oteli_batch_init(&batch, 100, NULL));

        oteli_batch_fini(&batch);
        oteli_leaks_check();
    }
}

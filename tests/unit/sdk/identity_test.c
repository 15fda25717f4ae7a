/* SPDX-License-Identifier: Apache-2.0 */
/* Who is being traced, for those who say it beside spans: the SDK's resource where there is an SDK,
 * and otherwise the environment's. */
#include "sdk/identity.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <stdlib.h>
#include <string.h>

/* The service's name, or "". */
static const char *service_of(const struct oteli_identity *identity)
{
    static char name[64];
    otel_slice rest = {identity->resource, identity->resource_length};
    otel_attribute_view attribute;
    name[0] = '\0';
    while (otel_attribute_next(&rest, OTEL_FIELD_RESOURCE_ATTRIBUTE, &attribute)) {
        const otel_slice value = attribute.value.slice;
        if (attribute.key.length != strlen("service.name") ||
            memcmp(attribute.key.data, "service.name", attribute.key.length) != 0 ||
            value.length >= sizeof name)
            continue;
        memcpy(name, value.data, value.length);
        name[value.length] = '\0';
    }
    return name;
}

static void start(const char *service)
{
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.service_name = service)), OTEL_OK);
}

/* The first of them: no SDK has been started. */
TEST(without_an_sdk_it_is_what_the_environment_says)
{
    struct oteli_identity identity = {0};
    setenv("OTEL_SERVICE_NAME", "by-environment", 1);

    assert_int_equal(oteli_identity_renew(&identity), OTEL_OK);

    assert_string_equal(service_of(&identity), "by-environment");
    assert_int_equal(identity.generation, 0);
    const char *first = identity.resource;
    setenv("OTEL_SERVICE_NAME", "later", 1);
    assert_int_equal(oteli_identity_renew(&identity), OTEL_OK);
    assert_ptr_equal(identity.resource, first);
    oteli_identity_fini(&identity);
}

TEST(it_follows_the_sdk_that_runs_and_stays_when_that_has_stopped)
{
    struct oteli_identity identity = {0};
    assert_int_equal(oteli_identity_renew(&identity), OTEL_OK);

    start("first");
    assert_int_equal(oteli_identity_renew(&identity), OTEL_OK);
    assert_string_equal(service_of(&identity), "first");
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    assert_int_equal(oteli_identity_renew(&identity), OTEL_OK);
    assert_string_equal(service_of(&identity), "first");
    start("second");
    assert_int_equal(oteli_identity_renew(&identity), OTEL_OK);
    assert_string_equal(service_of(&identity), "second");
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    oteli_identity_fini(&identity);
}

TEST(without_memory_it_is_as_it_was)
{
    struct oteli_identity identity = {0};
    start("first");
    assert_int_equal(oteli_identity_renew(&identity), OTEL_OK);
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    start("second");
    oteli_leaks_begin();
    oteli_leaks_fail_at(1);

    const otel_status status = oteli_identity_renew(&identity);

    assert_true(oteli_leaks_failed());
    oteli_leaks_fail_at(0);
    oteli_leaks_check();
    assert_int_equal(status, OTEL_ERROR_NO_MEMORY);
    assert_string_equal(service_of(&identity), "first");
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    oteli_identity_fini(&identity);
}

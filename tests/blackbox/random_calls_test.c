/* SPDX-License-Identifier: Apache-2.0 */
/* When the kernel is asked for random bytes: not for each decision of a sampler, and never so that
 * a program waits for them early in the boot. The getrandom below is that of the whole process. */
#include "blackbox.h"
#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

enum { SPANS = 10000 };

static unsigned calls;
static unsigned waits;

/* As early in the boot: there are no random bytes yet. */
ssize_t getrandom(void *buffer, size_t length, unsigned flags)
{
    (void)buffer;
    (void)length;
    calls++;
    waits += (flags & GRND_NONBLOCK) == 0;
    errno = EAGAIN;
    return -1;
}

static void intend_half(const void *state, const otel_sampling_query *query,
                        otel_sampling_intent *intent)
{
    (void)state;
    (void)query;
    intent->threshold = INT64_C(1) << 55;
    intent->threshold_is_reliable = false;
}

static void test_a_decision_asks_the_kernel_for_nothing(void **state)
{
    (void)state;
    otel_sampler sampler;
    assert_int_equal(otel_sampler_composite(OTEL_COMPOSABLE(.intend = intend_half), &sampler),
                     OTEL_OK);
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.sampler = &sampler)), OTEL_OK);
    otel_tracer *tracer = otel_tracer_get("random", NULL);
    otel_span_end(otel_span_enter(tracer, "first", NULL));
    const unsigned before = calls;
    unsigned sampled = 0;

    for (unsigned i = 0; i < SPANS; i++) {
        const otel_span span = otel_span_enter(tracer, "span", NULL);
        sampled += otel_span_is_recording(span);
        otel_span_end(span);
    }

    assert_int_equal(calls, before);
    assert_in_range(sampled, SPANS / 2 - 300, SPANS / 2 + 300); /* six sigma */
    assert_int_equal(otel_shutdown(5000), OTEL_OK);
}

static void test_nothing_waits_for_random_bytes(void **state)
{
    (void)state;
    assert_true(calls > 0);
    assert_int_equal(waits, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_decision_asks_the_kernel_for_nothing),
        cmocka_unit_test(test_nothing_waits_for_random_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

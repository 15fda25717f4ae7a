/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/random_test.c - specification of common/random.h. The kernel is played by a
 * getrandom of our own. */
#include "common/random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

#include <cmocka.h>

static struct {
    size_t at_most;      /* bytes a call; 0: refuse with ENOSYS */
    unsigned interrupts; /* so many calls first say EINTR */
    uint8_t byte;        /* what is given, counting up by `step` */
    uint8_t step;
    unsigned calls;
} kernel;

ssize_t getrandom(void *buffer, size_t length, unsigned flags)
{
    (void)flags;
    kernel.calls++;
    if (kernel.interrupts != 0) {
        kernel.interrupts--;
        errno = EINTR;
        return -1;
    }
    if (kernel.at_most == 0) {
        errno = ENOSYS;
        return -1;
    }
    const size_t given = length < kernel.at_most ? length : kernel.at_most;
    for (size_t i = 0; i < given; i++) {
        ((uint8_t *)buffer)[i] = kernel.byte;
        kernel.byte = (uint8_t)(kernel.byte + kernel.step);
    }
    return (ssize_t)given;
}

static int reset(void **state)
{
    (void)state;
    memset(&kernel, 0, sizeof kernel);
    kernel.at_most = 256;
    kernel.byte = 1;
    kernel.step = 1;
    return 0;
}

static void test_numbers_are_those_of_wyrand(void **state)
{
    (void)state;
    struct oteli_random random = {1, 3};
    static const uint64_t expected[] = {UINT64_C(0xe5cf47269a1c786d), UINT64_C(0x4e5a68c54e48d373),
                                        UINT64_C(0xd4b428bf3c880b3f), UINT64_C(0x2171c139a51f8566)};

    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_true(oteli_random_next(&random) == expected[i]);
}

static void test_an_id_is_never_zero(void **state)
{
    (void)state;
    /* One factor of the product is zero. */
    struct oteli_random random = {UINT64_C(0xa0761d6478bd642f) - 1, 1};
    struct oteli_random same = random;

    assert_true(oteli_random_next(&same) == 0);
    assert_true(oteli_random_id(&random) != 0);
}

static void test_the_whole_state_is_seeded_piece_by_piece(void **state)
{
    (void)state;
    kernel.at_most = 5;
    kernel.interrupts = 3;
    struct oteli_random random = {0, 0};
    errno = EPIPE;

    assert_true(oteli_random_seed(&random));

    for (size_t i = 0; i < sizeof random; i++)
        assert_int_equal(((const uint8_t *)&random)[i], i + 1);
    assert_int_equal(errno, EPIPE);
}

static void test_the_sequence_always_has_its_full_length(void **state)
{
    (void)state;
    kernel.byte = 0;
    kernel.step = 0;
    struct oteli_random random = {9, 9};

    assert_true(oteli_random_seed(&random));

    assert_int_equal(random.step % 2, 1);
}

static void test_without_the_kernel_two_generators_still_differ(void **state)
{
    (void)state;
    kernel.at_most = 0;
    struct oteli_random one = {0, 0};
    struct oteli_random other = {0, 0};
    errno = EPIPE;

    assert_false(oteli_random_seed(&one));
    assert_false(oteli_random_seed(&other));

    assert_memory_not_equal(&one, &other, sizeof one);
    assert_true(oteli_random_id(&one) != oteli_random_id(&other));
    assert_int_equal(errno, EPIPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_numbers_are_those_of_wyrand, reset),
        cmocka_unit_test_setup(test_an_id_is_never_zero, reset),
        cmocka_unit_test_setup(test_the_whole_state_is_seeded_piece_by_piece, reset),
        cmocka_unit_test_setup(test_the_sequence_always_has_its_full_length, reset),
        cmocka_unit_test_setup(test_without_the_kernel_two_generators_still_differ, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

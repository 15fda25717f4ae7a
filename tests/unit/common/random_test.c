/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/random_test.c - specification of common/base/random.h. The kernel is played by
 * a getrandom of our own. */
#include "common/base/random.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

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

AROUND_EACH(reset, NULL);

/* Computed with whole numbers elsewhere: both halves of state * (state ^ constant), folded. */
TEST(numbers_are_those_of_the_formula)
{
    struct oteli_random random = {1, 3};
    struct oteli_random pairs = random;
    struct oteli_random both = random;
    static const uint64_t expected[][2] = {
        {UINT64_C(0x9c0dfb4682d0a37f), UINT64_C(0x3416851be4e06fda)},
        {UINT64_C(0x511877bb64ed1e02), UINT64_C(0xdb2768f02288c3b8)},
        {UINT64_C(0x0622f43047099823), UINT64_C(0x82384cc1503117ab)},
        {UINT64_C(0xbb2d70a5292612d5), UINT64_C(0x29493096f5d96b8d)}};

    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        uint64_t second, third;
        assert_true(oteli_random_next(&random) == expected[i][0]);
        assert_true(oteli_random_pair(&pairs, &second) == expected[i][0]);
        assert_true(second == expected[i][1]);
        if (i % 2 != 0)
            continue;
        assert_true(oteli_random_pair_and_id(&both, &second, &third) == expected[i][0]);
        assert_true(second == expected[i][1] && third == expected[i + 1][0]);
    }
}

TEST(an_id_is_never_zero)
{
    /* A factor of the product is zero. */
    struct oteli_random random = {UINT64_MAX, 1};
    struct oteli_random same = random;

    assert_true(oteli_random_next(&same) == 0);
    same = random;
    assert_true(oteli_random_id(&random) != 0);
    uint64_t second;
    assert_true(oteli_random_pair(&same, &second) != 0); /* the first half of a trace id */
}

enum { DRAWS = 1 << 14 };

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * UINT64_C(0x7fb5d329728ea185);
    x = (x ^ x >> 27) * UINT64_C(0x81dadef4bc2dd44d);
    return x ^ x >> 33;
}

/* As the kernel would seed it: state and step are any numbers, not ones with a pattern. */
static struct oteli_random seeded(uint64_t number)
{
    return (struct oteli_random){mix(2 * number + 1), mix(2 * number + 2) | 1};
}

TEST(every_bit_of_a_pair_is_as_often_set_as_not)
{
    for (uint64_t number = 0; number < 8; number++) {
        struct oteli_random random = seeded(number);
        unsigned set[128] = {0};
        for (unsigned i = 0; i < DRAWS; i++) {
            uint64_t pair[2];
            pair[0] = oteli_random_pair(&random, &pair[1]);
            for (unsigned bit = 0; bit < 128; bit++)
                set[bit] += (unsigned)(pair[bit / 64] >> bit % 64 & 1);
        }
        for (unsigned bit = 0; bit < 128; bit++)
            assert_in_range(set[bit], DRAWS / 2 - 320, DRAWS / 2 + 320); /* five sigma */
    }
}

/* Of each pair of bits, one of each number, all four combinations come equally often. */
TEST(the_two_numbers_of_a_pair_have_nothing_to_do_with_each_other)
{
    struct oteli_random random = seeded(0);
    static unsigned equal[64][64];
    for (unsigned i = 0; i < DRAWS; i++) {
        uint64_t second;
        const uint64_t first = oteli_random_pair(&random, &second);
        for (unsigned a = 0; a < 64; a++)
            for (unsigned b = 0; b < 64; b++)
                equal[a][b] += (first >> a & 1) == (second >> b & 1);
    }
    for (unsigned a = 0; a < 64; a++)
        for (unsigned b = 0; b < 64; b++)
            assert_in_range(equal[a][b], DRAWS / 2 - 384, DRAWS / 2 + 384); /* six sigma */
}

TEST(the_whole_state_is_seeded_piece_by_piece)
{
    kernel.at_most = 5;
    kernel.interrupts = 3;
    struct oteli_random random = {0, 0};
    errno = EPIPE;

    assert_true(oteli_random_seed(&random));

    for (size_t i = 0; i < sizeof random; i++)
        assert_int_equal(((const uint8_t *)&random)[i], i + 1);
    assert_int_equal(errno, EPIPE);
}

TEST(the_sequence_always_has_its_full_length)
{
    kernel.byte = 0;
    kernel.step = 0;
    struct oteli_random random = {9, 9};

    assert_true(oteli_random_seed(&random));

    assert_int_equal(random.step % 2, 1);
}

TEST(without_the_kernel_two_generators_still_differ)
{
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

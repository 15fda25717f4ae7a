/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/property_test.c - always the same few of the random programs of
 * tests/stress/property.c: which spans belong to a trace, a stretch, a held root or a mount, and
 * what becomes of them on threads that come and go. What is wrong is said with its SEED, which
 * property_stress repeats. */
#include "tests/support/program.h"
#include "tests/support/unit.h"

enum { PROGRAMS = 500 };

TEST(what_comes_of_random_programs_is_what_a_model_says)
{
    static struct program program;
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++)
        program_try(&program, seed, false);
}

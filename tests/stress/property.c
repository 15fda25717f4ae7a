/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/property.c - random programs of enters, detached and finished spans, moves between
 * threads, stretches, mounts, held roots and threads that end: exactly the spans come that a model
 * says, each once, in the trees that it says, and every other one is counted for its reason.
 *
 *     property_stress [--long]    many of them; OTEL_TEST_LONG=1: more
 *     property_stress SEED        that program alone, printed; also SEED= in the environment */
#include "tests/support/oracle.h"
#include "tests/support/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROGRAMS = 400, LONG = 100 };

static struct program program;

int main(int argc, char **argv)
{
    const bool is_one = argc > 1 && argv[1][0] != '-';
    const char *given = is_one ? argv[1] : getenv("SEED");
    if (given != NULL) {
        program_try(&program, strtoull(given, NULL, 0), true);
        return 0;
    }
    const unsigned programs = PROGRAMS * stress_scale(argc, argv, LONG);
    const uint64_t seed = stress_seed();
    for (unsigned i = 0; i < programs; i++)
        program_try(&program, seed + i, false);
    printf("%u programs of SEED=%" PRIu64 " and on\n", programs, seed);
    return 0;
}

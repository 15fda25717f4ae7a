/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/property.c - random programs of enters, detached and finished spans, moves between
 * threads, stretches, mounts, held roots and threads that end: exactly the spans come that a model
 * says, each once, in the trees that it says, and every other one is counted for its reason.
 *
 *     property_stress [--long]    many of them; OTEL_TEST_LONG=1: more
 *     property_stress SEED        that program alone, printed; also SEED= in the environment */
#include "api/thread.h"
#include "sdk/engine.h"
#include "tests/support/oracle.h"
#include "tests/support/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROGRAMS = 400, LONG = 100 };

static struct program program;

/* What is open when the SDK stops is ended afterwards, and harms nobody. */
static void end_the_rest(void)
{
    for (int i = 0; i < program.span_count; i++)
        otel_span_end(program.spans[i].handle);
    const otel_stats stats = stress_stats();
    stress_check_sums(&stats, false);
}

static void try(uint64_t seed, bool print)
{
    otel_memory *memory = otel_memory_new();
    program_make(&program, seed);
    if (print)
        program_print(&program);
    program_run(&program, memory);
    program_check(&program, memory);
    STRESS_CHECK(stress_is_done(otel_shutdown(60000)));
    end_the_rest();
    otel_memory_free(memory);
    oteli_lifecycle_reset();
    oteli_api_reset();
}

int main(int argc, char **argv)
{
    const bool is_one = argc > 1 && argv[1][0] != '-';
    const char *given = is_one ? argv[1] : getenv("SEED");
    if (given != NULL) {
        try(strtoull(given, NULL, 0), true);
        return 0;
    }
    const unsigned programs = PROGRAMS * stress_scale(argc, argv, LONG);
    const uint64_t seed = stress_seed();
    for (unsigned i = 0; i < programs; i++)
        try(seed + i, false);
    printf("%u programs of SEED=%" PRIu64 " and on\n", programs, seed);
    return 0;
}

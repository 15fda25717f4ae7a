/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/profile_stale.c - what a trampoline leaves on the stack proves nothing: no sample of an
 * unlabelled function has a label, also where its frame covers what was a trampoline's and the
 * chain of frames is broken.
 *
 * The program is also made with trampolines that do not wipe their record. Then nearly all samples
 * have the wrong label, and it says so: `profile_stale_unwiped`, with that expected. */
#include "common/atomic.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"
#include "tests/support/profiled.h"
#include "tests/support/stale_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#ifdef PROFILE_STALE_UNWIPED
enum { IS_WIPED = 0 };
#else
enum { IS_WIPED = 1 };
#endif

enum { STEPS = 300000, SAMPLES = 500 };

static uint64_t counting; /* atomic: samples of the function that counts */
static uint64_t wrong;    /* of those, with a label */
static uint64_t applied;

static void take(void *state, const struct oteli_resolved *resolved)
{
    (void)state;
    if (!stale_is_counting(resolved->sample->frames[0]))
        return;
    wrong += resolved->found != OTELI_UNLABELLED || resolved->label_count != 0;
    oteli_store_release_64(&counting, oteli_load_relaxed_64(&counting) + 1);
}

static void *count_call(void *argument)
{
    applied++;
    return argument;
}

int main(int argc, char **argv)
{
    const uint64_t enough = (uint64_t)SAMPLES * stress_scale(argc, argv, 20);
    struct profiled profiled = {
        .source = profiled_source("perf"),
        .options = {.period_ns = 200000, .ring_bytes = 256 * 1024, .stack_bytes = 1024},
        .take = take,
    };
    if (!stale_is_possible()) {
        printf("there is no such function for this machine\n");
        return 0;
    }
    const int error = profiled_start(&profiled);
    if (error != 0) { /* the signal's handler scans nothing, so nothing can be wrong there */
        printf("the kernel refuses perf events here: %s\n", strerror(error));
        return 0;
    }
    const otel_profile_kv kv = {"query", "over"};
    uint64_t calls = 0;
    for (; oteli_load_acquire_64(&counting) < enough; calls++) {
        otel_profile_label label = otel_profile_label_acquire(&kv, 1);
        STRESS_CHECK(label.index != 0);
        stale_apply_and_count(label.trampoline, count_call, STEPS);
        otel_profile_label_release(&label);
    }
    profiled_stop(&profiled);
    printf("%" PRIu64 " samples, %" PRIu64 " with a label that was over\n", counting, wrong);
    STRESS_CHECK(applied == calls);
    if (IS_WIPED)
        STRESS_CHECK(wrong == 0);
    else
        STRESS_CHECK(wrong * 100 >= counting * 95);
    return 0;
}

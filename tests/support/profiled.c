/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/profiled.c - see profiled.h. */
#include "tests/support/profiled.h"
#include "common/atomic.h"
#include "profiling/missing_caller.h"
#include "profiling/perf_source.h"
#include "tests/support/oracle.h"

#include <string.h>
#include <unistd.h>

enum phase { STARTING, RUNNING, STOPPING };
enum { USUAL_DRAIN_US = 20000, NOBODY = 65534 };

const struct oteli_source *profiled_source(const char *name)
{
    if (strcmp(name, "perf") == 0)
        return &oteli_perf_source;
    if (strcmp(name, "perf-threads") == 0)
        return &oteli_perf_thread_source;
#ifndef OTELI_TSAN
    if (strcmp(name, "signal") == 0)
        return &oteli_signal_source;
#endif
    return NULL;
}

static void take(void *state, const struct oteli_sample *sample)
{
    static struct oteli_resolved resolved; /* of the only thread that drains */
    static struct oteli_calls calls;
    const struct profiled *profiled = state;
    oteli_resolve(sample, &calls, &resolved);
    profiled->take(profiled->state, &resolved);
}

static void *drain(void *argument)
{
    struct profiled *profiled = argument;
    const struct oteli_source *source = profiled->source;
    const unsigned drain_us = profiled->drain_us != 0 ? profiled->drain_us : USUAL_DRAIN_US;
    profiled->error = source->start(&profiled->options, &profiled->running);
    oteli_store_release_32(&profiled->phase, RUNNING);
    if (profiled->error != 0)
        return NULL;
    bool is_last;
    do {
        is_last = oteli_load_acquire_32(&profiled->phase) == STOPPING;
        source->drain(profiled->running, take, profiled, &profiled->counts);
        stress_sleep_us(is_last ? 0 : drain_us);
    } while (!is_last);
    source->stop(profiled->running);
    return NULL;
}

int profiled_start(struct profiled *profiled)
{
    oteli_labels_switch(true);
    oteli_store_release_32(&profiled->phase, STARTING);
    STRESS_CHECK(pthread_create(&profiled->thread, NULL, drain, profiled) == 0);
    stress_wait(&profiled->phase, RUNNING);
    if (profiled->error != 0) {
        pthread_join(profiled->thread, NULL);
        oteli_labels_switch(false);
    }
    return profiled->error;
}

void profiled_stop(struct profiled *profiled)
{
    oteli_store_release_32(&profiled->phase, STOPPING);
    pthread_join(profiled->thread, NULL);
    oteli_labels_switch(false);
}

const char *profiled_value(const struct oteli_resolved *resolved, const char *key)
{
    for (size_t i = 0; i < resolved->label_count; i++) {
        const struct oteli_label *label = &resolved->labels[i];
        const char *text = label->text;
        while (text < label->text + label->text_length) {
            const char *value = text + strlen(text) + 1;
            if (strcmp(text, key) == 0)
                return value;
            text = value + strlen(value) + 1;
        }
    }
    return NULL;
}

struct job {
    int (*run)(void *);
    void *argument;
};

static int run_as_nobody(void *argument)
{
    const struct job *job = argument;
    STRESS_CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    return job->run(job->argument);
}

int profiled_as_nobody(int (*run)(void *), void *argument)
{
    return stress_in_child(run_as_nobody, &(struct job){run, argument});
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/oracle.c - see oracle.h. */
#include "tests/support/oracle.h"

#include "common/base/atomic.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { USUAL_SEED = 20261122 };

void stress_check(bool condition, const char *text, const char *file, int line)
{
    if (condition)
        return;
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
    exit(1);
}

void oracle_init(struct oracle *oracle, uint32_t numbers)
{
    memset(oracle, 0, sizeof *oracle);
    oracle->seen = calloc(numbers, sizeof *oracle->seen);
    oracle->numbers = numbers;
    STRESS_CHECK(oracle->seen != NULL);
}

void oracle_fini(struct oracle *oracle)
{
    free(oracle->seen);
    oracle->seen = NULL;
}

void oracle_name(uint32_t number, char name[ORACLE_NAME])
{
    for (int i = ORACLE_NAME - 1; i >= 0; i--, number >>= 4)
        name[i] = "0123456789abcdef"[number & 15];
}

otel_span oracle_enter(otel_tracer *tracer, uint32_t number)
{
    char name[ORACLE_NAME];
    oracle_name(number, name);
    return otel_span_enter_n(tracer, name, sizeof name, NULL);
}

otel_span oracle_start(otel_tracer *tracer, uint32_t number)
{
    char name[ORACLE_NAME];
    oracle_name(number, name);
    return otel_span_start_n(tracer, name, sizeof name, NULL);
}

uint32_t oracle_number(otel_slice name)
{
    uint32_t number = 0;
    for (size_t i = 0; i < name.length; i++) {
        const char digit = name.data[i];
        number = number << 4 | (uint32_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    return name.length == ORACLE_NAME ? number : UINT32_MAX;
}

static otel_export_result export_batch(void *state, otel_export *call)
{
    struct oracle *oracle = state;
    const size_t size = otel_batch_size(call->batch);
    otel_span_view span;
    while (oteli_load_acquire_32(&oracle->blocked) != 0) {
        oteli_store_release_32(&oracle->waiting, 1);
        stress_sleep_us(100);
    }
    if (size > oracle->largest)
        oracle->largest = size;
    for (size_t i = 0; i < size; i++) {
        otel_batch_span(call->batch, i, &span);
        const uint32_t number = oracle_number(span.name);
        if (number < oracle->numbers && span.end_ns >= span.start_ns)
            oteli_store_release_32(&oracle->seen[number], oracle->seen[number] + 1);
        else
            oracle->unknown++;
    }
    oracle->delivered += size;
    return OTEL_EXPORT_DONE;
}

otel_exporter oracle_exporter(struct oracle *oracle)
{
    return OTEL_EXPORTER(.name = "oracle", .state = oracle, .export_batch = export_batch);
}

uint32_t oracle_seen(const struct oracle *oracle, uint32_t number)
{
    return oteli_load_acquire_32(&oracle->seen[number]);
}

uint64_t oracle_wrong(const struct oracle *oracle)
{
    uint64_t wrong = oracle->unknown;
    for (uint32_t i = 0; i < oracle->numbers; i++)
        wrong += oracle->seen[i] > 1;
    return wrong;
}

static bool is_long_form;

unsigned stress_scale(int argc, char **argv, unsigned long_scale)
{
    const char *variable = getenv("OTEL_TEST_LONG");
    const bool is_long = (argc > 1 && strcmp(argv[1], "--long") == 0) ||
                         (variable != NULL && strcmp(variable, "1") == 0);
    is_long_form |= is_long;
    return is_long ? long_scale : 1;
}

uint64_t stress_seed(void)
{
    const char *variable = getenv("OTEL_TEST_SEED");
    uint64_t seed = USUAL_SEED;
    if (variable != NULL)
        seed = strtoull(variable, NULL, 0);
    else if (is_long_form || getenv("OTEL_TEST_LONG") != NULL)
        STRESS_CHECK(getrandom(&seed, sizeof seed, 0) == sizeof seed);
    printf("OTEL_TEST_SEED=%" PRIu64 "\n", seed);
    fflush(stdout);
    return seed;
}

void stress_check_sums(const otel_stats *stats, bool is_final)
{
    uint64_t gone = stats->delivered + stats->rejected + stats->spooled + stats->queued;
    for (unsigned i = 0; i < OTEL_WITHHELD_REASON_COUNT; i++)
        gone += stats->withheld[i];
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        gone += stats->dropped[i];
    const bool is_right = stats->ended == gone &&
                          stats->started == stats->unsampled + stats->open + stats->ended &&
                          (!is_final || (stats->queued == 0 && stats->open == 0));
    if (is_right)
        return;
    char text[512];
    otel_stats_describe(stats, text, sizeof text);
    fprintf(stderr,
            "started %" PRIu64 ", unsampled %" PRIu64 ", open %" PRIu64 ", ended %" PRIu64
            ", queued %" PRIu64 ", %s\n",
            stats->started, stats->unsampled, stats->open, stats->ended, stats->queued, text);
    STRESS_CHECK(is_right);
}

otel_stats stress_stats(void)
{
    otel_stats stats = {.size = sizeof stats};
    STRESS_CHECK(otel_stats_read(0, &stats) == OTEL_OK);
    return stats;
}

uint64_t stress_random(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

void stress_start(pthread_t *threads, unsigned count, void *(*main)(void *number))
{
    for (uintptr_t i = 0; i < count; i++)
        STRESS_CHECK(pthread_create(&threads[i], NULL, main, (void *)i) == 0);
}

void stress_join(const pthread_t *threads, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

void stress_sleep_us(unsigned us)
{
    const struct timespec pause = {us / 1000000, (long)(us % 1000000) * 1000};
    nanosleep(&pause, NULL);
}

void stress_wait(const uint32_t *count, uint32_t wanted)
{
    while (oteli_load_acquire_32(count) < wanted)
        stress_sleep_us(100);
}

void stress_start_sdk(otel_exporter exporter, otel_sdk_options *options)
{
    options->size = sizeof *options;
    options->exporters = &exporter;
    options->exporter_count = 1;
    STRESS_CHECK(otel_start_with(options) == OTEL_OK);
}

otel_stats stress_stop_sdk(void)
{
    STRESS_CHECK(stress_is_done(otel_shutdown(60000)));
    const otel_stats stats = stress_stats();
    stress_check_sums(&stats, true);
    return stats;
}

int stress_in_child(int (*run)(void *), void *argument)
{
    fflush(NULL);
    const pid_t child = fork();
    STRESS_CHECK(child >= 0);
    if (child == 0) {
        const int result = run(argument);
        fflush(NULL);
        _exit(result);
    }
    int status;
    STRESS_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the SDK from its environment, does what the first argument says, and prints what became of
 * it, so that the effect of each setting can be seen from outside:
 *
 *   rich     one span with 200 attributes, events and links, a long text, and arrays in one another
 *   many     50 spans, exported when all of them have ended
 *   large    1,500 spans of 2 KiB, likewise
 *   huge     20 spans of 600 KiB, likewise
 *   held     the 1,500 spans below a root
 *   waiting  one span, exported without being asked
 *   tail     a root that is fine, one that failed and one that took 50 s, each with a child
 *   inject   the names of the headers that are injected
 *   http     the span of a request with the method PURGE
 *   context  what the process publishes for profilers outside
 *   burn     processor time inside of a span, and which signals have handlers meanwhile
 *   burn-long  likewise, for longer than a second */
#include <otel/http.h>
#include <otel/otel.h>
#include <otel/spool.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PARTS = 200, DEEP = 40, WAIT_MS = 10000 };

static otel_tracer *tracer;

static void make_rich(void)
{
    static const char *const text = "a text of some length";
    const uint8_t id[16] = {1};
    otel_attribute attributes[PARTS];
    char keys[PARTS][8];
    otel_value deep[DEEP];
    for (int i = 0; i < PARTS; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        attributes[i] = (otel_attribute){.key = keys[i], .value = otel_value_string(text)};
    }
    deep[0] = otel_value_int(7);
    for (int i = 1; i < DEEP; i++)
        deep[i] = otel_value_array(&deep[i - 1], 1);
    attributes[0] = (otel_attribute){.key = "deep", .value = deep[DEEP - 1]};
    const otel_span span = otel_span_enter(
        tracer, "rich", OTEL_SPAN_OPTIONS(.attributes = attributes, .attribute_count = PARTS));
    const otel_link link = {.context = otel_span_context_make(id, id, 1, false, NULL),
                            .attributes = attributes,
                            .attribute_count = PARTS};
    for (int i = 0; i < PARTS; i++) {
        otel_span_add_event(span, "event", attributes, PARTS);
        otel_span_add_link(span, &link);
    }
    otel_span_end(span);
}

static void make_many(int count, size_t bytes)
{
    char *text = calloc(1, bytes + 1);
    memset(text, 'x', bytes);
    for (int i = 0; i < count; i++) {
        const otel_span span = otel_span_enter(tracer, "one of many", NULL);
        otel_span_set_string(span, "text", text);
        otel_span_end(span);
    }
    free(text);
}

static otel_stats stats_now(void)
{
    otel_stats stats = {.size = sizeof stats};
    (void)otel_stats_read(0, &stats);
    return stats;
}

static void make_waiting(void)
{
    make_many(1, 0);
    for (int i = 0; i < WAIT_MS && stats_now().delivered == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    printf("%s\n", stats_now().delivered != 0 ? "came by itself" : "did not come");
}

static void make_tail(void)
{
    const char *const names[] = {"fine", "failed", "slow"};
    const uint64_t start_ns = (uint64_t)time(NULL) * 1000000000;
    for (int i = 0; i < 3; i++) {
        const otel_span root =
            otel_span_enter(tracer, names[i], OTEL_SPAN_OPTIONS(.start_ns = start_ns));
        otel_span_end(otel_span_enter(tracer, "child", NULL));
        if (i == 1)
            otel_span_fail(root, "an error");
        otel_span_end_at(root, start_ns + (i == 2 ? 50000000000 : 1));
    }
}

static void print_name(void *carrier, const char *name, const char *value, size_t length)
{
    (void)carrier;
    (void)value;
    (void)length;
    printf("header %s\n", name);
}

/* The texts in what the mapping "OTEL_CTX" points to: OTEP 4719 has the layout. */
static void print_context(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        if (strstr(line, "OTEL_CTX") == NULL)
            continue;
        const unsigned char *head = (const unsigned char *)(uintptr_t)strtoull(line, NULL, 16);
        uint32_t size;
        const char *payload;
        memcpy(&size, head + 12, sizeof size);
        memcpy(&payload, head + 24, sizeof payload);
        printf("published ");
        for (uint32_t i = 0; i < size; i++)
            putchar(payload[i] > ' ' && payload[i] < 127 ? payload[i] : ' ');
        printf("\n");
    }
    if (maps != NULL)
        fclose(maps);
}

__attribute__((noinline)) void burn(int tenths)
{
    const otel_span span = otel_span_enter(tracer, "burn", NULL);
    const clock_t end = clock() + CLOCKS_PER_SEC * tenths / 10;
    for (volatile unsigned turns = 0; clock() < end;)
        while (++turns % 1000000 != 0)
            ;
    otel_span_end(span);
}

static void print_handled_signals(void)
{
    for (int number = 1; number <= SIGRTMAX; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
            action.sa_handler != SIG_IGN)
            printf("handles signal %d\n", number);
    }
}

int main(int count, char **arguments)
{
    const char *mode = count > 1 ? arguments[1] : "rich";
    const bool is_batch =
        strcmp(mode, "many") == 0 || strcmp(mode, "large") == 0 || strcmp(mode, "huge") == 0;
    const otel_status status = otel_start(OTEL_SDK_OPTIONS(.threadless = is_batch));
    printf("start %s\n", otel_status_string(status));
    tracer = otel_tracer_get("settings", "1.0");
    if (strcmp(mode, "rich") == 0)
        make_rich();
    else if (strcmp(mode, "many") == 0)
        make_many(50, 0);
    else if (strcmp(mode, "large") == 0)
        make_many(1500, 2048);
    else if (strcmp(mode, "huge") == 0)
        make_many(20, 600 * 1024);
    else if (strcmp(mode, "held") == 0) {
        const otel_span root = otel_span_enter(tracer, "root", NULL);
        make_many(1500, 2048);
        otel_span_end(root);
    } else if (strcmp(mode, "waiting") == 0)
        make_waiting();
    else if (strcmp(mode, "tail") == 0)
        make_tail();
    else if (strcmp(mode, "http") == 0)
        otel_http_server_end(otel_http_server_enter(tracer, "PURGE", "/", NULL), 200, NULL);
    else if (strncmp(mode, "burn", 4) == 0)
        print_handled_signals(), burn(mode[4] == '\0' ? 3 : 12);
    else if (strcmp(mode, "context") == 0)
        print_context();
    if (strcmp(mode, "inject") == 0) {
        const otel_span span = otel_span_enter(tracer, "inject", NULL);
        const otel_context context = otel_context_with_baggage(
            otel_current_context(), otel_baggage_set(otel_baggage_none(), "k", "v", NULL));
        otel_inject(&context, print_name, NULL);
        otel_span_end(span);
    }
    (void)!otel_shutdown(6 * WAIT_MS);

    otel_stats stats = stats_now();
    otel_spool_stats spool = {.size = sizeof spool};
    char text[512];
    otel_stats_describe(&stats, text, sizeof text);
    (void)otel_spool_stats_read(&spool);
    printf("%s\nstarted %llu, unsampled %llu, batches %llu\n"
           "spool: stored %llu, evicted %llu, expired %llu, waiting %llu\n",
           text, (unsigned long long)stats.started, (unsigned long long)stats.unsampled,
           (unsigned long long)stats.batches, (unsigned long long)spool.stored,
           (unsigned long long)spool.evicted, (unsigned long long)spool.expired,
           (unsigned long long)spool.waiting);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/functions/functions_hooks_test.c - specification of the library otel-functions: code
 * that was compiled with -finstrument-functions, run with an SDK. */
#include <otel/functions.h>

#include "common/base/atomic.h"
#include "common/clock/clock.h"
#include "tests/support/functions_traced.h"
#include "tests/support/span_tree.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <otel/otel.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

void loaded_work(void);

static otel_memory *memory;
static char text[2048];

void traced_take_us(unsigned us)
{
    oteli_fake_clock.ticks += us * 1000;
    oteli_fake_clock.monotonic_ns += us * 1000;
    oteli_fake_clock.wall_ns += us * 1000;
}

static void start(void)
{
    const otel_exporter exporter = otel_memory_exporter(memory);
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                      .simple = true, .clock = "fake")),
                     OTEL_OK);
}

static int begin(void **state)
{
    (void)state;
    memory = otel_memory_new();
    assert_non_null(memory);
    start();
    return 0;
}

static int end(void **state)
{
    (void)state;
    const otel_span_context current = otel_span_get_context(otel_current_span());
    assert_false(otel_span_context_is_valid(&current));
    (void)!otel_shutdown(60000);
    otel_memory_free(memory);
    return 0;
}

/* With settings that the tests expect: they are read when the library is loaded. */
__attribute__((constructor)) static void start_again_with_settings(int argc, char **argv)
{
    (void)argc;
    if (getenv("OTEL_C_FUNCTIONS_MAX_DEPTH") != NULL)
        return;
    setenv("OTEL_C_FUNCTIONS_MAX_DEPTH", "8", 1);
    setenv("OTEL_C_FUNCTIONS_MIN_DURATION", "100", 1);
    setenv("OTEL_C_FUNCTIONS_EXCLUDE", "*_noisy, traced_no?se", 1);
    execv("/proc/self/exe", argv);
    _exit(1);
}

AROUND_EACH(begin, end);

/* What was exported until now, as text. */
static const char *tree(void)
{
    assert_int_equal(otel_flush(60000), OTEL_OK);
    span_tree_text(memory, text, sizeof text);
    return text;
}

TEST(functions_have_spans_with_their_names)
{
    traced_tree();

    assert_string_equal(tree(), "traced_tree(first second(third))");
    otel_span_view span;
    assert_true(otel_memory_span(memory, 0, &span));
    assert_int_equal(span.scope->name.length, strlen("otel.functions"));
    assert_memory_equal(span.scope->name.data, "otel.functions", strlen("otel.functions"));
    assert_int_equal(span.end_ns - span.start_ns, 1000000);
}

TEST(they_are_children_of_the_current_span)
{
    const otel_span request = otel_span_enter(otel_tracer_get("test", NULL), "request", NULL);
    traced_tree();
    otel_span_end(request);

    assert_string_equal(tree(), "request(traced_tree(first second(third)))");
}

static void keep_traceparent(void *carrier, const char *name, const char *value, size_t length)
{
    if (strcmp(name, "traceparent") == 0)
        snprintf(carrier, 56, "%.*s", (int)length, value);
    traced_take_us(1000);
}

/* And not a span of the inline function that does so. */
TEST(what_is_sent_is_the_span_of_the_function_that_sends)
{
    char sent[56] = "";
    otel_propagator_set(otel_propagator_trace_context());
    traced_sends(keep_traceparent, sent);
    otel_propagator_set(NULL);

    assert_string_equal(tree(), "traced_sends");
    otel_span_view span;
    assert_true(otel_memory_span(memory, 0, &span));
    char hex[17];
    for (int i = 0; i < 8; i++)
        snprintf(hex + 2 * i, 3, "%02x", span.span_id[i]);
    assert_memory_equal(sent + 36, hex, 16);
}

TEST(functions_of_a_shared_library_have_spans)
{
    const otel_span all = otel_span_enter(otel_tracer_get("test", NULL), "all", NULL);
    traced_calls(loaded_work);
    otel_span_end(all);

    /* They take no time. */
    assert_string_equal(tree(), "all");
    char name[32];
    assert_int_equal(otel_functions_name((void *)(uintptr_t)&loaded_work, name, sizeof name),
                     strlen("loaded_work"));
    assert_string_equal(name, "loaded_work");
}

TEST(longjmp_leaves_nothing_behind)
{
    traced_jump(3);
    traced_tree();

    assert_string_equal(tree(), "traced_jump(jumper(jumper(jumper)) landed) "
                                "traced_tree(first second(third))");
}

TEST(excluded_functions_have_no_span_and_what_they_call_has)
{
    traced_noise();

    assert_string_equal(tree(), "traced_inside_noise");
}

/* The sanitizer of threads calls handlers itself, at a later time: they are functions then. */
#if defined(OTELI_TSAN)
#define SIGNALS_ARE_THE_KERNELS() skip()
#else
#define SIGNALS_ARE_THE_KERNELS() ((void)0)
#endif

static void raise_signal(void)
{
    traced_take_us(1000);
    raise(SIGUSR1);
}

TEST(signal_handlers_have_no_spans)
{
    SIGNALS_ARE_THE_KERNELS();
    static char pages[65536];
    const stack_t own = {.ss_sp = pages, .ss_size = sizeof pages};
    stack_t previous;
    assert_int_equal(sigaltstack(&own, &previous), 0);
    for (int is_on_own_stack = 0; is_on_own_stack < 2; is_on_own_stack++) {
        const struct sigaction action = {.sa_handler = traced_on_signal,
                                         .sa_flags = is_on_own_stack ? SA_ONSTACK : 0};
        struct sigaction before;
        assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
        traced_calls(raise_signal);
        traced_tree();
        sigaction(SIGUSR1, &before, NULL);
    }
    sigaltstack(&previous, NULL);

    assert_string_equal(tree(), "traced_calls traced_tree(first second(third)) "
                                "traced_calls traced_tree(first second(third))");
}

static sigjmp_buf out_of_handler;

static void leave_handler(void)
{
    siglongjmp(out_of_handler, 1);
}

static void on_signal_leave(int number)
{
    (void)number;
    traced_calls(leave_handler);
}

TEST(handlers_that_are_left_end_the_silence)
{
    SIGNALS_ARE_THE_KERNELS();
    const struct sigaction action = {.sa_handler = on_signal_leave};
    struct sigaction before;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    if (sigsetjmp(out_of_handler, 1) == 0)
        traced_calls(raise_signal);
    traced_tree();
    sigaction(SIGUSR1, &before, NULL);

    const char *seen = tree();
    assert_non_null(strstr(seen, "traced_tree(first second(third))"));
}

static ucontext_t main_stack;
static ucontext_t other_stack;

static void on_other_stack(void)
{
    traced_tree();
    swapcontext(&other_stack, &main_stack);
    traced_tree();
}

static void switch_stack(void)
{
    traced_take_us(1000);
    swapcontext(&main_stack, &other_stack);
}

TEST(other_stacks_do_not_disturb)
{
    static char pages[65536];
    getcontext(&other_stack);
    other_stack.uc_stack.ss_sp = pages;
    other_stack.uc_stack.ss_size = sizeof pages;
    other_stack.uc_link = &main_stack;
    makecontext(&other_stack, on_other_stack, 0);
    traced_calls(switch_stack);
    traced_tree();
    traced_calls(switch_stack);

    assert_string_equal(tree(), "traced_calls traced_tree(first second(third)) traced_calls");
}

static void *exit_inside(void *argument)
{
    traced_exits_thread();
    return argument;
}

TEST(threads_may_end_inside)
{
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, exit_inside, NULL), 0);
        pthread_join(thread, NULL);
    }

    assert_string_equal(tree(), "traced_exits_thread(lengthy) traced_exits_thread(lengthy) "
                                "traced_exits_thread(lengthy)");
    otel_stats stats = {.size = sizeof stats};
    assert_int_equal(otel_stats_read(0, &stats), OTEL_OK);
    assert_int_equal(stats.open, 0);
}

static void fork_here(void)
{
    traced_take_us(1000);
    const pid_t child = fork();
    if (child == 0) {
        otel_memory_clear(memory);
        start();
        traced_tree();
        _exit(strcmp(tree(), "?traced_tree(first second(third))") != 0); /* below the parent's */
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

TEST(a_child_process_traces_when_it_starts_an_sdk)
{
    traced_calls(fork_here);

    assert_string_equal(tree(), "traced_calls");
}

static void stop_here(void)
{
    traced_take_us(1000);
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    traced_tree();
    start();
}

TEST(an_sdk_may_stop_and_another_start_inside)
{
    traced_calls(stop_here);
    traced_tree();

    assert_string_equal(tree(), "traced_tree(first second(third))");
}

TEST(tracing_can_be_switched_off_and_on)
{
    otel_functions_enable(false);
    traced_tree();
    otel_functions_enable(true);
    traced_durations();

    assert_string_equal(tree(), "traced_durations(lengthy)");
}

TEST(the_name_of_a_function_can_be_asked_for)
{
    const void *address = (const void *)(uintptr_t)&traced_countdown;
    char name[8];

    assert_int_equal(otel_functions_name(address, NULL, 0), strlen("traced_countdown"));
    assert_int_equal(otel_functions_name(address, name, sizeof name), strlen("traced_countdown"));
    assert_string_equal(name, "traced_");
    assert_int_equal(otel_functions_name(NULL, name, sizeof name), 0);
    assert_string_equal(name, "");
}

TEST(errno_stays)
{
    assert_int_equal(traced_errno(), ERANGE);
}

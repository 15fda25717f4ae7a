/* SPDX-License-Identifier: Apache-2.0 */
/* examples/fibres.c - coroutines on a few threads, each with spans of its own.
 *
 *     cc fibres.c -o fibres $(pkg-config --cflags --libs otel) -pthread
 *     ./fibres [REQUESTS]
 *
 * A scheduler runs a fibre until it waits for something, and then another; who goes on with
 * it may be another thread. All that it needs for tracing are the two lines around `resume`:
 * the fibre's otel_stack is made current while it runs. Inside, code enters spans as it does
 * anywhere else, and finds its own again after each wait.
 *
 * Here fibres are ucontexts, on two threads, and waiting is being put at the end of a queue. */
#include <otel/fibre.h>
#include <otel/otel.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { THREADS = 2, STACK_BYTES = 256 * 1024, MOST = 10000 };

struct fibre {
    otel_stack *stack; /* what is current in it */
    ucontext_t here;   /* where it goes on */
    ucontext_t *back;  /* who has resumed it */
    void *memory;
    int number;
    int has_ended;
};

static otel_tracer *tracer;

/* Fibres that can go on, first in, first out. */
static struct fibre *queue[MOST];
static unsigned head;
static unsigned tail;
static int alive;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void push(struct fibre *fibre)
{
    pthread_mutex_lock(&lock);
    queue[tail++ % MOST] = fibre;
    pthread_mutex_unlock(&lock);
}

/* NULL: all have ended, or others are running them. */
static struct fibre *pop(int *are_alive)
{
    pthread_mutex_lock(&lock);
    struct fibre *fibre = head != tail ? queue[head++ % MOST] : NULL;
    *are_alive = alive;
    pthread_mutex_unlock(&lock);
    return fibre;
}

/* --- what fibres do --- */

static void wait_for_something(struct fibre *self)
{
    swapcontext(&self->here, self->back);
}

static void query(struct fibre *self, const char *table)
{
    OTEL_SCOPED(span, tracer, "query");
    otel_span_set_string(span, "db.collection.name", table);
    wait_for_something(self);
}

static void handle_request(struct fibre *self)
{
    OTEL_SCOPED(span, tracer, "request");
    otel_span_set_int(span, "request.number", self->number);
    query(self, "users");
    query(self, "orders");
}

/* makecontext passes ints: a pointer is two of them. */
static void begin(unsigned high, unsigned low)
{
    struct fibre *self = (struct fibre *)((uintptr_t)high << 16 << 16 | low);
    handle_request(self);
    self->has_ended = 1;
    swapcontext(&self->here, self->back);
}

/* --- who runs them --- */

static void resume(struct fibre *fibre)
{
    ucontext_t here;
    fibre->back = &here;
    otel_stack *before = otel_stack_switch(fibre->stack);
    swapcontext(&here, &fibre->here);
    otel_stack_switch(before);
}

static struct fibre *create(int number)
{
    struct fibre *fibre = calloc(1, sizeof *fibre);
    void *memory = malloc(STACK_BYTES);
    if (fibre == NULL || memory == NULL)
        abort();
    fibre->stack = otel_stack_new();
    fibre->memory = memory;
    fibre->number = number;
    getcontext(&fibre->here);
    fibre->here.uc_stack.ss_sp = memory;
    fibre->here.uc_stack.ss_size = STACK_BYTES;
    const uintptr_t self = (uintptr_t)fibre;
    makecontext(&fibre->here, (void (*)(void))begin, 2, (unsigned)(self >> 16 >> 16),
                (unsigned)self);
    return fibre;
}

static void destroy(struct fibre *fibre)
{
    otel_stack_free(fibre->stack);
    free(fibre->memory);
    free(fibre);
    pthread_mutex_lock(&lock);
    alive--;
    pthread_mutex_unlock(&lock);
}

static void *run(void *nothing)
{
    int are_alive = 1;
    while (are_alive > 0) {
        struct fibre *fibre = pop(&are_alive);
        if (fibre == NULL) {
            sched_yield();
            continue;
        }
        resume(fibre);
        if (fibre->has_ended)
            destroy(fibre);
        else
            push(fibre);
    }
    return nothing;
}

int main(int argc, char **argv)
{
    const long requests = argc > 1 ? strtol(argv[1], NULL, 10) : 10;
    if (requests < 1 || requests > MOST)
        return 2;
    const otel_status status =
        otel_start(OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.service_name = "fibres")));
    if (status != OTEL_OK)
        fprintf(stderr, "telemetry is off: %s\n", otel_status_string(status));
    tracer = otel_tracer_get("example.fibres", NULL);

    alive = (int)requests;
    for (int i = 0; i < (int)requests; i++)
        push(create(i));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, NULL) != 0)
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    const otel_status stopped = otel_shutdown(5000);
    return status == OTEL_OK && stopped != OTEL_OK;
}

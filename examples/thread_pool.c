/* SPDX-License-Identifier: Apache-2.0 */
/* examples/thread_pool.c - a server with an accept loop and a pool of threads.
 *
 *     cc thread_pool.c -o thread_pool $(pkg-config --cflags --libs otel) -pthread
 *     OTEL_TRACES_EXPORTER=console ./thread_pool 7000        and: echo you | nc -N localhost 7000
 *     OTEL_TRACES_EXPORTER=console ./thread_pool --demo 3    with guests of its own
 *
 * A request begins on one thread and ends on another, and leaves work that no caller waits for:
 *
 *     GREET              started by the accept loop, so that the time in the queue counts
 *       read name        on a thread of the pool, which makes GREET current, and ends it
 *     write journal      a trace of its own, with a link to the request that it is for
 *
 * Threads hand over the span itself, or for a link its ids, which stay good. */
#include <otel/otel.h>

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { THREADS = 3, QUEUE = 64, NAME = 64 };
struct job {
    int client; /* to answer; -1: a line for the journal */
    char name[NAME];
    otel_span span; /* of the request */
    otel_span_context ids;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of the queue: */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct job jobs[QUEUE];
static size_t first, count;
static bool is_closed;
static otel_tracer *tracer;

/* False: there is no room. */
static bool put(const struct job *job)
{
    pthread_mutex_lock(&mutex);
    const bool has_room = count < QUEUE;
    if (has_room)
        jobs[(first + count++) % QUEUE] = *job;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    return has_room;
}

/* False: there is none, and there will be none. */
static bool take(struct job *job)
{
    pthread_mutex_lock(&mutex);
    while (count == 0 && !is_closed)
        pthread_cond_wait(&changed, &mutex);
    const bool is_there = count != 0 && count--;
    if (is_there)
        *job = jobs[first++ % QUEUE];
    pthread_mutex_unlock(&mutex);
    return is_there;
}

static void read_name(int client, char name[NAME])
{
    OTEL_SCOPED(span, tracer, "read name"); /* below what is current */
    const ssize_t length = recv(client, name, NAME - 1, 0);
    name[length > 0 ? length : 0] = '\0';
    otel_span_set_int(span, "name.length", length);
}

static void greet(struct job *job)
{
    /* What was started is current on no thread: this one makes it so while it works for it. */
    const otel_context_token token =
        otel_context_attach(otel_context_with_span(otel_current_context(), job->span));
    read_name(job->client, job->name);
    if (dprintf(job->client, "hello %s", job->name) < 0)
        otel_span_fail(job->span, "the client does not read");
    close(job->client);
    job->client = -1;
    job->ids = otel_span_get_context(job->span);
    if (!put(job))
        otel_span_add_event(job->span, "not in the journal", NULL, 0);
    (void)otel_context_detach(token);
    otel_span_end(job->span);
}

/* Not below the request, which is over by now; the link says for which one it is. */
static void write_journal(const struct job *job)
{
    const otel_link link = {.context = job->ids};
    const otel_span span = otel_span_enter(tracer, "write journal",
                                           OTEL_SPAN_OPTIONS(.links = &link, .link_count = 1));
    printf("greeted %s", job->name);
    otel_span_end(span);
}

static void *work(void *unused)
{
    for (struct job job; take(&job);)
        job.client >= 0 ? greet(&job) : write_journal(&job);
    return unused;
}

static void accept_one(int listener)
{
    struct job job = {.client = accept(listener, NULL, NULL)};
    job.span = otel_span_start(tracer, "GREET", OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_SERVER));
    if (job.client >= 0 && put(&job))
        return;
    otel_span_fail(job.span, job.client < 0 ? strerror(errno) : "the queue is full");
    otel_span_end(job.span);
    close(job.client);
}

int main(int argc, char **argv)
{
    const long guests = argc == 3 ? strtol(argv[2], NULL, 10) : 0; /* 0: of others, without end */
    const long port = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    struct sockaddr_in here = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof here;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    signal(SIGPIPE, SIG_IGN); /* of clients that have gone */
    if (bind(listener, (struct sockaddr *)&here, size) != 0 || listen(listener, QUEUE) != 0 ||
        getsockname(listener, (struct sockaddr *)&here, &size) != 0 || otel_start(NULL) != OTEL_OK)
        return 1;
    tracer = otel_tracer_get("example.thread_pool", "1.0");
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (long i = 0; i < guests; i++) { /* they wait in the backlog */
        const int guest = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(guest, (struct sockaddr *)&here, size) != 0 || dprintf(guest, "you\n") < 0)
            return 1;
    }
    for (long i = 0; guests == 0 || i < guests; i++)
        accept_one(listener);
    pthread_mutex_lock(&mutex);
    is_closed = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return otel_shutdown(5000) == OTEL_OK ? 0 : 1;
}

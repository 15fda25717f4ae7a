/* SPDX-License-Identifier: Apache-2.0 */
/* examples/batch_commit.c - one piece of work for several requests, in each of their traces.
 *
 *     cc batch_commit.c -o batch_commit $(pkg-config --cflags --libs otel)
 *     OTEL_TRACES_EXPORTER=console ./batch_commit
 *
 * Databases commit in groups: requests put their records into a log and wait, and one thread
 * writes the records of all who wait and brings them to the disk once. Whose trace do the
 * spans of that belong to? To that of everybody who waited for it:
 *
 *     PUT /items/{id}          a trace for each request
 *       commit to log          with a link to "group commit"
 *         append
 *         fdatasync
 *     group commit             and one for the work itself, with the same three in it
 *
 * The three are recorded once; the exporter thread makes the others of them. The functions
 * that do the work know nothing of this: they enter spans as usual. */
#include <otel/otel.h>

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { REQUESTS = 6, GROUP = 3 };

struct request {
    char record[32];
    bool is_durable;
};

/* A group is committed when it is complete; until then its requests wait. Their spans are
 * remembered, because the thread that commits knows of a group only what it has written. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct request *waiting[GROUP];
    size_t count;
    FILE *file;
    otel_parents *parents;
} wal = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static otel_tracer *tracer;

/* ---- requests, each on a thread of its own ------------------------------------------------- */

static void wait_until_durable(struct request *request)
{
    const otel_span span = otel_current_span();
    pthread_mutex_lock(&wal.mutex);
    while (wal.count == GROUP)
        pthread_cond_wait(&wal.changed, &wal.mutex);
    wal.waiting[wal.count++] = request;
    (void)otel_parents_add(wal.parents, &span); /* there is room for a group */
    pthread_cond_broadcast(&wal.changed);
    while (!request->is_durable)
        pthread_cond_wait(&wal.changed, &wal.mutex);
    pthread_mutex_unlock(&wal.mutex);
}

static void *serve(void *argument)
{
    struct request *request = argument;
    const otel_span span = otel_span_enter(tracer, "PUT /items/{id}",
                                           OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_SERVER));
    wait_until_durable(request);
    otel_span_set_int(span, "http.response.status_code", 204);
    otel_span_end(span);
    return NULL;
}

/* ---- the work that a group shares ---------------------------------------------------------- */

static void append(struct request *const *group)
{
    OTEL_FUNCTION_SPAN(tracer);
    for (size_t i = 0; i < GROUP; i++)
        fputs(group[i]->record, wal.file);
    fflush(wal.file);
}

static void commit_to_log(struct request *const *group)
{
    OTEL_SCOPED(commit, tracer, "commit to log");
    append(group);
    OTEL_SCOPED(sync, tracer, "fdatasync");
    if (fdatasync(fileno(wal.file)) != 0)
        otel_span_fail(sync, "the log is not on the disk");
}

/* The same, so that each request sees it. */
static void commit_group(struct request *const *group)
{
    const otel_span work = otel_span_enter(tracer, "group commit", NULL);
    const otel_span_context shared = otel_span_get_context(work);
    otel_span_set_int(work, "group.size", GROUP);

    otel_lines_begin();
    commit_to_log(group);
    otel_lines *lines = otel_lines_end();

    otel_parents_mount(wal.parents, lines, OTEL_MOUNT_OPTIONS(.linked = &shared));
    otel_lines_mount(lines, &work, 1, NULL);
    otel_lines_free(lines);
    otel_span_end(work);
}

static void run_log(int groups)
{
    pthread_mutex_lock(&wal.mutex);
    for (int i = 0; i < groups; i++) {
        while (wal.count != GROUP)
            pthread_cond_wait(&wal.changed, &wal.mutex);
        pthread_mutex_unlock(&wal.mutex);
        commit_group(wal.waiting); /* no other thread changes a complete group */
        pthread_mutex_lock(&wal.mutex);
        for (size_t k = 0; k < GROUP; k++)
            wal.waiting[k]->is_durable = true;
        wal.count = 0;
        pthread_cond_broadcast(&wal.changed);
    }
    pthread_mutex_unlock(&wal.mutex);
}

int main(void)
{
    wal.file = tmpfile();
    wal.parents = otel_parents_new(GROUP);
    if (wal.file == NULL || otel_start(NULL) != OTEL_OK)
        return 1;
    tracer = otel_tracer_get("example.batch_commit", "1.0");

    struct request requests[REQUESTS] = {0};
    pthread_t threads[REQUESTS];
    for (int i = 0; i < REQUESTS; i++) {
        snprintf(requests[i].record, sizeof requests[i].record, "put item %d\n", i);
        if (pthread_create(&threads[i], NULL, serve, &requests[i]) != 0)
            return 1;
    }
    run_log(REQUESTS / GROUP);
    for (int i = 0; i < REQUESTS; i++)
        pthread_join(threads[i], NULL);

    const otel_status status = otel_shutdown(5000);
    otel_stats stats = {.size = sizeof stats};
    if (otel_stats_read(0, &stats) == OTEL_OK)
        printf("delivered %d of %d spans\n", (int)stats.delivered, (int)stats.started);
    otel_parents_free(wal.parents);
    fclose(wal.file);
    return status == OTEL_OK ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A program that leaves main by pthread_exit while a thread of its own goes on.
 *
 *     leaves_main plain|ends|ended|traces     without otel-c; the thread calls otel_shutdown; main
 *                                             does; nobody does
 *                 stays|returns               the thread waits for a signal, or returns */
#include <otel/otel.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool shuts_down;
static bool stays;

static void *go_on(void *main_thread)
{
    pthread_join(*(pthread_t *)main_thread, NULL);
    otel_span span = otel_span_enter(otel_tracer_get("leaves_main", NULL), "alone", NULL);
    otel_span_end(span);
    if (shuts_down && otel_shutdown(5000) != OTEL_OK)
        _exit(3);
    puts("alone");
    fflush(stdout);
    while (stays)
        pause();
    return NULL;
}

int main(int argc, char **argv)
{
    static pthread_t main_thread;
    pthread_t thread;
    if (argc != 3)
        return 2;
    stays = strcmp(argv[2], "stays") == 0;
    shuts_down = strcmp(argv[1], "ends") == 0;
    if (strcmp(argv[1], "plain") != 0 && otel_start(NULL) != OTEL_OK)
        return 2;
    main_thread = pthread_self();
    if (pthread_create(&thread, NULL, go_on, &main_thread) != 0)
        return 2;
    pthread_detach(thread);
    if (strcmp(argv[1], "ended") == 0 && otel_shutdown(5000) != OTEL_OK)
        return 2;
    pthread_exit(NULL);
}

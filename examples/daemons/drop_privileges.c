/* SPDX-License-Identifier: Apache-2.0 */
/* examples/daemons/drop_privileges.c - a server that starts as root; its worker is a user.
 *
 *     master, root ── what only root may: sockets, the file with the receiver's key
 *                  ── fork ──▶ worker: becomes the user, starts otel-c, answers requests
 *
 * The worker starts otel-c after it has become the user. So the files that otel-c makes and reads
 * (spool, certificates) are those of the user, and the master has no exporter. Nothing in the
 * environment counts here: it is wiped, as some servers do, and what shall count is put in.
 *
 *     cc drop_privileges.c -o drop_privileges $(pkg-config --cflags --libs otel)
 *     ./drop_privileges USER SETTINGS
 *
 * SETTINGS has lines such as OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318, and root alone
 * may read it. Who is not root already stays what they are. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* clearenv */
#endif
#include <otel/otel.h>

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMEOUT_MS = 2000 };

/* Wipe the environment, and put into it what the lines of the file say. */
static bool replace_environment(const char *path)
{
    char line[1024];
    FILE *settings = fopen(path, "re");
    if (settings == NULL || clearenv() != 0)
        return false;
    while (fgets(line, sizeof line, settings) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *value = strchr(line, '=');
        if (value == NULL || line[0] == '#')
            continue;
        *value++ = '\0';
        setenv(line, value, 1);
    }
    return fclose(settings) == 0;
}

static bool become(const char *name)
{
    if (geteuid() != 0)
        return true;
    const struct passwd *user = getpwnam(name);
    return user != NULL && initgroups(name, user->pw_gid) == 0 && setgid(user->pw_gid) == 0 &&
           setuid(user->pw_uid) == 0;
}

static int work(const char *user)
{
    if (!become(user))
        return perror(user), 1;
    const otel_status status = otel_start(
        OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.service_name = "dropped",
                                                      .resource_detectors =
                                                          "process,process_owner,service")));
    if (status != OTEL_OK)
        fprintf(stderr, "telemetry is off: %s\n", otel_status_string(status));

    otel_tracer *tracer = otel_tracer_get("example.dropped", "1.0");
    const otel_span span = otel_span_enter(tracer, "request", NULL);
    otel_span_set_int(span, "user.id", (int64_t)geteuid());
    otel_span_end(span);

    otel_stats sums = {.size = sizeof sums};
    const bool is_sent = otel_shutdown(TIMEOUT_MS) == OTEL_OK;
    char text[200];
    if (otel_stats_read(0, &sums) == OTEL_OK && otel_stats_describe(&sums, text, sizeof text) > 0)
        fprintf(stderr, "%s\n", text);
    return is_sent ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return fprintf(stderr, "usage: %s USER SETTINGS\n", argv[0]), 2;
    if (!replace_environment(argv[2]))
        return perror(argv[2]), 1;
    const pid_t worker = fork();
    if (worker == 0)
        _exit(work(argv[1]));
    int status = -1;
    return waitpid(worker, &status, 0) != worker || status != 0;
}

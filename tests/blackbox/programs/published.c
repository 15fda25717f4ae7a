// SPDX-License-Identifier: Apache-2.0
/* Starts the SDK, does what its arguments say, prints its process id, and waits for the end of its
 * standard input.
 *
 *     code       an exporter and a sampler of the program's own, whatever the environment says
 *     defaults   a service name and an exporter that the environment beats
 *     wipe       overwrite the environment, as servers that set their title do
 *     drop       become another user
 *     close      close all descriptors but the standard ones
 *     fork       let a child go on, in which the SDK has not come back
 *     restart    shut down, and start with other options
 *     shutdown   shut down */
#include <otel/otel.h>
#include <otel/otlp.h>
#include <otel/sampler.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool is_asked(int count, char **arguments, const char *word)
{
    for (int i = 1; i < count; i++)
        if (strcmp(arguments[i], word) == 0)
            return true;
    return false;
}

static otel_status start_with_defaults(void)
{
    return otel_start(OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.service_name = "program",
                                                                    .traces_exporter = "console")));
}

static otel_status start(bool in_code)
{
    if (!in_code)
        return otel_start(NULL);
    static const otel_otlp_header headers[] = {{.name = "authorization", .value = "SECRET"}};
    otel_exporter exporter;
    const otel_status status = otel_otlp_exporter_new(
        OTEL_OTLP_OPTIONS(.endpoint = "http://me:SECRET@127.0.0.1:9/in/code?key=SECRET",
                          .headers = headers, .header_count = 1),
        &exporter);
    const otel_sampler sampler = otel_sampler_always_on();
    return status != OTEL_OK
               ? status
               : otel_start(OTEL_SDK_OPTIONS(.traces_exporter = "none", .exporters = &exporter,
                                             .exporter_count = 1, .sampler = &sampler));
}

int main(int count, char **arguments)
{
    const bool in_code = is_asked(count, arguments, "code");
    const bool has_defaults = is_asked(count, arguments, "defaults");
    if ((has_defaults ? start_with_defaults() : start(in_code)) != OTEL_OK)
        return 1;
    if (is_asked(count, arguments, "restart") &&
        (otel_shutdown(0) != OTEL_OK ||
         otel_start(OTEL_SDK_OPTIONS(.service_name = "again")) != OTEL_OK))
        return 1;
    if (is_asked(count, arguments, "shutdown") && otel_shutdown(0) != OTEL_OK)
        return 1;
    for (char **one = environ; is_asked(count, arguments, "wipe") && *one != NULL; one++)
        memset(*one, 'x', strlen(*one));
    if (is_asked(count, arguments, "drop") && (setgid(12345) != 0 || setuid(12345) != 0))
        return 1;
    for (int fd = 3; is_asked(count, arguments, "close") && fd < 1024; fd++)
        close(fd);
    const pid_t child = is_asked(count, arguments, "fork") ? fork() : 0;
    if (child > 0) {
        waitpid(child, NULL, 0);
        return 0;
    }
    printf("%ld\n", (long)getpid());
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}

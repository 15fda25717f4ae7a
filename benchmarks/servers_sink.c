/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/servers_sink.c - the sink of a server that servers.py measures, as a program: it
 * prints its URL, then for each line on its standard input how many requests and bytes of
 * bodies it has answered; it ends with its input. */
#include "benchmarks/bench.h"
#include "benchmarks/sink.h"

#include <inttypes.h>
#include <stdio.h>

int main(void)
{
    struct bench_sink sink;
    bench_sink_start(&sink);
    puts(sink.url);
    (void)fflush(stdout);
    for (int byte = getchar(); byte != EOF; byte = getchar()) {
        if (byte == '\n')
            printf("%" PRIu64 " %" PRIu64 "\n", sink.counts->requests, sink.counts->bytes);
        (void)fflush(stdout);
    }
    bench_sink_stop(&sink);
    return 0;
}

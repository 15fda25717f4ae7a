/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/service_world.h - the three programs that benchmarks/service.c compares, each
 * a process of its own with a database of its own, and how to ask one for a slice of work.
 *
 * Threads:  one thread. */
#ifndef OTELI_BENCH_SERVICE_WORLD_H
#define OTELI_BENCH_SERVICE_WORLD_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* BARE: not a line of tracing. OFF: traced, and no SDK was ever started. ON: every request
 * is sampled, and exported to the sink. */
enum service_mode { SERVICE_BARE, SERVICE_OFF, SERVICE_ON, SERVICE_MODES };

enum { SERVICE_REQUESTS = 4096, SERVICE_REQUEST_BYTES = 320 };

/* What the service is asked, over and over, in the same order in every world. */
typedef char service_request[SERVICE_REQUEST_BYTES];

struct service_slice {
    uint64_t wall_ns;       /* of the loop that answers requests */
    uint64_t server_cpu_ns; /* of the thread that does: what others take away is left out */
    uint64_t cpu_ns;        /* of the whole process, until the last span is delivered */
    uint64_t checksum;      /* of all responses */
};

struct service_books {
    uint64_t delivered;
    uint64_t batches;
};

struct service_world {
    pid_t process;
    int questions; /* written by us */
    int answers;   /* read by us */
};

/* Which cores may run the thread that answers requests, and which all else. */
struct service_cores {
    cpu_set_t server;
    cpu_set_t others;
};

/* The cores we may run on: one for the server and the others for the others, if there are
 * two of them; or any core for everything. */
struct service_cores service_cores_apart(void);
struct service_cores service_cores_any(void);

/* Let the calling thread, and threads and processes it makes, run on these. */
void service_cores_use(const cpu_set_t *cores);

/* Start it; ON exports to `url`. It ends by service_world_stop, or with us. */
struct service_world service_world_start(enum service_mode mode, service_request *requests,
                                         const char *url, const struct service_cores *cores);

/* Let it answer `count` requests, beginning with number `first`. */
struct service_slice service_world_ask(const struct service_world *world, uint64_t first,
                                       uint64_t count);

/* End it. It makes sure that each span it made has been delivered, and fails the benchmark
 * otherwise. */
struct service_books service_world_stop(struct service_world *world);

#endif

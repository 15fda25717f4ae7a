/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/spool/spool_killed_test.c - specification of exporters/otlp/spool/disk_spool.c where
 * processes end, or fork, in the middle of something. A child is killed before its first system
 * call on the spool, then another one before its second, and so on to the last: what it had put and
 * not sent is there. */
#include "common/base/atomic.h"
#include "exporters/otlp/spool/disk_spool.h"

#include "tests/support/spool_files.h"
#include "tests/support/unit.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REQUESTS = 5, ROOM = 4, CALLS_MAX = 1000 };

static struct spool_files files;

/* What the child has done for certain. */
static struct progress {
    bool was_begun[REQUESTS];
    bool was_put[REQUESTS];
    bool was_sent[REQUESTS]; /* or evicted, perhaps */
} * done;

static int begin(void **state)
{
    (void)state;
    done = mmap(NULL, sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(done != MAP_FAILED);
    spool_files_begin(&files);
    return 0;
}

static int end(void **state)
{
    (void)state;
    munmap(done, sizeof *done);
    spool_files_end(&files);
    return 0;
}

static struct oteli_spool *open_one(uint64_t room)
{
    return oteli_spool_open(files.path, SPOOL_ENDPOINT, OTEL_OTLP_HTTP_PROTOBUF,
                            room * (OTELI_SPOOL_HEAD + 1), 0);
}

static void put_number(struct oteli_spool *spool, unsigned number)
{
    const char request = (char)('0' + number);
    done->was_begun[number] = true;
    done->was_put[number] = oteli_spool_put(spool, &request, 1, 1);
}

/* The number of the oldest; -1: there is none. It is sent, and `promise` is kept then. */
static int send_oldest(struct oteli_spool *spool, bool promise[REQUESTS])
{
    struct oteli_spool_item item;
    if (!oteli_spool_first(spool, &item))
        return -1;
    const int number = *(const char *)item.bytes - '0';
    assert_int_equal(item.length, 1);
    assert_in_range(number, 0, REQUESTS - 1);
    promise[number] = true;
    oteli_spool_settle(spool, OTELI_CALL_DELIVERED, 0);
    return number;
}

/* Everything that there is to do, and the first is evicted for the last. */
static void work(void)
{
    struct oteli_spool *spool = open_one(ROOM);
    for (unsigned i = 0; i < REQUESTS - 1; i++)
        put_number(spool, i);
    (void)send_oldest(spool, done->was_sent);
    put_number(spool, REQUESTS - 1);
    oteli_spool_close(spool);
}

/* False: it came to its end. */
static bool is_killed_at(size_t call)
{
    int status;
    memset(done, 0, sizeof *done);
    const pid_t child = fork();
    if (child == 0) {
        memset(&spool_calls, 0, sizeof spool_calls);
        spool_calls.kill_at = call;
        work();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

AROUND_EACH(begin, end);

TEST(whoever_is_killed_anywhere_leaves_whole_files)
{
    size_t call = 1;
    for (bool is_killed = true; is_killed; call++) {
        bool is_here[REQUESTS] = {false};
        is_killed = is_killed_at(call);
        struct oteli_spool *spool = open_one(REQUESTS);
        int last = -1;
        for (int number; (number = send_oldest(spool, is_here)) >= 0; last = number)
            assert_true(number > last); /* in order, and none twice */
        assert_int_equal(spool_files_stats().torn_files, 0);
        oteli_spool_close(spool);

        for (unsigned i = 0; i < REQUESTS; i++) {
            assert_true(is_here[i] || done->was_sent[i] || !done->was_put[i]);
            assert_true(done->was_begun[i] || !is_here[i]);
        }
        assert_int_equal(spool_files_count(&files, ".otlp"), 0);
        assert_true(spool_files_count(&files, ".tmp") <= call);
        assert_true(call < CALLS_MAX);
    }
    assert_true(call > 30); /* it was killed in between */
}

/* ---- several at once -------------------------------------------------------------------- */

enum { PROCESSES = 4, REQUESTS_EACH = 100 };

/* Send the oldest, if this is who may. */
static bool send_one(struct oteli_spool *spool, uint32_t *arrivals)
{
    struct oteli_spool_item item;
    unsigned number;
    if (!oteli_spool_first(spool, &item))
        return false;
    memcpy(&number, item.bytes, sizeof number);
    oteli_add_full_32(&arrivals[number], 1);
    oteli_spool_settle(spool, OTELI_CALL_DELIVERED, 0);
    return true;
}

/* Every second turn, and then what is left of all. */
static void put_and_send(unsigned process, uint32_t *arrivals)
{
    struct oteli_spool *spool =
        oteli_spool_open(files.path, SPOOL_ENDPOINT, OTEL_OTLP_HTTP_PROTOBUF, 0, 0);
    bool is_right = true;
    for (unsigned i = 0; i < REQUESTS_EACH; i++) {
        const unsigned number = process * REQUESTS_EACH + i;
        is_right &= oteli_spool_put(spool, &number, sizeof number, 1);
        if (i % 2 == 0)
            (void)send_one(spool, arrivals);
    }
    while (send_one(spool, arrivals) || oteli_spool_is_taken(spool))
        sched_yield();
    is_right &= spool_files_stats().torn_files == 0 && spool_files_stats().failures == 0;
    _exit(is_right ? 0 : 1);
}

TEST(processes_that_put_and_send_at_once_lose_nothing_and_send_nothing_twice)
{
    pid_t children[PROCESSES];
    const size_t size = PROCESSES * REQUESTS_EACH * sizeof(uint32_t);
    uint32_t *arrivals =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(arrivals != MAP_FAILED);
    for (unsigned i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0)
            put_and_send(i, arrivals);
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }

    struct oteli_spool *spool = open_one(PROCESSES * (uint64_t)REQUESTS_EACH);
    while (send_one(spool, arrivals))
        continue;
    oteli_spool_close(spool);
    for (unsigned i = 0; i < PROCESSES * REQUESTS_EACH; i++)
        assert_int_equal(arrivals[i], 1);
    munmap(arrivals, size);
}

/* A child that does nothing has copies of all descriptors, and with them of the lock. */
TEST(a_forked_child_does_not_keep_the_lock)
{
    int status;
    bool is_sent[REQUESTS];
    struct oteli_spool_item item;
    struct oteli_spool *spool = open_one(REQUESTS);
    struct oteli_spool *other = open_one(REQUESTS);
    put_number(spool, 0);
    assert_true(oteli_spool_first(spool, &item));
    const pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }

    oteli_spool_settle(spool, OTELI_CALL_EXHAUSTED, 0);

    assert_int_equal(send_oldest(other, is_sent), 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    oteli_spool_close(spool);
    oteli_spool_close(other);
}

/* Whoever is sending when it forks, and ends at once, as a daemon's first process does, leaves its
 * lock to the child. 0: the child is the sender then. */
static int send_in_the_place_of(const struct oteli_spool *parents, int parents_end)
{
    char nothing;
    bool is_sent[REQUESTS];
    if (read(parents_end, &nothing, 1) != 0)
        return 1;
    oteli_spool_close_copies(parents);
    struct oteli_spool *own = open_one(REQUESTS);
    return own != NULL && send_oldest(own, is_sent) == 0 ? 0 : 2;
}

TEST(a_child_whose_parent_has_ended_can_send)
{
    int end[2];
    int answer[2];
    int status;
    char result = 1;
    struct oteli_spool_item item;
    assert_int_equal(pipe(end), 0);
    assert_int_equal(pipe(answer), 0);
    const pid_t parent = fork();
    if (parent == 0) {
        struct oteli_spool *spool = open_one(REQUESTS);
        put_number(spool, 0);
        if (!oteli_spool_first(spool, &item) || fork() != 0)
            _exit(0);
        close(end[1]);
        result = (char)send_in_the_place_of(spool, end[0]);
        (void)!write(answer[1], &result, 1);
        _exit(0);
    }
    close(end[1]);
    close(answer[1]);
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(read(answer[0], &result, 1), 1);
    close(end[0]);
    close(answer[0]);
    assert_int_equal(result, 0);
}

TEST(a_forked_child_counts_from_zero)
{
    int status;
    struct oteli_spool *spool = open_one(REQUESTS);
    put_number(spool, 0);
    assert_true(spool_files_stats().stored > 0);
    const pid_t child = fork();
    if (child == 0) {
        bool is_right = spool_files_stats().stored == 0;
        struct oteli_spool *own = open_one(REQUESTS);
        put_number(own, 1);
        is_right &= spool_files_stats().stored == 1 && spool_files_stats().found == 1;
        _exit(is_right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);

    bool is_sent[REQUESTS];
    assert_int_equal(send_oldest(spool, is_sent), 0);
    assert_int_equal(send_oldest(spool, is_sent), 1);
    oteli_spool_close(spool);
}

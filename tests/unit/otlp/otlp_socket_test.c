/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/otlp/otlp_socket_test.c - specification of exporters/otlp/socket.h. */
#include "exporters/otlp/socket.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_closed_on_exec(int fd)
{
    const int flags = fcntl(fd, F_GETFD);
    return flags >= 0 && (flags & FD_CLOEXEC) != 0;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void make_pair(int pair[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
}

static void close_pair(const int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

TEST(a_socket_never_waits_is_closed_on_exec_and_ours_until_closed)
{
    struct oteli_sockets sockets;
    oteli_sockets_init(&sockets);

    const int fd = oteli_sockets_open(&sockets, AF_INET, SOCK_STREAM, 0);

    assert_true(is_closed_on_exec(fd));
    assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    assert_true(oteli_sockets_are_ours(&sockets));
    assert_int_equal(oteli_sockets_close(&sockets, fd), 0);
    assert_false(is_open(fd));
    assert_true(oteli_sockets_are_ours(&sockets));
}

TEST(a_number_taken_over_by_another_socket_is_left_alone)
{
    struct oteli_sockets sockets;
    int other[2];
    oteli_sockets_init(&sockets);
    const int fd = oteli_sockets_open(&sockets, AF_INET, SOCK_STREAM, 0);
    make_pair(other);

    assert_int_equal(dup2(other[0], fd), fd);

    assert_false(oteli_sockets_are_ours(&sockets));
    assert_int_equal(oteli_sockets_close(&sockets, fd), 0);
    assert_true(is_open(fd));
    close(fd);
    close_pair(other);
}

TEST(what_curl_has_closed_itself_is_forgotten)
{
    struct oteli_sockets sockets;
    int pair[2];
    oteli_sockets_init(&sockets);
    oteli_sockets_open_pair(&sockets, pair);
    const int open_one = oteli_sockets_open(&sockets, AF_INET, SOCK_STREAM, 0);
    const int closed = oteli_sockets_open(&sockets, AF_INET, SOCK_STREAM, 0);
    close(closed);
    assert_false(oteli_sockets_are_ours(&sockets));

    oteli_sockets_forget_closed(&sockets);

    assert_true(oteli_sockets_are_ours(&sockets));
    close(pair[0]); /* not curl's: that was the program */
    oteli_sockets_forget_closed(&sockets);
    assert_false(oteli_sockets_are_ours(&sockets));
    oteli_sockets_close_all(&sockets);
    assert_false(is_open(open_one) || is_open(pair[1]));
}

TEST(a_number_that_comes_back_is_the_new_socket)
{
    struct oteli_sockets sockets;
    oteli_sockets_init(&sockets);
    const int closed = oteli_sockets_open(&sockets, AF_INET, SOCK_STREAM, 0);
    close(closed);

    const int fd = oteli_sockets_open(&sockets, AF_INET, SOCK_STREAM, 0);

    assert_int_equal(fd, closed);
    assert_true(oteli_sockets_are_ours(&sockets));
    assert_int_equal(oteli_sockets_close(&sockets, fd), 0);
    assert_false(is_open(fd));
}

TEST(a_pair_is_connected_and_never_blocks)
{
    struct oteli_sockets sockets;
    int pair[2];
    char byte = 0;
    oteli_sockets_init(&sockets);

    oteli_sockets_open_pair(&sockets, pair);

    assert_true(is_closed_on_exec(pair[0]) && is_closed_on_exec(pair[1]));
    assert_int_equal(recv(pair[0], &byte, 1, 0), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(send(pair[1], "!", 1, 0), 1);
    assert_int_equal(recv(pair[0], &byte, 1, 0), 1);
    assert_true(oteli_socket_is(pair[1], oteli_socket_inode(pair[1])));
    assert_false(oteli_socket_is(pair[1], oteli_socket_inode(pair[0])));
    oteli_sockets_close_all(&sockets);
    assert_false(is_open(pair[0]) || is_open(pair[1]));
}

TEST(what_is_no_socket_has_no_identity)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);

    assert_int_equal(oteli_socket_inode(ends[0]), 0);
    assert_false(oteli_socket_is(ends[0], 0));
    assert_false(oteli_socket_is(-1, 0));

    close_pair(ends);
}

/* As curl_multi_wakeup does it. */
static void wake_up(int fd)
{
    for (int i = 0; i < OTELI_PAIR_BYTES; i++)
        assert_int_equal(send(fd, "!", 1, 0), 1);
}

/* Between idle pairs and busy ones of the program's. */
TEST(the_pair_through_which_the_bytes_went_is_adopted)
{
    struct oteli_sockets sockets;
    struct oteli_pair_search search;
    int idle[2];
    int busy[2];
    int wanted[2];
    oteli_sockets_init(&sockets);
    make_pair(idle);
    make_pair(busy);
    make_pair(wanted);
    assert_int_equal(send(busy[1], "!", 1, 0), 1);

    oteli_pair_search_begin(&search);
    wake_up(wanted[1]);
    oteli_pair_search_end(&search, &sockets);

    assert_true(is_closed_on_exec(wanted[0]) && is_closed_on_exec(wanted[1]));
    assert_false(is_closed_on_exec(idle[0]) || is_closed_on_exec(idle[1]));
    assert_false(is_closed_on_exec(busy[0]) || is_closed_on_exec(busy[1]));
    oteli_sockets_close_all(&sockets);
    assert_false(is_open(wanted[0]) || is_open(wanted[1]));
    close_pair(idle);
    close_pair(busy);
}

/* As where curl has no pair, and another thread of the program uses one. */
TEST(a_pair_through_which_other_bytes_went_is_left_alone)
{
    struct oteli_sockets sockets;
    struct oteli_pair_search search;
    int programs[2];
    oteli_sockets_init(&sockets);
    make_pair(programs);

    oteli_pair_search_begin(&search);
    assert_int_equal(send(programs[1], "!", 1, 0), 1);
    oteli_pair_search_end(&search, &sockets);

    oteli_sockets_close_all(&sockets);
    assert_true(is_open(programs[0]) && is_open(programs[1]));
    assert_false(is_closed_on_exec(programs[0]) || is_closed_on_exec(programs[1]));
    close_pair(programs);
}

TEST(nothing_is_adopted_when_it_could_be_either)
{
    struct oteli_sockets sockets;
    struct oteli_pair_search search;
    int one[2];
    int other[2];
    oteli_sockets_init(&sockets);
    make_pair(one);
    make_pair(other);

    oteli_pair_search_begin(&search);
    wake_up(one[1]);
    wake_up(other[1]);
    oteli_pair_search_end(&search, &sockets);

    assert_false(is_closed_on_exec(one[0]) || is_closed_on_exec(other[1]));
    close_pair(one);
    close_pair(other);
}

TEST(a_sigpipe_that_was_raised_meanwhile_is_gone)
{
    sigset_t before;
    sigset_t after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);

    const struct oteli_sigpipe_guard guard = oteli_sigpipe_guard_begin(true);
    pthread_kill(pthread_self(), SIGPIPE);
    oteli_sigpipe_guard_end(&guard);

    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&before, SIGPIPE), sigismember(&after, SIGPIPE));
}

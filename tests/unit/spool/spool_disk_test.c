/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/spool/spool_disk_test.c - specification of exporters/otlp/spool/disk_spool.c: nothing
 * that was put is lost uncounted, whatever is in the directory, whatever it is, and whatever the
 * disk says. */
#include "exporters/otlp/spool/disk_spool.h"

#include "tests/support/spool_fixture.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = OTELI_SPOOL_HEAD };

/* ---- what else there is in the directory ---------------------------------------------- */

AROUND_EACH(begin, end);

TEST(a_torn_file_is_removed_and_counted_and_the_others_go_on)
{
    for (size_t length = 0; length < HEAD + 5; length += 7) {
        before = spool_files_stats();
        assert_true(put("first", 5));
        assert_int_equal(truncate(spool_files_oldest(&files, ".otlp"), (off_t)length), 0);
        if (length % 2 != 0) /* zeros, where a disk did not get to */
            assert_int_equal(truncate(spool_files_oldest(&files, ".otlp"), HEAD + 5), 0);
        assert_true(put("second", 2));

        assert_string_equal(take(), "second");

        assert_int_equal(COUNTED(torn), 5);
        assert_int_equal(COUNTED(torn_files), 1);
        assert_int_equal(spool_files_count(&files, ""), 0);
    }
}

static const char *in_own(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", spool_files_own(&files), name);
    return path;
}

/* With one of our names. */
static const char *like_ours(enum oteli_spool_name kind, uint64_t written_unix_ns)
{
    const struct oteli_spool_file file = {
        .written_unix_ns = written_unix_ns, .id = 2, .spans = 3, .length = 4};
    char name[OTELI_SPOOL_NAME];
    oteli_spool_name_write(&file, kind, name);
    return in_own(name);
}

TEST(what_is_not_ours_stays_as_it_is)
{
    open_again(0, OTEL_ZERO);
    make_directory();
    assert_int_equal(mkdir(like_ours(OTELI_SPOOL_WHOLE, 1), 0700), 0);
    spool_files_write(in_own("notes.txt"), "mine", 4);

    assert_true(put("one", 1));
    assert_string_equal(take(), "one");

    assert_int_equal(COUNTED(foreign_files), 2);
    assert_int_equal(spool_files_count(&files, ""), 2);
}

/* R47, and whoever else can write there: a link leads out of the directory. */
TEST(no_link_is_followed)
{
    static const enum oteli_spool_name kinds[] = {OTELI_SPOOL_WHOLE, OTELI_SPOOL_TEMPORARY};
    char secret[512];
    open_again(0, OTEL_ZERO);
    make_directory();
    snprintf(secret, sizeof secret, "%s/secret", files.path);
    spool_files_write(secret, "secret", 6);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(symlink(secret, like_ours(kinds[i], 1)), 0);
    assert_int_equal(symlink(files.path, spool_files_own(&files)), -1);

    assert_string_equal(take(), "");
    assert_true(put("one", 1));
    assert_string_equal(take(), "one");

    assert_int_equal(access(secret, F_OK), 0);
    assert_int_equal(spool_files_count(&files, ""), 2);
}

/* A server that has started as root, and then drops its privileges. */
TEST(a_user_that_the_process_becomes_has_a_directory_of_its_own)
{
    enum { NOBODY = 65534 };
    if (geteuid() != 0)
        skip();
    assert_true(put("root", 1));
    assert_int_equal(chmod(files.path, 0777), 0);

    assert_int_equal(seteuid(NOBODY), 0);
    const bool is_put = put("nobody", 1);
    char taken[16];
    snprintf(taken, sizeof taken, "%s", take());
    assert_int_equal(seteuid(0), 0);

    assert_true(is_put);
    assert_string_equal(taken, "nobody");
    assert_string_equal(take(), "root");
}

static struct timespec stamp(void)
{
    struct stat status;
    assert_int_equal(stat(spool_files_own(&files), &status), 0);
    return status.st_mtim;
}

/* As if nothing had happened since then. */
static void set_stamp(struct timespec then)
{
    const struct timespec stamps[2] = {then, then};
    assert_int_equal(utimensat(AT_FDCWD, spool_files_own(&files), stamps, 0), 0);
}

TEST(a_file_that_has_become_a_link_is_not_followed)
{
    char path[256];
    char moved[128];
    assert_true(put("one", 1));
    const struct timespec then = stamp();
    snprintf(path, sizeof path, "%s", spool_files_oldest(&files, ".otlp"));
    snprintf(moved, sizeof moved, "%s/moved", files.path);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(symlink(moved, path), 0);
    set_stamp(then);

    assert_string_equal(take(), "");

    assert_int_equal(access(moved, F_OK), 0);
}

/* The clock of a file system stands still for some milliseconds. */
TEST(what_others_put_within_one_tick_is_found)
{
    struct oteli_spool *other = open_one();
    assert_true(put("one", 1));
    assert_string_equal(take(), "one");
    const struct timespec then = stamp();
    assert_true(oteli_spool_put(other, "two", 3, 2));
    set_stamp(then);

    assert_string_equal(take(), "two");
    oteli_spool_close(other);
}

/* The oldest file is of a newer version from now on. */
static void change_version(void)
{
    FILE *file = fopen(spool_files_oldest(&files, ".otlp"), "r+e");
    assert_non_null(file);
    assert_int_equal(fseek(file, 8, SEEK_SET), 0);
    assert_int_equal(fputc(2, file), 2);
    fclose(file);
}

TEST(a_file_of_a_newer_version_is_left_for_it)
{
    assert_true(put("first", 5));
    change_version();
    assert_true(put("second", 2));

    assert_string_equal(take(), "second");
    assert_string_equal(take(), "");
    assert_true(oteli_spool_is_empty(spool));

    assert_int_equal(spool_files_count(&files, ".otlp"), 1);
    assert_int_equal(COUNTED(foreign_files), 1);
    assert_int_equal(COUNTED(torn_files), 0);
}

TEST(what_a_killed_program_was_writing_is_cleared_away)
{
    make_directory();
    spool_files_write(like_ours(OTELI_SPOOL_TEMPORARY, seconds_ago(3600)), "half", 4);
    /* Somebody is at the other one. */
    spool_files_write(like_ours(OTELI_SPOOL_TEMPORARY, seconds_ago(1)), "half", 4);

    assert_true(put("one", 1));
    assert_string_equal(take(), "one");

    assert_int_equal(spool_files_count(&files, ".tmp"), 1);
    assert_int_equal(COUNTED(foreign_files), 0);
}

/* ---- the directory itself ------------------------------------------------------------- */

TEST(nobody_else_can_read_or_write_what_is_ours)
{
    struct stat status;
    assert_true(put("one", 1));

    assert_int_equal(stat(spool_files_own(&files), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    assert_int_equal(stat(spool_files_oldest(&files, ".otlp"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_string_equal(take(), "one");
    char lock[sizeof files.own + 8];
    snprintf(lock, sizeof lock, "%s/lock", files.own);
    assert_int_equal(stat(lock, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
}

TEST(a_directory_that_others_may_write_to_is_not_used)
{
    make_directory();
    oteli_spool_close(spool);
    assert_int_equal(chmod(spool_files_own(&files), 0770), 0);
    spool = open_one();
    before = spool_files_stats();

    assert_false(put("one", 1));
    assert_string_equal(take(), "");
    assert_int_equal(COUNTED(failures), 1);
    assert_int_equal(spool_files_count(&files, ""), 0);
    assert_int_equal(chmod(spool_files_own(&files), 0700), 0);

    assert_true(put("two", 1));
}

TEST(a_link_in_the_place_of_our_directory_is_not_used)
{
    char elsewhere[] = "/tmp/otel-spool-else-XXXXXX";
    assert_non_null(mkdtemp(elsewhere));
    make_directory();
    oteli_spool_close(spool);
    char own[sizeof files.own];
    char lock[sizeof files.own + 8];
    memcpy(own, spool_files_own(&files), sizeof own);
    snprintf(lock, sizeof lock, "%s/lock", own);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(rmdir(own), 0);
    assert_int_equal(symlink(elsewhere, own), 0);
    spool = open_one();

    assert_false(put("one", 1));

    assert_int_equal(unlink(own), 0);
    assert_int_equal(rmdir(elsewhere), 0); /* it is empty */
}

TEST(a_directory_that_is_missing_may_come_later)
{
    char moved[sizeof files.path + 8];
    snprintf(moved, sizeof moved, "%s.away", files.path);
    assert_int_equal(rename(files.path, moved), 0);
    open_again(0, 0);

    assert_false(put("one", 1));
    assert_string_equal(take(), "");
    assert_int_equal(rename(moved, files.path), 0);

    assert_true(put("two", 2));
    assert_string_equal(take(), "two");
    assert_int_equal(COUNTED(failures), 1);
}

TEST(a_directory_that_is_removed_is_made_again)
{
    char lock[sizeof files.own + 8];
    assert_true(put("one", 1));
    assert_int_equal(unlink(spool_files_oldest(&files, ".otlp")), 0);
    snprintf(lock, sizeof lock, "%s/lock", files.own);
    (void)unlink(lock);
    assert_int_equal(rmdir(files.own), 0);

    assert_true(put("two", 2));

    assert_string_equal(take(), "two");
    assert_int_equal(COUNTED(taken), 1);
}

/* ---- R48: the disk says no ------------------------------------------------------------ */

static const int errors[] = {ENOSPC, EDQUOT, EROFS, EIO, EMFILE, ENFILE, ENOMEM, EACCES, EFBIG};

TEST(whatever_fails_in_a_put_leaves_nothing_behind_and_works_again)
{
    static const enum spool_call calls[] = {SPOOL_OPENAT, SPOOL_PWRITE, SPOOL_RENAMEAT,
                                            SPOOL_CLOSE};
    make_directory();
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (size_t k = 0; k < sizeof errors / sizeof *errors; k++) {
            before = spool_files_stats();
            spool_calls.errors[calls[i]] = errors[k];
            errno = 0;
            assert_false(put("one", 3));
            assert_int_equal(errno, 0);
            spool_calls.errors[calls[i]] = 0;
            assert_int_equal(COUNTED(failures), 3);
            assert_int_equal(COUNTED(stored), 0);
            assert_int_equal(spool_files_count(&files, ""), 0);

            assert_true(put("two", 1));
            assert_string_equal(take(), "two");
        }
}

TEST(a_disk_that_is_full_in_the_middle_of_a_file_leaves_nothing_behind)
{
    make_directory();
    for (size_t written = 1; written < HEAD + 8; written += 6) {
        spool_calls.most_written = written;
        spool_calls.fail_at = 0;
        spool_calls.count = 0;
        assert_true(put("12345678", 1)); /* how many calls that takes */
        const size_t calls = spool_calls.count;
        assert_string_equal(take(), "12345678");
        for (size_t call = 1; call <= calls; call++) {
            spool_calls.count = 0;
            spool_calls.fail_at = call;
            spool_calls.fail_with = ENOSPC;
            const bool is_done = put("12345678", 1);
            spool_calls.fail_at = 0;
            assert_int_equal(spool_files_count(&files, ".otlp"), is_done);
            if (is_done)
                assert_string_equal(take(), "12345678");
        }
    }
    assert_int_equal(spool_files_count(&files, ".otlp"), 0);
}

/* The file stays, but is not sent once more by this process. */
TEST(what_was_sent_and_cannot_be_removed_is_not_sent_again)
{
    assert_true(put("newer", 7));
    change_version();
    assert_true(put("one", 1));
    assert_true(put("two", 2));
    spool_calls.errors[SPOOL_UNLINKAT] = EROFS;

    assert_string_equal(take(), "one");
    assert_string_equal(take(), "two");
    assert_string_equal(take(), "");
    assert_int_equal(COUNTED(sent), 3);
    assert_int_equal(spool_files_count(&files, ".otlp"), 3);
    spool_calls.errors[SPOOL_UNLINKAT] = 0;
    assert_true(put("six", 6));
    assert_string_equal(take(), "six");
    set_stamp((struct timespec){.tv_sec = 1}); /* it is read again */
    assert_string_equal(take(), "");
    assert_int_equal(spool_files_count(&files, ".otlp"), 1);
}

TEST(a_file_that_cannot_be_read_now_waits)
{
    static const int for_now[] = {EMFILE, ENFILE, ENOMEM, EIO, ESTALE};
    assert_true(put("one", 1));
    for (size_t i = 0; i < sizeof for_now / sizeof *for_now; i++) {
        spool_calls.errors[SPOOL_OPENAT] = for_now[i];
        assert_string_equal(take(), "");
        spool_calls.errors[SPOOL_OPENAT] = 0;
        assert_false(oteli_spool_is_empty(spool));
    }
    spool_calls.errors[SPOOL_READ] = EIO; /* the lock is there by then */
    assert_string_equal(take(), "");
    spool_calls.errors[SPOOL_READ] = 0;

    struct oteli_spool *other = open_one();
    assert_string_equal(take_from(other, OTELI_CALL_DELIVERED), "one");
    oteli_spool_close(other);
}

TEST(a_limit_for_files_raises_no_signal)
{
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    const struct rlimit small = {HEAD + 4, old.rlim_max};
    make_directory();
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);

    assert_false(put("too long", 1));
    assert_true(put("four", 1));

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_string_equal(take(), "four");
}

TEST(without_memory_nothing_is_lost_uncounted)
{
    bool all_tried = false;
    for (size_t nth = 1; !all_tried; nth++) {
        before = spool_files_stats();
        oteli_leaks_fail_at(nth);
        const bool is_put = put("one", 1);
        const bool is_back = strcmp(take(), "one") == 0;
        all_tried = !oteli_leaks_failed();
        assert_int_equal(COUNTED(stored), is_put);
        assert_int_equal(COUNTED(failures), !is_put);
        if (is_put && !is_back)
            assert_string_equal(take(), "one");
        open_again(0, 0);
    }
}

TEST(without_memory_there_is_no_spool)
{
    oteli_leaks_fail_at(1);
    assert_null(open_one());
    oteli_leaks_fail_at(0);
}

/* R47: the program closes what it does not know, and opens its own. */
TEST(a_directory_in_the_place_of_ours_is_left_alone)
{
    char elsewhere[] = "/tmp/otel-spool-else-XXXXXX";
    struct oteli_spool_item item;
    assert_non_null(mkdtemp(elsewhere));
    assert_true(put("one", 1));
    assert_true(oteli_spool_first(spool, &item)); /* the lock is open as well */
    const int theirs = open(elsewhere, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(theirs >= 0);
    for (int fd = 3; fd < 64; fd++)
        if (fd != theirs && fcntl(fd, F_GETFD) >= 0)
            assert_int_equal(dup2(theirs, fd), fd);

    oteli_spool_settle(spool, OTELI_CALL_EXHAUSTED, 0);
    assert_true(put("two", 2));
    assert_string_equal(take(), "one");
    assert_string_equal(take(), "two");

    for (int fd = 3; fd < 64; fd++)
        if (fcntl(fd, F_GETFD) >= 0) {
            struct stat status;
            struct stat wanted;
            if (fstat(fd, &status) == 0 && stat(elsewhere, &wanted) == 0 &&
                status.st_ino == wanted.st_ino)
                close(fd);
        }
    assert_int_equal(rmdir(elsewhere), 0); /* it is empty */
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct unit_file *files;

void unit_add(struct unit_file *file, struct unit_test *test)
{
    if (file->first == NULL) {
        file->next = files;
        files = file;
        file->first = test;
    } else {
        file->last->next = test;
    }
    file->last = test;
}

/* "queue" for tests/unit/sdk/ring_test.c. */
static const char *name_of(const struct unit_file *file)
{
    static char name[128];
    const char *slash = strrchr(file->path, '/');
    snprintf(name, sizeof name, "%s", slash != NULL ? slash + 1 : file->path);
    char *end = strstr(name, "_test.c");
    if (end != NULL)
        *end = '\0';
    return name;
}

static int run(const struct unit_file *file, const char *only)
{
    struct CMUnitTest tests[256];
    size_t count = 0;
    for (const struct unit_test *at = file->first; at != NULL; at = at->next) {
        if (only != NULL && strcmp(only, at->test.name) != 0)
            continue;
        if (count == sizeof tests / sizeof *tests)
            abort();
        tests[count] = at->test;
        if (!at->has_own) {
            tests[count].setup_func = file->set_up;
            tests[count].teardown_func = file->tear_down;
        }
        count++;
    }
    if (count == 0) {
        fprintf(stderr, "no such test: %s\n", only);
        return 2;
    }
    const int failed =
        _cmocka_run_group_tests(name_of(file), tests, count, file->set_up_all, file->tear_down_all);
    return failed != 0;
}

static int run_each(const char *program)
{
    int failed = 0;
    for (const struct unit_file *file = files; file != NULL; file = file->next) {
        const pid_t child = fork();
        if (child == 0) {
            execl("/proc/self/exe", program, name_of(file), (char *)NULL);
            _exit(127);
        }
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            fprintf(stderr, "FAILED: %s %s\n", program, name_of(file));
            failed = 1;
        }
    }
    return failed;
}

static void list(const char *only)
{
    for (const struct unit_file *file = files; file != NULL; file = file->next)
        for (const struct unit_test *at = file->first; at != NULL; at = at->next)
            if (only == NULL || strcmp(only, name_of(file)) == 0)
                printf("%s %s\n", name_of(file), at->test.name);
}

int main(int count, char **arguments)
{
    if (count < 2)
        return run_each(arguments[0]);
    if (strcmp(arguments[1], "--list") == 0) {
        list(count > 2 ? arguments[2] : NULL);
        return 0;
    }
    for (const struct unit_file *file = files; file != NULL; file = file->next)
        if (strcmp(arguments[1], name_of(file)) == 0)
            return run(file, count > 2 ? arguments[2] : NULL);
    fprintf(stderr, "no such file of tests: %s; try --list\n", arguments[1]);
    return 2;
}

void check_forked(pid_t child)
{
    int status = -1;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

void check_child(int (*life)(void))
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(life());
    }
    check_forked(child);
}

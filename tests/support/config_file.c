/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/config_file.c - see config_file.h. */
#include "tests/support/config_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct config_file config_file;
char config_file_errors[8192];
char config_file_warnings[4096];
char config_path[] = "/tmp/otel-config-XXXXXX.yaml";

static void add_line(char *text, size_t size, const char *line)
{
    const size_t length = strlen(text);
    snprintf(text + length, size - length, "%s\n", line);
}

static void note(void *state, otel_log_level level, const char *message)
{
    (void)state;
    if (level == OTEL_LOG_ERROR)
        add_line(config_file_errors, sizeof config_file_errors, message);
    if (level == OTEL_LOG_WARN)
        add_line(config_file_warnings, sizeof config_file_warnings, message);
}

int config_file_begin(void **state)
{
    (void)state;
    config_file_errors[0] = '\0';
    config_file_warnings[0] = '\0';
    otel_log_set_handler(note, NULL);
    return 0;
}

int config_file_end(void **state)
{
    (void)state;
    otel_log_set_handler(NULL, NULL);
    config_file_free();
    return 0;
}

static void begin_file(void)
{
    config_file_free();
    config_file.file = (struct oteli_file){.path = "t.yaml"};
    config_file_begin(NULL);
}

void config_file_read(const char *text)
{
    begin_file();
    config_file.status =
        oteli_file_parse(text, strlen(text), &config_file.file, &config_file.settings);
}

void config_file_parse(const char *text, size_t length)
{
    begin_file();
    config_file.root = oteli_document_read(text, length, &config_file.file);
    config_file.status = oteli_file_status(&config_file.file);
}

void config_file_free(void)
{
    oteli_pool_fini(&config_file.file.pool);
    memset(&config_file, 0, sizeof config_file);
}

int config_path_make(void **state)
{
    (void)state;
    const int fd = mkstemps(config_path, 5);
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

int config_path_remove(void **state)
{
    (void)state;
    return unlink(config_path);
}

void config_path_write(const char *text)
{
    FILE *file = fopen(config_path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

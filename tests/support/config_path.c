/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/config_path.c - the contracts are in config_path.h. */
#include "tests/support/config_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

char config_path[] = "/tmp/otel-config-XXXXXX.yaml";

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

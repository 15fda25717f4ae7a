/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/config_file.h - read a configuration from a text, and hear what is said. One
 * thread at a time. */
#ifndef OTELI_TESTS_CONFIG_FILE_H
#define OTELI_TESTS_CONFIG_FILE_H

#include "config/yaml_file.h"

struct config_file {
    struct oteli_file file;
    struct oteli_settings settings;
    const struct oteli_node *root; /* of config_file_parse */
    otel_status status;
};

/* What was read last; config_file_end, and what is read next, lets go of it. */
extern struct config_file config_file;

/* All that was logged since the last begin: errors and warnings, a line each. */
extern char config_file_errors[8192];
extern char config_file_warnings[4096];

/* For setup and teardown: listens to the log. */
int config_file_begin(void **state);
int config_file_end(void **state);

/* The whole way to settings, as t.yaml. */
void config_file_read(const char *text);

/* Only to a document, whatever is in it. */
void config_file_parse(const char *text, size_t length);

void config_file_free(void);

/* A file of this run of a test: for setup and teardown of a group, and what is in it from now
 * on. */
extern char config_path[];
int config_path_make(void **state);
int config_path_remove(void **state);
void config_path_write(const char *text);

#endif

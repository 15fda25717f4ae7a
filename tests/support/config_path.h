/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/config_path.h - a configuration file of this run of a test. One thread at a time. */
#ifndef OTELI_TESTS_CONFIG_PATH_H
#define OTELI_TESTS_CONFIG_PATH_H

extern char config_path[];

/* For setup and teardown of a group. */
int config_path_make(void **state);
int config_path_remove(void **state);

/* From now on this is in it. */
void config_path_write(const char *text);

#endif

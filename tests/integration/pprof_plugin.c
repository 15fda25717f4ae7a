/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/pprof_plugin.c - what pprof_sampled loads, and unloads before anybody asks. */

void plugin_burn(void);

static volatile unsigned sink;

void plugin_burn(void)
{
    for (unsigned i = 0; i < 100 * 1000; i++)
        sink += i;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/functions_loaded.c - a shared library that is compiled with
 * -finstrument-functions; the tests of functions/ load it, or are linked with it. */
void loaded_work(void);
void *loaded_hidden_address(void);
void loaded_excluded(void);

static int worked;

__attribute__((noinline)) static void loaded_hidden(void)
{
    worked++;
}

void loaded_excluded(void)
{
    loaded_hidden();
}

void loaded_work(void)
{
    loaded_hidden();
    loaded_excluded();
}

__attribute__((no_instrument_function)) void *loaded_hidden_address(void)
{
    void *address;
    void (*const hidden)(void) = loaded_hidden;
    __builtin_memcpy(&address, &hidden, sizeof address);
    return address;
}

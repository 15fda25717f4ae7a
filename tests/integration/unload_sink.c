/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/unload_sink.c - the receiver of unload.c, which has no library that a plug-in
 * might bring: writes its port to stdout, two bytes, and ends with its parent. */
#include "tests/support/http_sink.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const uint16_t port = http_sink_port(http_sink_start(NULL, 0));
    if (write(STDOUT_FILENO, &port, sizeof port) != sizeof port)
        return 1;
    for (;;)
        pause();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/make_certificates.c - for scripts: an authority (ca), and from it a pair for a
 * server of this machine and one for a client, in a directory that is there.
 *
 *     make_certificates DIRECTORY [NAME...]      without names: server client
 *
 * NAME! has expired, and NAME=HOSTS is for other hosts: other=DNS:elsewhere.example */
#include "tests/support/certificates.h"

#include <stdio.h>
#include <string.h>

static void issue(struct certificates *certificates, char *text)
{
    struct certificate_request request = {.name = text};
    char *mark = text + strcspn(text, "=!");
    request.is_expired = *mark == '!';
    request.hosts = *mark == '=' ? mark + 1 : NULL;
    *mark = '\0';
    certificates_issue(certificates, &request);
}

int main(int count, char **arguments)
{
    if (count < 2) {
        fprintf(stderr, "usage: %s DIRECTORY [NAME...]\n", arguments[0]);
        return 2;
    }
    static const char *const usual[] = {"server", "client"};
    struct certificates *certificates = certificates_new_in(arguments[1]);
    for (int i = 0; i < 2 && count == 2; i++)
        certificates_issue(certificates, &(const struct certificate_request){.name = usual[i]});
    for (int i = 2; i < count; i++)
        issue(certificates, arguments[i]);
    certificates_free(certificates);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* examples/library/untraced.c - a program that uses the traced library and has no SDK.
 *
 *     cc untraced.c wordcount.c -o untraced $(pkg-config --cflags --libs otel-api)
 *     ./untraced
 *
 * prints "6 words". The library's spans go nowhere, and of otel-c only the small otel-api
 * is in the process. */
#include "wordcount.h"

#include <stdio.h>

int main(void)
{
    printf("%zu words\n", wordcount("to be or not to be"));
    return 0;
}

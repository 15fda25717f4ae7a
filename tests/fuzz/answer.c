/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/answer.c - the bodies that a receiver answers with, whole and cut. What is found
 * lies in the body, and can be logged. */
#include "exporters/otlp/answer.h"
#include "common/utf8.h"

#include <stdlib.h>
#include <string.h>

static void look_at(otel_slice message, const struct oteli_answer_body *body)
{
    const char *bytes = (const char *)body->bytes;
    if (message.length != 0 &&
        (message.data < bytes || message.data + message.length > bytes + body->length))
        abort();
    char line[100];
    if (!oteli_utf8_is_valid(oteli_answer_printable(message, line, sizeof line), strlen(line)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        const struct oteli_answer_body body = {data, size, is_cut != 0};
        look_at(oteli_answer_partial_success(&body).message, &body);
        look_at(oteli_answer_status_message(&body), &body);
    }
    return 0;
}

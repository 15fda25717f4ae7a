/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/fuzz.h - what the targets share. One source a program includes it. */
#ifndef OTELI_TESTS_FUZZ_H
#define OTELI_TESTS_FUZZ_H

#include <otel/sdk.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_say_nothing(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    (void)message;
}

/* Whatever is logged is fine, and not seen. */
static inline void fuzz_be_quiet(void)
{
    otel_log_set_handler(fuzz_say_nothing, NULL);
}

static inline void fuzz_check(bool is_right)
{
    if (!is_right)
        abort();
}

/* What is left of an input; behind its end there are zeros. */
struct fuzz_input {
    const uint8_t *at;
    const uint8_t *end;
};

static inline uint8_t fuzz_take(struct fuzz_input *input)
{
    return input->at != input->end ? *input->at++ : 0;
}

/* As many of the next bytes as the first of them says. */
static inline otel_slice fuzz_take_text(struct fuzz_input *input)
{
    size_t length = fuzz_take(input);
    if (length > (size_t)(input->end - input->at))
        length = (size_t)(input->end - input->at);
    input->at += length;
    return (otel_slice){(const char *)input->at - length, length};
}

/* A copy with a NUL behind it; NULL: no memory. free() it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL)
        return NULL;
    if (size != 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of gRPC, its percent-encoded messages, and what its details say. What a code means is in
 * protocol_test.c. */
#include "exporters/otlp/grpc.h"
#include "tests/support/unit.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(a_frame_says_compressed_and_how_long)
{
    uint8_t frame[OTELI_GRPC_FRAME];
    assert_ptr_equal(oteli_grpc_put_frame(frame, true, 0x01020304), frame + sizeof frame);
    assert_memory_equal(frame, "\1\1\2\3\4", sizeof frame);
    oteli_grpc_put_frame(frame, false, 5);
    assert_memory_equal(frame, "\0\0\0\0\5", sizeof frame);
}

static void assert_message(const char *bytes, size_t length, bool is_cut, const char *expected,
                           bool expected_cut)
{
    /* A copy of exactly the length, so that a sanitizer sees a read behind the end. */
    uint8_t *copy = malloc(length);
    if (length != 0)
        memcpy(copy, bytes, length);
    const struct oteli_answer_body body = {copy, length, is_cut};
    bool is_compressed;
    const struct oteli_answer_body message = oteli_grpc_message(&body, &is_compressed);
    assert_int_equal(message.length, strlen(expected));
    assert_memory_equal(message.bytes, expected, message.length);
    assert_int_equal(message.is_cut, expected_cut);
    assert_int_equal(is_compressed, message.length != 0 && bytes[0] == 1);
    free(copy);
}

TEST(the_message_of_a_body_is_found)
{
    assert_message("\0\0\0\0\3abc", 8, false, "abc", false);
    assert_message("\1\0\0\0\3abc", 8, false, "abc", false);
    assert_message("\0\0\0\0\2abc", 8, false, "ab", false); /* what is behind is not looked at */
    assert_message("\0\0\0\0\0", 5, false, "", false);
    assert_message("\0\0\0\0\4abc", 8, true, "abc", true);
    assert_message("\0\0\0\0\4abc", 8, false, "", false);
    assert_message("\0\xff\xff\xff\xff"
                   "abc",
                   8, false, "", false);
    assert_message("\2\0\0\0\3abc", 8, false, "", false);
    assert_message("\0\0\0\0", 4, false, "", false);
    assert_message("", 0, false, "", false);
}

static void assert_text(const char *encoded, size_t size, const char *expected)
{
    char out[64];
    assert_string_equal(oteli_grpc_text(encoded, out, size), expected);
}

TEST(messages_are_percent_decoded)
{
    assert_text("", 64, "");
    assert_text("plain text", 64, "plain text");
    assert_text("a%20b%2525", 64, "a b%25");
    assert_text("%c3%A4", 64, "\xc3\xa4");
    assert_text("%", 64, "%");
    assert_text("%4", 64, "%4");
    assert_text("%4g%g4", 64, "%4g%g4");
    assert_text("a%0A%1b%7Fb", 64, "a   b");
    assert_text("a%00b", 64, "a b");
    assert_text("ok%ffbad", 64, "ok"); /* no UTF-8 */
    assert_text("abc%20def", 6, "abc d");
    assert_text("abc%c3%a4", 5, "abc"); /* half a character does not fit */
}

static char *base64(const uint8_t *bytes, size_t length, bool is_padded)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = calloc(1, length / 3 * 4 + 8);
    char *at = text;
    for (size_t i = 0; i < length; i += 3) {
        uint32_t bits = (uint32_t)bytes[i] << 16;
        bits |= i + 1 < length ? (uint32_t)bytes[i + 1] << 8 : 0;
        bits |= i + 2 < length ? bytes[i + 2] : 0;
        for (size_t k = 0; k < 4; k++) {
            const bool is_there = i + k <= length;
            if (is_there || is_padded)
                *at++ = is_there ? digits[bits >> (18 - 6 * k) & 63] : '=';
        }
    }
    return text;
}

static size_t put_field(uint8_t *out, uint8_t number, const void *bytes, size_t length)
{
    out[0] = (uint8_t)(number << 3 | 2);
    out[1] = (uint8_t)length;
    memcpy(out + 2, bytes, length);
    return length + 2;
}

/* A Status with some other detail, and a RetryInfo of this Duration. */
static size_t make_status(uint8_t *out, const char *type_url, const void *duration, size_t length)
{
    uint8_t info[64], any[128];
    size_t at = put_field(info, 1, duration, length);
    size_t any_length = put_field(any, 1, type_url, strlen(type_url));
    any_length += put_field(any + any_length, 2, info, at);
    memcpy(out, "\x08\x08\x12\x01x", 5);
    at = 5;
    at += put_field(out + at, 3,
                    "\x0a\x03"
                    "a/b",
                    5);
    return at + put_field(out + at, 3, any, any_length);
}

#define RETRY_INFO "type.googleapis.com/google.rpc.RetryInfo"

TEST(the_delay_of_retry_info_is_found)
{
    static const struct {
        const char *duration;
        size_t length;
        uint64_t delay_ms;
    } cases[] = {
        {"", 0, 0},
        {"\x08\x05", 2, 5000},
        {"\x10\x01", 2, 1},                                      /* rounded up */
        {"\x08\x01\x10\x80\xca\xb5\xee\x01", 8, 1500},           /* 500,000,000 ns */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, 0}, /* -1 s */
        {"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, 0}, /* -1 ns */
        {"\x10\x80\x94\xeb\xdc\x03", 6, 0},                      /* 10^9 ns are none */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int is_padded = 0; is_padded < 2; is_padded++) {
            uint8_t status[256];
            const size_t length =
                make_status(status, RETRY_INFO, cases[i].duration, cases[i].length);
            char *details = base64(status, length, is_padded != 0);
            uint64_t delay_ms = 1;
            assert_true(oteli_grpc_retry_ms(details, &delay_ms));
            assert_int_equal(delay_ms, cases[i].delay_ms);
            free(details);
        }
    }
}

TEST(other_details_say_nothing)
{
    static const char *const others[] = {"", "=", "!!!", "CAg=", "CAgS//8=", "/////////////w=="};
    uint64_t delay_ms;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(oteli_grpc_retry_ms(others[i], &delay_ms));
    uint8_t status[256];
    const size_t length = make_status(status, "x/google.rpc.QuotaFailure", "\x08\x05", 2);
    char *details = base64(status, length, true);
    assert_false(oteli_grpc_retry_ms(details, &delay_ms));
    assert_int_equal(delay_ms, 0);
    free(details);
}

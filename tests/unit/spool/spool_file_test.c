/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/spool/spool_file_test.c - specification of exporters/otlp/spool/spool_file.c: nothing
 * that was cut or changed passes for a request. */
#include "exporters/otlp/spool/spool_file.h"

#include "tests/support/unit.h"

#include <string.h>

enum { LENGTH = 100, SIZE = OTELI_SPOOL_HEAD + LENGTH };

static const struct oteli_spool_file known = {.written_unix_ns = UINT64_C(1700000000123456789),
                                              .id = UINT64_C(0xfedcba9876543210),
                                              .spans = 512,
                                              .length = LENGTH};
static const char known_name[] = "17979cfe3d85cd15-fedcba9876543210-00000200-00000064.otlp";

static void make(uint8_t content[SIZE], otel_otlp_protocol format)
{
    for (size_t i = 0; i < LENGTH; i++)
        content[OTELI_SPOOL_HEAD + i] = (uint8_t)(i * 37);
    oteli_spool_head_write(&known, format, content + OTELI_SPOOL_HEAD, content);
}

static enum oteli_spool_content check(const void *content, size_t size)
{
    return oteli_spool_content_check(&known, OTEL_OTLP_HTTP_PROTOBUF, content, size);
}

TEST(a_name_says_what_is_in_the_file)
{
    char name[OTELI_SPOOL_NAME];
    struct oteli_spool_file file;

    oteli_spool_name_write(&known, OTELI_SPOOL_WHOLE, name);
    assert_string_equal(name, known_name);
    assert_int_equal(oteli_spool_name_read(name, &file), OTELI_SPOOL_WHOLE);

    assert_memory_equal(&file, &known, sizeof file);
}

TEST(names_sort_by_time)
{
    static const struct oteli_spool_file files[] = {
        {.written_unix_ns = 9, .id = UINT64_MAX},
        {.written_unix_ns = 10, .id = 1},
        {.written_unix_ns = 10, .id = 2, .spans = 1},
        {.written_unix_ns = 10, .id = 2, .spans = 2, .length = 1},
        {.written_unix_ns = 10, .id = 2, .spans = 2, .length = 2},
        {.written_unix_ns = UINT64_C(1) << 63, .id = 0}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
            char one[OTELI_SPOOL_NAME];
            char other[OTELI_SPOOL_NAME];
            oteli_spool_name_write(&files[i], OTELI_SPOOL_WHOLE, one);
            oteli_spool_name_write(&files[k], OTELI_SPOOL_WHOLE, other);

            const int by_name = strcmp(one, other);
            const int by_file = oteli_spool_file_compare(&files[i], &files[k]);

            assert_int_equal((by_name > 0) - (by_name < 0), by_file);
        }
}

TEST(other_names_are_not_ours)
{
    static const char *const names[] = {
        "",
        "lock",
        ".otlp",
        "17979cfe3d85cd15-fedcba9876543210-00000200-00000064",
        "17979cfe3d85cd15-fedcba9876543210-00000200-00000064.otlp ",
        "17979cfe3d85cd15-fedcba9876543210-00000200-00000064.otlpx",
        "17979cfe3d85cd15-fedcba9876543210-00000200-00000064.tmp2",
        "17979CFE3D85CD15-fedcba9876543210-00000200-00000064.otlp",
        "17979cfe3d85cd1-fedcba9876543210-00000200-00000064.otlp",
        "17979cfe3d85cd15_fedcba9876543210-00000200-00000064.otlp",
        "17979cfe3d85cd15-fedcba9876543210-00000200-0000006g.otlp",
        " 7979cfe3d85cd15-fedcba9876543210-00000200-00000064.otlp",
        "17979cfe3d85cd15-",
        "../979cfe3d85cd15-fedcba9876543210-00000200-00000064.otlp"};
    struct oteli_spool_file file;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(oteli_spool_name_read(names[i], &file), OTELI_SPOOL_OTHER);
}

TEST(a_file_that_is_torn_anywhere_is_noticed)
{
    uint8_t content[SIZE + 1] = {0};
    make(content, OTEL_OTLP_HTTP_PROTOBUF);

    for (size_t size = 0; size < SIZE; size++)
        assert_int_equal(check(content, size), OTELI_SPOOL_TORN);
    assert_int_equal(check(content, SIZE + 1), OTELI_SPOOL_TORN);
    for (size_t from = 0; from < SIZE; from++) { /* zeros, where a disk did not get to */
        make(content, OTEL_OTLP_HTTP_PROTOBUF);
        memset(content + from, 0, SIZE - from);
        assert_int_equal(check(content, SIZE), OTELI_SPOOL_TORN);
    }
}

TEST(a_file_with_any_bit_changed_is_noticed)
{
    uint8_t content[SIZE];
    make(content, OTEL_OTLP_HTTP_PROTOBUF);
    for (size_t bit = 0; bit < 8 * (size_t)SIZE; bit++) {
        content[bit / 8] ^= (uint8_t)(1U << bit % 8);
        assert_int_not_equal(check(content, SIZE), OTELI_SPOOL_GOOD);
        content[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    assert_int_equal(check(content, SIZE), OTELI_SPOOL_GOOD);
}

TEST(a_good_file_under_another_name_is_noticed)
{
    uint8_t content[SIZE];
    make(content, OTEL_OTLP_HTTP_PROTOBUF);
    struct oteli_spool_file others[] = {known, known, known, known};
    others[0].id++;
    others[1].spans++;
    others[2].length--;
    others[3].written_unix_ns++;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(
            oteli_spool_content_check(&others[i], OTEL_OTLP_HTTP_PROTOBUF, content, SIZE),
            OTELI_SPOOL_TORN);
}

TEST(the_other_format_is_somebody_elses)
{
    uint8_t content[SIZE];
    make(content, OTEL_OTLP_HTTP_JSON);
    assert_int_equal(check(content, SIZE), OTELI_SPOOL_FOREIGN);

    make(content, OTEL_OTLP_GRPC); /* whose requests are the same bytes */
    assert_int_equal(check(content, SIZE), OTELI_SPOOL_GOOD);
}

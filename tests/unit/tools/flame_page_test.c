/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/tools/flame_page_test.c - specification of tools/flame/flame_page.c, flame_text.c and
 * flame_tree.c for profiles that somebody else has made: whatever is called what, the page is the
 * same page. */
#include "tests/support/markup_check.h"
#include "tests/support/unit.h"
#include "tools/flame/flame_page.h"
#include "tools/flame/flame_text.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { PROFILE_ROOM = 4096 };

static const char *const hostile[] = {
    "</script><script>alert(1)</script>",
    "]]></script><img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "' onmouseover='alert(1)",
    "</title></svg></style>",
    "<!-- --> <![CDATA[ ]]>",
    "a & b &amp; &lt; &#60;",
    "bad \xc3\x28 \xff\xfe \xe2\x80 utf-8",
    "line\342\200\250para\342\200\251sep",
    "two\nlines\ttab\rreturn",
    "\x1b[31mred\x1b]0;title\x07",
    "turned \xe2\x80\xaegnp.exe",
    "\302\23331m control \x7f",
    "\xef\xbf\xbe\xef\xbf\xbf nothing",
    "${x} `x` \\u003cscript\\u003e",
    "javascript:alert(1)",
};

/* --- A profile in which everything has a hostile name --- */

struct profile_bytes {
    uint8_t bytes[PROFILE_ROOM];
    size_t length;
};

static void put_byte(struct profile_bytes *profile, size_t byte)
{
    assert_true(profile->length < PROFILE_ROOM);
    profile->bytes[profile->length++] = (uint8_t)byte;
}

/* A field of bytes, shorter than 128. */
static void put_field(struct profile_bytes *profile, unsigned field, const void *bytes,
                      size_t length)
{
    assert_true(length < 128);
    put_byte(profile, field << 3 | 2);
    put_byte(profile, length);
    for (size_t i = 0; i < length; i++)
        put_byte(profile, ((const uint8_t *)bytes)[i]);
}

#define PUT(profile, field, ...) \
    put_field(profile, field, (const uint8_t[]){__VA_ARGS__}, sizeof(const uint8_t[]){__VA_ARGS__})

/* Mapping, function, label's key, its value and the unit are string `name`, from 1 on. */
static void make(struct profile_bytes *profile, uint8_t name)
{
    profile->length = 0;
    put_field(profile, 6, "", 0);
    for (size_t i = 0; i < COUNT(hostile); i++)
        put_field(profile, 6, hostile[i], strlen(hostile[i]));
    PUT(profile, 1, 8, name, 16, name);                           /* type and unit */
    PUT(profile, 3, 8, 1, 40, name);                              /* mapping: id, file */
    PUT(profile, 5, 8, 1, 16, name);                              /* function: id, name */
    PUT(profile, 4, 8, 1, 16, 1, 34, 2, 8, 1);                    /* location in both */
    PUT(profile, 4, 8, 2, 16, 1, 24, 99);                         /* location by address */
    PUT(profile, 2, 8, 1, 8, 2, 16, 7, 26, 4, 8, name, 16, name); /* sample with a label */
    PUT(profile, 2, 8, 2, 16, 5, 26, 4, 8, name, 24, 3);          /* the label is a number */
}

/* The page, or the picture, of a profile; to be freed. */
static char *draw(const struct profile_bytes *bytes, const struct flame_choice *choice,
                  bool is_picture, const char *title, size_t *length)
{
    struct flame_profile profile;
    struct flame_tree tree;
    char *text = NULL;
    assert_null(flame_profile_read(&profile, bytes->bytes, bytes->length));
    assert_true(flame_tree_init(&tree, choice));
    assert_null(flame_tree_add(&tree, &profile));
    flame_profile_fini(&profile);
    assert_true(flame_tree_finish(&tree));
    FILE *out = open_memstream(&text, length);
    assert_non_null(out);
    if (is_picture)
        flame_svg_write(out, &tree, title);
    else
        flame_page_write(out, &tree, title);
    fclose(out);
    flame_tree_fini(&tree);
    return text;
}

static void assert_sound(const char *text, size_t length)
{
    size_t at;
    const char *fault = markup_fault(text, length, flame_style, flame_script, &at);
    if (fault != NULL)
        fail_msg("%s at: %.80s", fault, text + (at < 40 ? 0 : at - 40));
}

TEST(no_name_gets_out_of_its_place)
{
    static struct profile_bytes profile;
    for (size_t i = 0; i < COUNT(hostile); i++) {
        make(&profile, (uint8_t)(i + 1));
        for (int how = 0; how < 4; how++) {
            size_t length;
            const struct flame_choice choice = {.key = how % 2 == 0 ? hostile[i] : NULL,
                                                .is_frame = how >= 2};
            char *text = draw(&profile, &choice, how >= 2, hostile[i], &length);
            assert_sound(text, length);
            free(text);
        }
    }
}

TEST(the_checker_sees_what_gets_out)
{
    static const char *const bad[] = {"<p>a < b</p>",         "<p onclick=\"x\"></p>",
                                      "<p>&copy;</p>",        "<p>",
                                      "<script>x</script>",   "<p></h1>",
                                      "<iframe></iframe>",    "<p>\x1b</p>",
                                      "<p class=\"\"\"></p>", "<p>\xff</p>",
                                      "<style>x</style>",     "<p class=x></p>"};
    size_t at;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_non_null(markup_fault(bad[i], strlen(bad[i]), "s", "t", &at));
    static const char good[] = "<p class=\"a\">x &lt; &#39;<span/></p>";
    assert_null(markup_fault(good, sizeof good - 1, "s", "t", &at));
}

TEST(texts_stay_readable)
{
    static const struct {
        const char *text;
        const char *markup;
        const char *plain;
    } table[] = {
        {"std::vector<int>::at(\"x\") & 'y'",
         "std::vector&lt;int&gt;::at(&quot;x&quot;) &amp; &#39;y&#39;",
         "std::vector<int>::at(\"x\") & 'y'"},
        {"gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x94\xa5",
         "gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x94\xa5",
         "gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x94\xa5"},
        {"a\nb\tc", "a b c", "a b c"},
        {"\x1b[1m", "\xef\xbf\xbd[1m", "\xef\xbf\xbd[1m"},
        {"\xe2\x80\xae"
         "x\xc2\x85",
         "\xef\xbf\xbdx\xef\xbf\xbd", "\xef\xbf\xbdx\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        for (int is_plain = 0; is_plain < 2; is_plain++) {
            char *made = NULL;
            size_t length;
            FILE *out = open_memstream(&made, &length);
            if (is_plain != 0)
                flame_put_plain(out, table[i].text);
            else
                flame_put_text(out, table[i].text);
            fclose(out);
            assert_string_equal(made, is_plain != 0 ? table[i].plain : table[i].markup);
            free(made);
        }
    }
}

TEST(numbers_that_are_too_large_stay_numbers)
{
    static struct profile_bytes profile;
    static const uint8_t most[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    size_t length;
    make(&profile, 1);
    for (int i = 0; i < 3; i++) { /* samples of 2^63 - 1 */
        put_byte(&profile, 2 << 3 | 2);
        put_byte(&profile, 3 + sizeof most);
        put_byte(&profile, 8);
        put_byte(&profile, 1);
        put_byte(&profile, 16);
        for (size_t j = 0; j < sizeof most; j++)
            put_byte(&profile, most[j]);
    }
    char *text = draw(&profile, &(struct flame_choice){.key = NULL}, false, "t", &length);
    assert_sound(text, length);
    assert_non_null(strstr(text, "9,223,372,036,854,775,807"));
    free(text);
}

/* Programs that know no variables of CSS would draw black letters on black boxes. */
TEST(a_picture_has_colours_without_variables)
{
    static const char variable[] = "; fill: var(";
    enum { COLOUR_LENGTH = sizeof "fill: #000000" - 1 };
    const char *at = flame_style;
    int count = 0;
    for (; (at = strstr(at, "fill: var(")) != NULL; at++, count++) {
        const char *before = at - 2 - COLOUR_LENGTH;
        assert_true(before > flame_style);
        assert_memory_equal(before, "fill: #", strlen("fill: #"));
        assert_memory_equal(at - 2, variable, strlen(variable));
    }
    assert_true(count > 0);
}

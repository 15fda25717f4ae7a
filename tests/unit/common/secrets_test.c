/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/secrets_test.c - specification of common/text/secrets.h. */
#include "common/text/secrets.h"
#include "tests/support/unit.h"

#include <stdint.h>

/* What is shown already stays as it is. */
static void assert_shown(const char *(*hide)(const char *text, char *out, size_t size),
                         const char *text, const char *shown)
{
    char first[256];
    char second[256];
    assert_string_equal(hide(text, first, sizeof first), shown);
    assert_string_equal(oteli_hide_in_words(first, second, sizeof second), shown);
}

static void assert_hidden(const char *text, const char *shown)
{
    assert_shown(oteli_hide_in_words, text, shown);
}

TEST(urls_are_shown_without_secrets)
{
    assert_hidden("http://h:4318/v1/traces", "http://h:4318/v1/traces");
    assert_hidden("http://user:pass@h:4318/x", "http://***@h:4318/x");
    assert_hidden("http://user:p@ss@h/x", "http://***@h/x");
    assert_hidden("https://h/x?key=secret&more#end", "https://h/x?***");
    assert_hidden("endpoint=http://u:p@h,interval=5", "endpoint=http://***@h,interval=5");
    assert_hidden("http://a:b@h and http://c:d@i", "http://***@h and http://***@i");
    assert_hidden("no URL: a@b?c", "no URL: a@b?c");
    assert_hidden("http://u:p,w@h:1/x", "http://***@h:1/x"); /* a comma needs no % there */
    assert_hidden("http://u:p/w@h:1/x", "http://***@h:1/x"); /* these do, and lack it */
    assert_hidden("\"http://u:p#w@h\", or", "\"http://***@h\", or");
    assert_hidden("http://u:p?w@h,x=1", "http://***@h,x=1");
    assert_hidden("http://[::1]:4318/a@b", "http://[::1]:4318/a@b");
    assert_hidden("http://h:4318/a@b, http://h/a@b", "http://h:4318/a@b, http://h/a@b");
    assert_hidden("https://h:1?mail=a@b", "https://h:1?***");
    assert_hidden("\"https://h?key=secret\", or", "\"https://h?***\", or");
    assert_hidden("u:p@h:1", "***@h:1"); /* as proxies may be written */
    assert_hidden("say \"u:p/=w@h\", or http://u:p@h and u:p@i",
                  "say \"***@h\", or http://***@h and ***@i");
    assert_hidden("endpoint=u:p=w@h,interval=5", "endpoint=***@h,interval=5");
    assert_hidden("contact=a@b,at=10:30", "contact=a@b,at=10:30");
    assert_hidden("", "");
    char small[8];
    assert_string_equal(oteli_hide_in_words("http://user@host", small, sizeof small), "http://");
    assert_string_equal(oteli_hide_in_words("u:p@h:4318", small, sizeof small), "***@h:4");
}

static void assert_hidden_in_setting(const char *text, const char *shown)
{
    assert_shown(oteli_hide_in_setting, text, shown);
}

TEST(a_setting_may_have_blanks_in_its_password)
{
    assert_hidden_in_setting("http://h:4318/v1/traces", "http://h:4318/v1/traces");
    assert_hidden_in_setting("http://u:p w@h:1/x", "http://***@h:1/x");
    assert_hidden_in_setting("http://u:p\"w@h:1/x", "http://***@h:1/x");
    assert_hidden_in_setting(" u:p \"w@h:1", "***@h:1");
    assert_hidden_in_setting("endpoint=http://u:p w@h,pollingIntervalMs=x",
                             "endpoint=http://***@h,pollingIntervalMs=x");
    assert_hidden_in_setting("endpoint=u:p w@h", "endpoint=***@h");
    assert_hidden_in_setting("http://localhost:$PORT", "http://localhost:$PORT");
}

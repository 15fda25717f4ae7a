/* SPDX-License-Identifier: Apache-2.0 */
/* Equal samples become one; labels, links and threads of a sample are what they were; whatever does
 * not fit leaves nothing behind. */
#include "profiling/profile/profile_builder.h"

#include "common/clock/clock.h"
#include "profiling/base/interner.h"
#include "tests/support/leaks.h"
#include "tests/support/resolved_sample.h"
#include "tests/support/unit.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { PERIOD_NS = 1000, MAX_LINKS = 3, ROOM_FOR_ALL = 4096 };

#define A_SECOND_NS (UINT64_C(1000) * 1000 * 1000)

static struct oteli_profile_builder *builder;
static struct made_sample made;

static void begin_with(uint32_t max_links)
{
    oteli_leaks_begin();
    (void)oteli_clock_start("fake");
    oteli_fake_clock.monotonic_ns = A_SECOND_NS;
    prctl(PR_SET_NAME, "tester");
    builder = oteli_profile_builder_new(PERIOD_NS, max_links);
    assert_non_null(builder);
}

static int begin(void **state)
{
    (void)state;
    begin_with(ROOM_FOR_ALL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    oteli_profile_builder_free(builder);
    builder = NULL;
    oteli_leaks_check();
    return 0;
}

/* A page of this program's code. */
static uintptr_t code(void)
{
    return (uintptr_t)begin & ~(uintptr_t)4095;
}

static void sample_at(uintptr_t leaf, uintptr_t caller)
{
    made_sample_begin(&made);
    made_sample_frame(&made, (const void *)leaf);
    if (caller != 0)
        made_sample_frame(&made, (const void *)caller);
}

/* A sample at these bytes of it. */
static void sample(uintptr_t leaf, uintptr_t caller)
{
    sample_at(code() + leaf, caller != 0 ? code() + caller : 0);
}

static void add(void)
{
    assert_true(oteli_profile_builder_add(builder, &made.resolved));
}

/* ---- what holds of every profile ------------------------------------------------------------ */

enum table { STRINGS, MAPPINGS, LOCATIONS, STACKS, LINKS, SETS, THREADS, SAMPLES, TABLES };

/* Of each table: how many rows, and which are referred to. */
struct check {
    const otel_profile *profile;
    const struct oteli_interner *tables[TABLES];
    bool *used[TABLES];
};

static const void *row_of(const struct check *check, enum table table, size_t index)
{
    return oteli_interner_at(check->tables[table], (uint32_t)index);
}

static uint32_t use(const struct check *check, enum table table, uint32_t index)
{
    assert_true(index < check->tables[table]->count);
    check->used[table][index] = true;
    return index;
}

static void tell_location(const struct check *check, size_t i, FILE *text)
{
    const struct oteli_profile_location *location = row_of(check, LOCATIONS, i);
    const struct oteli_profile_mapping *mapping =
        row_of(check, MAPPINGS, use(check, MAPPINGS, location->mapping));
    (void)use(check, STRINGS, location->name);
    if (location->mapping != 0)
        assert_in_range(location->address, mapping->start, mapping->limit - 1);
    fprintf(text, "%u %" PRIx64, location->mapping, location->address);
}

/* Its keys are sorted, and each is there once. */
static void tell_set(const struct check *check, size_t i, FILE *text)
{
    const struct oteli_profile_pair *pairs = row_of(check, SETS, i);
    const char *last = ""; /* which is no key */
    for (uint32_t j = 0;
         j < oteli_interner_elements(check->tables[SETS], (uint32_t)i, sizeof *pairs); j++) {
        const char *key = oteli_profile_text(check->profile, use(check, STRINGS, pairs[j].key));
        assert_true(strcmp(last, key) < 0);
        last = key;
        fprintf(text, "%u=%u ", pairs[j].key, use(check, STRINGS, pairs[j].value));
    }
}

static void tell_sample(const struct check *check, size_t i, FILE *text)
{
    const struct oteli_profile_sample *sample = row_of(check, SAMPLES, i);
    assert_true(sample->count != 0);
    assert_true(sample->cpu_ns >= sample->count * check->profile->period_ns);
    fprintf(text, "%u %u %u %u", use(check, STACKS, sample->stack), use(check, LINKS, sample->link),
            use(check, SETS, sample->label_set), use(check, THREADS, sample->thread));
}

/* What makes a row what it is, once all that it refers to is seen to be there. */
static void tell_row(const struct check *check, enum table table, size_t i, FILE *text)
{
    const void *row = row_of(check, table, i);
    const struct oteli_interner *stacks = check->tables[STACKS];
    switch (table) {
    case STRINGS:
        fputs(row, text);
        break;
    case MAPPINGS:
        fprintf(text, "%zu", i);
        (void)use(check, STRINGS, ((const struct oteli_profile_mapping *)row)->path);
        break;
    case LOCATIONS:
        tell_location(check, i, text);
        break;
    case STACKS:
        for (uint32_t j = 0; j < oteli_interner_elements(stacks, (uint32_t)i, sizeof j); j++)
            fprintf(text, "%u ", use(check, LOCATIONS, ((const uint32_t *)row)[j]));
        break;
    case LINKS:
        fwrite(row, 16 + 8, 1, text);
        break;
    case SETS:
        tell_set(check, i, text);
        break;
    case THREADS:
        fprintf(text, "%d", (int)((const struct oteli_profile_thread *)row)->id);
        (void)use(check, STRINGS, ((const struct oteli_profile_thread *)row)->name);
        break;
    default:
        tell_sample(check, i, text);
    }
}

/* No two rows are equal. */
static void check_table(const struct check *check, enum table table)
{
    struct {
        char *bytes;
        size_t length;
    } *rows = calloc(check->tables[table]->count + 1, sizeof *rows);
    assert_non_null(rows);
    for (size_t i = 0; i < check->tables[table]->count; i++) {
        FILE *text = open_memstream(&rows[i].bytes, &rows[i].length);
        assert_non_null(text);
        tell_row(check, table, i, text);
        fclose(text);
        for (size_t j = 0; j < i; j++)
            assert_false(rows[i].length == rows[j].length &&
                         memcmp(rows[i].bytes, rows[j].bytes, rows[i].length) == 0);
    }
    for (size_t i = 0; i < check->tables[table]->count; i++)
        free(rows[i].bytes);
    free(rows);
}

static bool has_refused; /* a sample, whose rows may be there */

/* Indices are inside their tables, rows are different, and each but the first ones, which stand for
 * nothing, is referred to. */
static void profile_check(const otel_profile *profile)
{
    static const struct oteli_profile_mapping none;
    assert_non_null(profile);
    struct check check = {
        .profile = profile,
        .tables = {&profile->strings, &profile->mappings, &profile->locations, &profile->stacks,
                   &profile->links, &profile->label_sets, &profile->threads, &profile->samples},
    };
    for (enum table table = 0; table < TABLES; table++) {
        check.used[table] = calloc(check.tables[table]->count + 1, sizeof *check.used[table]);
        assert_non_null(check.used[table]);
    }
    for (enum table table = 0; table < TABLES; table++)
        check_table(&check, table);
    assert_string_equal(oteli_profile_text(profile, 0), "");
    assert_memory_equal(row_of(&check, MAPPINGS, 0), &none, sizeof none);
    assert_int_equal(profile->label_sets.rows[0].length, 0);
    assert_true(profile->links.count >= 1);
    for (enum table table = 0; table < TABLES; table++) {
        const bool has_none =
            table == STRINGS || table == MAPPINGS || table == LINKS || table == SETS;
        for (size_t i = has_none; table != SAMPLES && i < check.tables[table]->count; i++)
            assert_true(check.used[table][i] || has_refused);
        free(check.used[table]);
    }
}

/* ---- samples as text ------------------------------------------------------------------------ */

static uint64_t number(const uint8_t *id)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value = value << 8 | id[i];
    return value;
}

static void say_sample(FILE *text, const otel_profile *profile,
                       const struct oteli_profile_sample *sample, uint64_t base)
{
    const uint32_t *stack = oteli_interner_at(&profile->stacks, sample->stack);
    const struct oteli_profile_pair *set =
        oteli_interner_at(&profile->label_sets, sample->label_set);
    const struct oteli_span_ids *link = oteli_interner_at(&profile->links, sample->link);
    const struct oteli_profile_thread *thread =
        oteli_interner_at(&profile->threads, sample->thread);
    const uint32_t depth = oteli_interner_elements(&profile->stacks, sample->stack, sizeof *stack);
    const uint32_t labels =
        oteli_interner_elements(&profile->label_sets, sample->label_set, sizeof *set);
    fprintf(text, "%" PRIu64 " %" PRIu64 " |", sample->count, sample->cpu_ns);
    for (uint32_t i = 0; i < depth; i++) {
        const struct oteli_profile_location *location =
            oteli_interner_at(&profile->locations, stack[i]);
        fprintf(text, " %" PRIu64, location->address - base);
    }
    if (sample->link != 0)
        fprintf(text, " | %" PRIx64 " %" PRIx64 " %" PRIx64 " |", number(link->trace_id + 8),
                number(link->span_id), number(link->root_id));
    else
        fprintf(text, " | - |");
    for (uint32_t i = 0; i < labels; i++)
        fprintf(text, " %s=%s", oteli_profile_text(profile, set[i].key),
                oteli_profile_text(profile, set[i].value));
    fprintf(text, " | %s\n", oteli_profile_text(profile, thread->name));
}

/* ---- fixture -------------------------------------------------------------------------------- */

static const otel_profile *finish(void)
{
    const otel_profile *profile = oteli_profile_builder_finish(builder);
    profile_check(profile);
    return profile;
}

/* All samples, in the order of the profile:
 *     count cpu_ns | frame frame | trace span root | key=value key=value | thread
 * with frames as their distance from code(), and ids as hexadecimal numbers; "-" for no link. */
static void expect(const otel_profile *profile, const char *expected)
{
    char *data = NULL;
    size_t length;
    FILE *text = open_memstream(&data, &length);
    assert_non_null(text);
    for (size_t i = 0; i < profile->sample_count; i++)
        say_sample(text, profile, oteli_interner_at(&profile->samples, (uint32_t)i), code());
    fclose(text);
    assert_string_equal(data, expected);
    free(data);
}

AROUND_EACH(begin, end);

TEST(equal_samples_become_one)
{
    for (unsigned i = 0; i < 3; i++) {
        sample(100, 200);
        add();
        sample(100, 300);
        made.sample.periods = 4;
        add();
    }
    sample(100, 0);
    add();
    made_sample_begin(&made);
    add();
    assert_int_equal(oteli_profile_builder_samples(builder), 8);

    expect(finish(), "3 3000 | 100 199 | - | | tester\n"
                     "3 12000 | 100 299 | - | | tester\n"
                     "1 1000 | 100 | - | | tester\n"
                     "1 1000 | | - | | tester\n");
}

TEST(a_stack_ends_where_there_is_no_code)
{
    for (uintptr_t astray = 0; astray < 3; astray++) {
        sample(100, 200);
        made_sample_frame(&made, (const void *)(0x500000000c058d47 + astray));
        made_sample_frame(&made, (const void *)(code() + 300 + astray));
        add();
        sample(100, 200);
        made_sample_frame(&made, (const void *)astray); /* 0, less one */
        add();
        sample(100, 200);
        made_sample_frame(&made, &made); /* data */
        add();
    }
    sample_at((uintptr_t)&made, code() + 200); /* the leaf is where it is */
    add();

    const otel_profile *profile = finish();

    assert_int_equal(profile->sample_count, 2);
    const struct oteli_profile_sample *first = oteli_interner_at(&profile->samples, 0);
    assert_int_equal(first->count, 9);
    assert_int_equal(oteli_interner_elements(&profile->stacks, 0, sizeof(uint32_t)), 2);
    assert_int_equal(oteli_interner_elements(&profile->stacks, 1, sizeof(uint32_t)), 2);
}

TEST(of_equal_keys_the_innermost_counts)
{
    sample(1, 0);
    made_sample_label(&made, "query", "inner", "a", "1", "a", "2", NULL);
    made_sample_label(&made, "query", "outer", "b", "3", "", "nothing", NULL);
    add();
    sample(1, 0);
    made_sample_label(&made, "b", "3", "a", "1", "query", "inner", NULL);
    add();

    expect(finish(), "2 2000 | 1 | - | a=1 b=3 query=inner | tester\n");
}

TEST(labels_that_are_cut_or_no_utf8_are_good_texts)
{
    sample(1, 0);
    made_sample_label(&made, "key", "bad\xff", "other", "", NULL);
    made.resolved.labels[0].text[made.resolved.labels[0].text_length++] = 'k';
    add();
    sample(2, 0);
    memset(made.resolved.labels[0].text, 'x', sizeof made.resolved.labels[0].text);
    made.resolved.labels[0].text_length = UINT16_MAX;
    made.resolved.label_count = 1;
    add();

    char expected[256];
    char longest[OTEL_PROFILE_LABEL_BYTES + 1] = "";
    memset(longest, 'x', OTEL_PROFILE_LABEL_BYTES);
    snprintf(expected, sizeof expected, "%s1 1000 | 2 | - | %s= | tester\n",
             "1 1000 | 1 | - | k= key=bad\xef\xbf\xbd other= | tester\n", longest);
    expect(finish(), expected);
}

TEST(a_span_is_one_link_and_has_the_root_that_is_known)
{
    sample(1, 0);
    made_sample_span(&made, 0xa, 0x10, 0);
    add();
    sample(1, 0);
    made_sample_span(&made, 0xa, 0x10, 0x1);
    add();
    sample(1, 0);
    made_sample_span(&made, 0xb, 0x10, 0x2);
    add();

    expect(finish(), "2 2000 | 1 | a 10 1 | | tester\n"
                     "1 1000 | 1 | b 10 2 | | tester\n");
}

static void add_span(uint64_t span, uint64_t root)
{
    sample(1, 0);
    made_sample_span(&made, 0xa, span, root);
    add();
}

TEST(spans_above_the_cap_count_for_their_root_or_for_none)
{
    (void)end(NULL);
    begin_with(MAX_LINKS);
    for (uint64_t span = 0x10; span < 0x10 + MAX_LINKS; span++)
        add_span(span, 0x1);
    add_span(0x20, 0x1);  /* for a root that has no row yet */
    add_span(0x21, 0x1);  /* for the same */
    add_span(0x11, 0x1);  /* has its own */
    add_span(0x22, 0x10); /* for a root that has one already, as a span */
    add_span(0x23, 0);    /* for none */
    add_span(0x24, 0x2);
    add_span(0x25, 0x3);
    add_span(0x26, 0x4); /* too many roots, too */
    add_span(0x1, 0x1);  /* the root itself */

    const otel_profile *profile = finish();

    assert_int_equal(profile->links_over, 7);
    expect(profile, "2 2000 | 1 | a 10 1 | | tester\n"
                    "2 2000 | 1 | a 11 1 | | tester\n"
                    "1 1000 | 1 | a 12 1 | | tester\n"
                    "3 3000 | 1 | a 1 1 | | tester\n"
                    "2 2000 | 1 | - | | tester\n"
                    "1 1000 | 1 | a 2 2 | | tester\n"
                    "1 1000 | 1 | a 3 3 | | tester\n");
}

static void *name_thread(void *argument)
{
    *(pid_t *)argument = gettid();
    prctl(PR_SET_NAME, "worker \xe2\x82\xac 7");
    sample(1, 0);
    made.sample.thread = gettid();
    add();
    return NULL;
}

TEST(threads_have_their_names)
{
    pthread_t thread;
    pid_t id = 0;
    sample(1, 0);
    add();
    assert_int_equal(pthread_create(&thread, NULL, name_thread, &id), 0);
    pthread_join(thread, NULL);
    sample(1, 0);
    made.sample.thread = id;
    add();
    sample(1, 0);
    made.sample.thread = INT32_MAX; /* there is none */
    add();

    const otel_profile *profile = finish();

    expect(profile, "1 1000 | 1 | - | | tester\n"
                    "2 2000 | 1 | - | | worker \xe2\x82\xac 7\n"
                    "1 1000 | 1 | - | |\x20\n");
    const struct oteli_profile_thread *second = oteli_interner_at(&profile->threads, 1);
    const struct oteli_profile_thread *third = oteli_interner_at(&profile->threads, 2);
    assert_int_equal(second->id, id);
    assert_int_equal(third->id, INT32_MAX);
}

TEST(an_interval_is_told_of_only_once)
{
    sample(1, 0);
    made_sample_label(&made, "query", "A", NULL);
    made_sample_span(&made, 0xa, 0x10, 0);
    add();
    oteli_fake_clock.monotonic_ns += 7 * A_SECOND_NS;
    const otel_profile *first = finish();
    assert_int_equal(first->duration_ns, 7 * A_SECOND_NS);
    const uint64_t end_ns = first->start_unix_ns + first->duration_ns;
    assert_int_equal(oteli_profile_builder_samples(builder), 0);

    oteli_fake_clock.monotonic_ns += 2 * A_SECOND_NS;
    const otel_profile *empty = finish();
    assert_int_equal(empty->sample_count, 0);
    assert_int_equal(empty->duration_ns, 2 * A_SECOND_NS);
    assert_true(empty->start_unix_ns + empty->duration_ns >= end_ns);
    assert_int_equal(empty->period_ns, PERIOD_NS);

    sample(2, 0);
    add();
    expect(finish(), "1 1000 | 2 | - | | tester\n");
}

static void sample_number(uintptr_t i)
{
    char value[32];
    sample_at(i + 1, 0);
    snprintf(value, sizeof value, "%u", (unsigned)i);
    made_sample_label(&made, "number", value, NULL);
    made_sample_span(&made, i, i + 1, 0);
    made.sample.thread = INT32_MAX - (pid_t)(i & 0xff);
}

TEST(a_full_interval_refuses_what_is_new_and_takes_the_rest)
{
    uintptr_t taken = 0;
    for (;; taken++) {
        sample_number(taken);
        if (!oteli_profile_builder_add(builder, &made.resolved))
            break;
    }
    assert_in_range(taken, 1000, 1000000);
    sample_number(0);
    add();
    sample_number(taken + 1);
    assert_false(oteli_profile_builder_add(builder, &made.resolved));
    assert_int_equal(oteli_profile_builder_samples(builder), taken + 1);

    const otel_profile *full = oteli_profile_builder_finish(builder);
    assert_non_null(full);
    assert_int_equal(full->sample_count, taken);
    const struct oteli_profile_sample *first = oteli_interner_at(&full->samples, 0);
    assert_int_equal(first->count, 2);

    sample_number(taken);
    add();
    assert_int_equal(finish()->sample_count, 1);
}

/* Whichever allocation fails first: what the profile has is right, and later there is a whole
 * one. */
TEST(without_memory_less_is_there_and_nothing_is_left)
{
    bool all_tried = false;
    for (size_t nth = 1; !all_tried; nth++) {
        (void)end(NULL);
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        builder = oteli_profile_builder_new(PERIOD_NS, ROOM_FOR_ALL);
        if (builder == NULL) {
            assert_true(oteli_leaks_failed());
            continue;
        }
        sample_at((uintptr_t)begin, (uintptr_t)getenv);
        made_sample_label(&made, "query", "A", NULL);
        made_sample_span(&made, 0xa, 0x10, 0x1);
        const bool is_added = oteli_profile_builder_add(builder, &made.resolved);
        oteli_profile_builder_name(builder, UINT64_MAX);
        const otel_profile *profile = oteli_profile_builder_finish(builder);
        all_tried = !oteli_leaks_failed();
        assert_true(!all_tried || (is_added && profile != NULL));
        if (profile != NULL) {
            has_refused = !is_added;
            profile_check(profile);
            has_refused = false;
            assert_int_equal(profile->sample_count, is_added);
        }
        if (profile != NULL && is_added) {
            const struct oteli_profile_location *first = oteli_interner_at(&profile->locations, 0);
            const char *name = oteli_profile_text(profile, first->name);
            assert_true(strcmp(name, "begin") == 0 || (!all_tried && name[0] == '\0'));
        }
        assert_int_equal(oteli_profile_builder_samples(builder), 0);
        sample(2, 0);
        add();
        expect(finish(), "1 1000 | 2 | - | | tester\n");
    }
}

/* ---- its tables --------------------------------------------------------------------------- */

enum { MANY = 5000, NO_LIMIT = 1 << 24 };

static struct oteli_interner table;

static void add_numbers(void)
{
    uint32_t index;
    for (uint32_t i = 0; i < MANY; i++) {
        assert_true(oteli_interner_add(&table, &i, sizeof i, &index));
        assert_int_equal(index, i);
    }
}

TEST(a_full_table_takes_only_what_it_has)
{
    static const struct {
        uint32_t rows, bytes, tail;
    } limits[] = {{2, NO_LIMIT, 0}, {NO_LIMIT, 4 + 2 * 2, 2}};
    for (size_t i = 0; i < 2; i++) {
        uint32_t index;
        oteli_interner_init(&table, limits[i].rows, limits[i].bytes, limits[i].tail, 7);
        assert_true(oteli_interner_add(&table, "ab", 2, &index));
        assert_true(oteli_interner_add(&table, "cd", 2, &index));
        assert_false(oteli_interner_add(&table, "ef", 2, &index));
        assert_true(oteli_interner_add(&table, "cd", 2, &index));
        assert_int_equal(index, 1);
        oteli_interner_fini(&table);
    }
}

TEST(an_emptied_table_counts_from_the_start)
{
    oteli_interner_init(&table, NO_LIMIT, NO_LIMIT, 0, 7);
    add_numbers();
    oteli_interner_fini(&table);
    add_numbers();
    add_numbers();
    oteli_interner_fini(&table);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/flame_names.c - any bytes where names are looked for: as texts of a page, in every place
 * that a text of a profile has, and as a program whose symbols are read.
 *
 * The first byte says which. Texts are separated by a zero byte. */
#include "tests/fuzz/fuzz.h"
#include "tests/support/markup_check.h"
#include "tools/flame_page.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BEFORE = 1, LARGEST = 1 << 16, TEXTS_MOST = 16 };

const char flame_style[] = "p { color: red; }\n";
const char flame_script[] = "x();\n";

/* The texts of an input, and an empty one behind them. */
static size_t split(const uint8_t *data, size_t size, otel_slice texts[TEXTS_MOST])
{
    size_t count = 0;
    size_t first = 0;
    for (size_t i = 0; i <= size && count < TEXTS_MOST; i++)
        if (i == size || data[i] == '\0') {
            texts[count++] = (otel_slice){(const char *)data + first, i - first};
            first = i + 1;
        }
    return count;
}

/* A profile of one sample, with this text in the place of all texts that are not given. */
static void fill(struct flame_profile *profile, struct flame_function *function,
                 struct flame_mapping *mapping, struct flame_location *location,
                 const otel_slice *texts, size_t count)
{
    function->name = texts[0];
    mapping->file = texts[1 % count];
    if (mapping->file.length != 0 && mapping->file.data[0] == '/')
        mapping->file = (otel_slice){"x", 1};
    location->mapping = mapping;
    location->function_count = 1;
    profile->value_units[0] = texts[2 % count];
    profile->value_names[0] = texts[3 % count];
    profile->value_count = 1;
}

/* As in a message of pprof: Sample{location_id, value, label{key, str}}. */
static void draw(const otel_slice *texts, size_t count, bool is_picture)
{
    static const uint8_t sample[] = {2 << 3 | 2, 10, 8, 1, 16, 5, 26, 4, 8, 1, 16, 2};
    struct flame_function function = {.id = 1};
    struct flame_mapping mapping = {.id = 1};
    struct flame_location location = {.id = 1};
    const struct flame_function *inlined[] = {&function};
    otel_slice strings[] = {{"", 0}, {"k", 1}, texts[4 % count]};
    struct flame_profile profile = {.bytes = (uint8_t *)(uintptr_t)sample,
                                    .length = sizeof sample,
                                    .strings = strings,
                                    .string_count = 3,
                                    .locations = &location,
                                    .location_count = 1,
                                    .inlined = inlined,
                                    .inlined_count = 1};
    const struct flame_choice choice = {.key = "k", .is_frame = is_picture};
    char *title = fuzz_text((const uint8_t *)texts[5 % count].data, texts[5 % count].length);
    struct flame_names *names = flame_names_new();
    struct flame_tree tree;
    char *text = NULL;
    size_t length = 0;
    size_t at;
    fill(&profile, &function, &mapping, &location, texts, count);
    fuzz_check(names != NULL && title != NULL && flame_tree_init(&tree, &choice, names));
    fuzz_check(flame_tree_add(&tree, &profile) == NULL);
    flame_tree_finish(&tree);
    fuzz_check(tree.nodes[tree.groups[0].root].total == 5);
    FILE *out = open_memstream(&text, &length);
    fuzz_check(out != NULL);
    if (is_picture)
        flame_svg_write(out, &tree, title);
    else
        flame_page_write(out, &tree, title);
    fclose(out);
    fuzz_check(markup_fault(text, length, flame_style, flame_script, &at) == NULL);
    free(text);
    free(title);
    flame_tree_fini(&tree);
    flame_names_free(names);
}

/* Look for the names of some places of a program. */
static void look_up(const uint8_t *data, size_t size)
{
    static const uint64_t places[] = {0, 1, 0x40, 0x1000, 0x1234, 0x401000, UINT64_MAX};
    char path[64];
    const int fd = memfd_create("program", MFD_CLOEXEC);
    fuzz_check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct flame_names *names = flame_names_new();
    fuzz_check(names != NULL);
    const struct flame_mapping mapping = {.file = {path, strlen(path)}, .limit = UINT64_MAX};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const otel_slice name = flame_names_find(names, &mapping, places[i]);
        fuzz_check(name.length == 0 || memchr(name.data, '\0', name.length) == NULL);
    }
    flame_names_free(names);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    otel_slice texts[TEXTS_MOST];
    if (size <= BEFORE || size > LARGEST)
        return 0;
    if ((data[0] & 1) != 0)
        look_up(data + BEFORE, size - BEFORE);
    else
        draw(texts, split(data + BEFORE, size - BEFORE, texts), (data[0] & 2) != 0);
    return 0;
}

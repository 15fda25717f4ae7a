/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/flame_pprof.c - any bytes as a pprof file, gzipped or not: it is refused with a
 * sentence, or everything that it refers to is there, and the page that is made of it is a sound
 * one.
 *
 * The first byte of an input says what is drawn: a page or a picture, by which label. */
#include "tests/fuzz/fuzz.h"
#include "tests/support/markup_check.h"
#include "tools/flame/flame_page.h"

enum { BEFORE = 1, LARGEST = 1 << 16 };

const char flame_style[] = "p { color: red; }\n";
const char flame_script[] = "x();\n";

/* All of it is there, for the sanitizer. */
static void read_text(otel_slice text)
{
    static volatile char last;
    for (size_t i = 0; i < text.length; i++)
        last = text.data[i];
    (void)last;
}

static bool look(void *state, const struct flame_sample *sample)
{
    const struct flame_profile *profile = state;
    fuzz_check(sample->depth <= FLAME_FRAMES_MAX && sample->value_count == profile->value_count);
    for (size_t i = 0; i < sample->depth; i++) {
        const struct flame_location *at = sample->frames[i];
        fuzz_check(at >= profile->locations && at < profile->locations + profile->location_count);
        fuzz_check(at->first_function + at->function_count <= profile->inlined_count);
        if (at->mapping != NULL) {
            read_text(at->mapping->file);
            read_text(at->mapping->build_id);
        }
        for (size_t j = 0; j < at->function_count; j++)
            read_text(profile->inlined[at->first_function + j]->name);
    }
    for (size_t i = 0; i < sample->label_count; i++) {
        read_text(sample->labels[i].key);
        read_text(sample->labels[i].text);
    }
    return true;
}

/* Names are looked for in no file: what is on this machine is none of the input's business. */
static void forget_files(struct flame_profile *profile)
{
    for (size_t i = 0; i < profile->mapping_count; i++)
        if (profile->mappings[i].file.length != 0 && profile->mappings[i].file.data[0] == '/')
            profile->mappings[i].file = (otel_slice){profile->mappings[i].file.data + 1,
                                                     profile->mappings[i].file.length - 1};
}

static void draw(struct flame_profile *profile, uint8_t how)
{
    static const char *const keys[] = {NULL, "k", "thread", "a"};
    struct flame_choice choice = {.key = keys[how & 3], .is_frame = (how & 4) != 0};
    if ((how & 8) != 0 && choice.key != NULL)
        choice.value = "v";
    struct flame_names *names = flame_names_new();
    struct flame_tree tree;
    char *text = NULL;
    size_t length = 0;
    size_t at;
    fuzz_check(names != NULL && flame_tree_init(&tree, &choice, names));
    fuzz_check(flame_tree_add(&tree, profile) == NULL);
    if ((how & 16) != 0)
        fuzz_check(flame_tree_add(&tree, profile) == NULL);
    flame_tree_finish(&tree);
    FILE *out = open_memstream(&text, &length);
    fuzz_check(out != NULL);
    if (choice.is_frame)
        flame_svg_write(out, &tree, "t");
    else
        flame_page_write(out, &tree, "t");
    fclose(out);
    fuzz_check(markup_fault(text, length, flame_style, flame_script, &at) == NULL);
    free(text);
    flame_tree_fini(&tree);
    flame_names_free(names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct flame_sample sample;
    struct flame_profile profile;
    if (size < BEFORE || size > LARGEST)
        return 0;
    const char *fault = flame_profile_read(&profile, data + BEFORE, size - BEFORE);
    if (fault != NULL) {
        fuzz_check(fault[0] != '\0');
        return 0;
    }
    fuzz_check(flame_profile_each(&profile, &sample, look, &profile));
    forget_files(&profile);
    draw(&profile, data[0]);
    flame_profile_fini(&profile);
    return 0;
}

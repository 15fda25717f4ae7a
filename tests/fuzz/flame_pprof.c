/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/flame_pprof.c - any bytes as a pprof file: it is refused with a sentence, or the page
 * that is made of it is a sound one.
 *
 * The first byte of an input says what is drawn: a page or a picture, by which label. */
#include "tests/fuzz/fuzz.h"
#include "tests/support/markup_check.h"
#include "tools/flame/flame_page.h"

enum { BEFORE = 1, LARGEST = 1 << 16 };

const char flame_style[] = "p { color: red; }\n";
const char flame_script[] = "x();\n";

/* Names are looked for in no file: what is on this machine is none of the input's business. */
static void forget_files(struct flame_profile *profile)
{
    for (size_t i = 0; i < profile->file->n_mapping; i++)
        profile->file->mapping[i]->filename = 0;
}

static void draw(struct flame_profile *profile, uint8_t how)
{
    static const char *const keys[] = {NULL, "k", "thread", "a"};
    struct flame_choice choice = {.key = keys[how & 3], .is_frame = (how & 4) != 0};
    if ((how & 8) != 0 && choice.key != NULL)
        choice.value = "v";
    struct flame_tree tree;
    char *text = NULL;
    size_t length = 0;
    size_t at;
    fuzz_check(flame_tree_init(&tree, &choice));
    fuzz_check(flame_tree_add(&tree, profile) == NULL);
    if ((how & 16) != 0)
        fuzz_check(flame_tree_add(&tree, profile) == NULL);
    fuzz_check(flame_tree_finish(&tree));
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
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct flame_profile profile;
    if (size < BEFORE || size > LARGEST)
        return 0;
    const char *fault = flame_profile_read(&profile, data + BEFORE, size - BEFORE);
    if (fault != NULL) {
        fuzz_check(fault[0] != '\0');
        return 0;
    }
    forget_files(&profile);
    draw(&profile, data[0]);
    flame_profile_fini(&profile);
    return 0;
}

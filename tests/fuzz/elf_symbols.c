/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/elf_symbols.c - any bytes as an ELF file whose functions are asked for: at places all
 * over the file, together and each alone, which must say the same. */
#include "tests/fuzz/fuzz.h"

#include "profiling/symbols/elf_symbols.h"

#include <sys/mman.h>
#include <unistd.h>

enum { PLACES = 64 };

struct answers {
    char *names[PLACES]; /* NULL: none */
};

static void take(void *state, const struct oteli_elf_place *place, const char *name, size_t length)
{
    const uint32_t index = place->index;
    struct answers *answers = state;
    if (index >= PLACES || answers->names[index] != NULL || length == 0 ||
        length > OTELI_SYMBOL_NAME_MAX || strlen(name) != length)
        abort();
    answers->names[index] = fuzz_text((const uint8_t *)name, length);
}

static void clear(struct answers *answers)
{
    for (size_t i = 0; i < PLACES; i++)
        free(answers->names[i]);
}

static struct oteli_elf_place place_at(size_t index, size_t size)
{
    return (struct oteli_elf_place){.offset = index * size / PLACES, .index = (uint32_t)index};
}

static void ask(int fd, size_t size)
{
    static const struct oteli_elf_limit endless = {UINT64_MAX, UINT64_MAX};
    struct oteli_elf_place places[PLACES];
    struct answers together = {{NULL}};
    struct answers alone = {{NULL}};
    for (size_t i = 0; i < PLACES; i++)
        places[i] = place_at(i, size);
    const enum oteli_elf_outcome outcome =
        oteli_elf_find_functions(fd, places, PLACES, &endless, take, &together);
    for (size_t i = 0; i < PLACES; i++) {
        struct oteli_elf_place one = place_at(i, size);
        fuzz_check(oteli_elf_find_functions(fd, &one, 1, &endless, take, &alone) == outcome);
        const char *name = together.names[i];
        if ((name != NULL) != (alone.names[i] != NULL) ||
            (name != NULL && (outcome != OTELI_ELF_DONE || strcmp(name, alone.names[i]) != 0)))
            abort();
    }
    clear(&together);
    clear(&alone);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    fuzz_be_quiet();
    if (fd < 0)
        fd = memfd_create("image", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        return 0;
    ask(fd, size);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/maps.c - lines of /proc/self/maps, the notes of an ELF image, and whole images, as
 * files and as memory: anything may stand there. */
#include "tests/fuzz/fuzz.h"

#include "profiling/symbols/elf_image.h"
#include "profiling/symbols/maps.h"

#include <sys/mman.h>
#include <unistd.h>

static void lines(const uint8_t *data, size_t size)
{
    struct oteli_maps_range range;
    while (size != 0) {
        const uint8_t *newline = memchr(data, '\n', size);
        const size_t length = newline != NULL ? (size_t)(newline - data) : size;
        char *line = fuzz_text(data, length);
        if (line == NULL)
            return;
        if (oteli_maps_parse(line, &range) &&
            (range.start >= range.limit || range.path < line || range.path > line + strlen(line)))
            abort();
        free(line);
        const size_t taken = length + (newline != NULL);
        data += taken;
        size -= taken;
    }
}

static void notes(const uint8_t *data, size_t size)
{
    for (size_t alignment = 0; alignment <= 16; alignment += 4) {
        struct oteli_elf_identity identity = {0};
        uint8_t *copy = malloc(size + 1); /* so that its end is seen */
        if (copy == NULL)
            return;
        memcpy(copy, data, size);
        const bool is_found = oteli_elf_find_build_id(copy, size, alignment, &identity);
        if (is_found != (identity.build_id_length != 0) ||
            identity.build_id_length > OTELI_BUILD_ID_BYTES)
            abort();
        free(copy);
    }
}

static void image(const uint8_t *data, size_t size)
{
    static int fd = -1;
    struct oteli_elf_identity identity = {0};
    if (fd < 0)
        fd = memfd_create("image", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        return;
    const struct oteli_elf_source file = {fd, 0, false};
    const struct oteli_elf_source memory = {fd, 0, true};
    if (oteli_elf_read_build_id(&file, &identity) != (identity.build_id_length != 0))
        abort();
    identity.build_id_length = 0;
    if (oteli_elf_read_build_id(&memory, &identity) != (identity.build_id_length != 0))
        abort();
    fuzz_check(oteli_elf_read_htlhash(fd, &identity));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_be_quiet();
    if (size == 0)
        return 0;
    lines(data, size);
    notes(data, size);
    image(data, size);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/elf_read.c - the contracts are in elf_read.h. Any thread; owns nothing. What is
 * read may be anything at all.
 *
 * Source: elf(5). */
#include "profiling/symbols/elf_read.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

bool oteli_elf_read_some(int fd, uint64_t offset, void *to, size_t size, size_t *got)
{
    *got = 0;
    while (*got < size) {
        if (offset > INT64_MAX - size)
            return false;
        const ssize_t some = pread(fd, (uint8_t *)to + *got, size - *got, (off_t)(offset + *got));
        if (some < 0 && errno == EINTR)
            continue;
        if (some < 0)
            return false;
        if (some == 0)
            break;
        *got += (size_t)some;
    }
    return true;
}

bool oteli_elf_read(int fd, uint64_t offset, void *to, size_t size)
{
    size_t got;
    return oteli_elf_read_some(fd, offset, to, size, &got) && got == size;
}

static bool is_ours(const Elf64_Ehdr *head)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    const unsigned char order = ELFDATA2MSB;
#else
    const unsigned char order = ELFDATA2LSB;
#endif
    return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64 &&
           head->e_ident[EI_DATA] == order && head->e_phentsize == sizeof(Elf64_Phdr) &&
           head->e_phnum != 0 && head->e_phnum <= OTELI_ELF_SEGMENTS_MAX;
}

bool oteli_elf_read_head(int fd, uint64_t offset, Elf64_Ehdr *head,
                         Elf64_Phdr segments[OTELI_ELF_SEGMENTS_MAX])
{
    return oteli_elf_read(fd, offset, head, sizeof *head) && is_ours(head) &&
           oteli_elf_read(fd, offset + head->e_phoff, segments, head->e_phnum * sizeof segments[0]);
}

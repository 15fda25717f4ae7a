/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/elf_image.c - the contracts are in elf_image.h. Any thread; owns nothing. What
 * is read may be anything at all, so every length is checked before it is used.
 *
 * Source: elf(5); the hash is the one of OpenTelemetry's conventions for profiles,
 * process.executable.build_id.htlhash. */
#include "profiling/symbols/elf_image.h"

#include "profiling/symbols/sha256.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOTES_BYTES = 4096, HASHED_BYTES = 4096, SMALLEST_PAGE = 4096 };

/* ---- reading ------------------------------------------------------------------------------- */

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

/* ---- the build id ------------------------------------------------------------------------- */

static size_t align(size_t size, size_t alignment)
{
    return (size + alignment - 1) & ~(alignment - 1);
}

bool oteli_elf_find_build_id(const void *notes, size_t size, size_t alignment,
                             struct oteli_elf_identity *identity)
{
    const uint8_t *at = notes;
    if (alignment != 8)
        alignment = 4;
    Elf64_Nhdr head;
    while (size >= sizeof head) {
        memcpy(&head, at, sizeof head);
        const size_t value = align(sizeof head + head.n_namesz, alignment);
        const size_t whole = value + align(head.n_descsz, alignment);
        if (value > size || head.n_descsz > size - value)
            return false;
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp(at + sizeof head, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0 &&
            head.n_descsz != 0 && head.n_descsz <= OTELI_BUILD_ID_BYTES) {
            identity->build_id_length = (uint8_t)head.n_descsz;
            memcpy(identity->build_id, at + value, head.n_descsz);
            return true;
        }
        if (whole >= size)
            return false;
        at += whole;
        size -= whole;
    }
    return false;
}

/* What the addresses in an image are moved by: its first segment begins with the head. */
static bool find_bias(const struct oteli_elf_source *source, const Elf64_Phdr *segments,
                      size_t count, uint64_t *bias)
{
    for (size_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_offset < SMALLEST_PAGE) {
            *bias = source->base - (segments[i].p_vaddr - segments[i].p_offset);
            return true;
        }
    return false;
}

bool oteli_elf_read_build_id(const struct oteli_elf_source *source,
                             struct oteli_elf_identity *identity)
{
    Elf64_Ehdr head;
    Elf64_Phdr segments[OTELI_ELF_SEGMENTS_MAX];
    uint8_t notes[NOTES_BYTES];
    uint64_t bias = 0;
    if (!oteli_elf_read_head(source->fd, source->base, &head, segments) ||
        (source->is_memory && !find_bias(source, segments, head.e_phnum, &bias)))
        return false;
    for (size_t i = 0; i < head.e_phnum; i++) {
        const Elf64_Phdr *segment = &segments[i];
        const size_t size = segment->p_filesz < sizeof notes ? segment->p_filesz : sizeof notes;
        const uint64_t place =
            source->is_memory ? bias + segment->p_vaddr : source->base + segment->p_offset;
        if (segment->p_type == PT_NOTE && oteli_elf_read(source->fd, place, notes, size) &&
            oteli_elf_find_build_id(notes, size, segment->p_align, identity))
            return true;
    }
    return false;
}

/* ---- the hash ----------------------------------------------------------------------------- */

bool oteli_elf_read_htlhash(int fd, struct oteli_elf_identity *identity)
{
    uint8_t hashed[2 * HASHED_BYTES + 8];
    uint8_t digest[OTELI_SHA256_BYTES];
    struct stat status;
    size_t head;
    size_t tail;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    const uint64_t length = (uint64_t)status.st_size;
    const uint64_t last = length > HASHED_BYTES ? length - HASHED_BYTES : 0;
    if (!oteli_elf_read_some(fd, 0, hashed, HASHED_BYTES, &head) ||
        !oteli_elf_read_some(fd, last, hashed + head, HASHED_BYTES, &tail))
        return false;
    uint8_t *end = hashed + head + tail;
    for (unsigned shift = 64; shift != 0; shift -= 8)
        *end++ = (uint8_t)(length >> (shift - 8));
    oteli_sha256(hashed, (size_t)(end - hashed), digest);
    identity->has_htlhash = true;
    memcpy(identity->htlhash, digest, sizeof identity->htlhash);
    return true;
}

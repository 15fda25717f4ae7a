/* SPDX-License-Identifier: Apache-2.0 */
/* Build ids from notes of any shape, from images in memory and from files; hashes that anybody can
 * compute again. */
#include "profiling/elf_identity.h"
#include "profiling/sha256.h"
#include "tests/support/unit.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

struct notes {
    uint8_t bytes[512];
    size_t size;
};

static void add_note(struct notes *notes, uint32_t type, const char *name, const void *value,
                     uint32_t size, size_t alignment)
{
    const Elf64_Nhdr head = {(uint32_t)strlen(name) + 1, size, type};
    memcpy(notes->bytes + notes->size, &head, sizeof head);
    memcpy(notes->bytes + notes->size + sizeof head, name, head.n_namesz);
    size_t at = (sizeof head + head.n_namesz + alignment - 1) / alignment * alignment;
    memcpy(notes->bytes + notes->size + at, value, size);
    at = (at + size + alignment - 1) / alignment * alignment;
    notes->size += at;
}

static bool find(const struct notes *notes, size_t alignment, struct oteli_elf_identity *identity)
{
    *identity = (struct oteli_elf_identity){0};
    return oteli_elf_find_build_id(notes->bytes, notes->size, alignment, identity);
}

static const char id_text[] = "0123456789abcdefghij";

TEST(a_build_id_is_found_among_other_notes)
{
    for (size_t alignment = 4; alignment <= 8; alignment += 4) {
        struct notes notes = {.size = 0};
        struct oteli_elf_identity identity;
        add_note(&notes, NT_GNU_ABI_TAG, "GNU", "abcdefghijklmnop", 16, alignment);
        add_note(&notes, NT_GNU_BUILD_ID, "Go", "no", 2, alignment);
        add_note(&notes, 5, "GNU", "odd", 3, alignment);
        add_note(&notes, NT_GNU_BUILD_ID, "GNU", id_text, 20, alignment);

        assert_true(find(&notes, alignment, &identity));

        assert_int_equal(identity.build_id_length, 20);
        assert_memory_equal(identity.build_id, id_text, 20);
    }
}

TEST(short_ids_are_ids_and_long_ones_are_none)
{
    struct oteli_elf_identity identity;
    struct notes shorter = {.size = 0};
    struct notes longer = {.size = 0};
    struct notes empty = {.size = 0};
    add_note(&shorter, NT_GNU_BUILD_ID, "GNU", id_text, 7, 4);
    add_note(&longer, NT_GNU_BUILD_ID, "GNU", id_text, 21, 4);
    add_note(&empty, NT_GNU_BUILD_ID, "GNU", id_text, 0, 4);

    assert_true(find(&shorter, 4, &identity));
    assert_int_equal(identity.build_id_length, 7);
    assert_false(find(&longer, 4, &identity));
    assert_false(find(&empty, 4, &identity));
    assert_int_equal(identity.build_id_length, 0);
}

TEST(notes_that_end_too_early_hold_nothing)
{
    struct notes notes = {.size = 0};
    struct oteli_elf_identity identity;
    add_note(&notes, NT_GNU_BUILD_ID, "GNU", id_text, 20, 4);
    for (size_t size = 0; size < notes.size; size++) {
        uint8_t *copy = malloc(size + 1); /* so that a sanitizer sees its end */
        memcpy(copy, notes.bytes, size);
        identity = (struct oteli_elf_identity){0};
        assert_false(oteli_elf_find_build_id(copy, size, 4, &identity));
        free(copy);
    }
    memset(notes.bytes, 0xff, sizeof(Elf64_Nhdr));
    assert_false(find(&notes, 4, &identity));
}

/* Where the linker has put the head of the program. */
extern const uint8_t __ehdr_start[];

TEST(the_image_in_memory_and_its_file_have_the_same_id)
{
    const struct oteli_elf_source memory = {open("/proc/self/mem", O_RDONLY | O_CLOEXEC),
                                            (uintptr_t)__ehdr_start, true};
    const struct oteli_elf_source file = {open("/proc/self/exe", O_RDONLY | O_CLOEXEC), 0, false};
    struct oteli_elf_identity in_memory = {0};
    struct oteli_elf_identity in_file = {0};
    assert_true(memory.fd >= 0 && file.fd >= 0);

    assert_true(oteli_elf_read_build_id(&memory, &in_memory));
    assert_true(oteli_elf_read_build_id(&file, &in_file));

    assert_int_equal(in_memory.build_id_length, in_file.build_id_length);
    assert_true(in_memory.build_id_length >= 8);
    assert_memory_equal(in_memory.build_id, in_file.build_id, in_file.build_id_length);
    close(memory.fd);
    close(file.fd);
}

TEST(memory_that_is_not_there_is_no_image)
{
    struct oteli_elf_identity identity = {0};
    struct oteli_elf_source memory = {open("/proc/self/mem", O_RDONLY | O_CLOEXEC), 16, true};
    assert_false(oteli_elf_read_build_id(&memory, &identity));
    memory.base = (uintptr_t)id_text;
    assert_false(oteli_elf_read_build_id(&memory, &identity));
    memory.base = UINT64_MAX - 8;
    assert_false(oteli_elf_read_build_id(&memory, &identity));
    close(memory.fd);
}

TEST(the_vdso_has_an_id)
{
    struct oteli_elf_identity identity = {0};
    const uint64_t image = getauxval(AT_SYSINFO_EHDR);
    const struct oteli_elf_source memory = {open("/proc/self/mem", O_RDONLY | O_CLOEXEC), image,
                                            true};
    assert_int_equal(oteli_elf_read_build_id(&memory, &identity), image != 0);
    close(memory.fd);
}

static void assert_digest(const char *text, size_t length, const char *expected)
{
    uint8_t digest[OTELI_SHA256_BYTES];
    char found[2 * OTELI_SHA256_BYTES + 1];
    oteli_sha256(text, length, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(found + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(found, expected);
}

TEST(sha256_is_that_of_the_standard)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    assert_digest("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_digest("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_digest(two_blocks, strlen(two_blocks),
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char many[1000];
    memset(many, 'a', sizeof many);
    assert_digest(many, 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    assert_digest(many, 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    assert_digest(many, 1000, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
}

/* A file of zeros but for its first and its last byte. */
static int make_file(size_t length)
{
    char path[] = "/tmp/otel-c-hash-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    assert_int_equal(ftruncate(fd, (off_t)length), 0);
    if (length != 0) {
        assert_int_equal(pwrite(fd, "F", 1, 0), 1);
        assert_int_equal(pwrite(fd, "L", 1, (off_t)length - 1), 1);
    }
    return fd;
}

/* The same made of what the definition says. */
static void expect_hash(size_t length, uint8_t digest[OTELI_SHA256_BYTES])
{
    uint8_t all[2 * 4096 + 8] = {0};
    const size_t part = length < 4096 ? length : 4096;
    if (length != 0) {
        all[0] = 'F';
        all[2 * part - 1] = 'L';
    }
    if (length != 0 && length <= 4096) {
        all[part - 1] = 'L';
        all[part] = part == 1 ? 'L' : 'F';
    }
    if (length == 1)
        all[0] = 'L';
    for (unsigned i = 0; i < 8; i++)
        all[2 * part + i] = (uint8_t)((uint64_t)length >> (56 - 8 * i));
    oteli_sha256(all, 2 * part + 8, digest);
}

TEST(the_hash_of_a_file_is_of_both_ends_and_its_length)
{
    static const size_t lengths[] = {0, 1, 100, 4095, 4096, 4097, 8192, 100000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct oteli_elf_identity identity = {0};
        uint8_t expected[OTELI_SHA256_BYTES];
        const int fd = make_file(lengths[i]);
        expect_hash(lengths[i], expected);

        assert_true(oteli_elf_read_htlhash(fd, &identity));

        assert_true(identity.has_htlhash);
        assert_memory_equal(identity.htlhash, expected, sizeof identity.htlhash);
        close(fd);
    }
}

TEST(what_is_no_file_has_no_hash)
{
    struct oteli_elf_identity identity = {0};
    const int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    assert_false(oteli_elf_read_htlhash(fd, &identity));
    assert_false(identity.has_htlhash);
    close(fd);
}

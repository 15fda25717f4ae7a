/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/process_context/thread_context_elf.c - see thread_context_check.h. What is loaded is looked
 * at where it lies in memory, as its dynamic section describes it. */
#include "api/thread/context_record.h"
#include "sdk/process_context/thread_context_check.h"

#include <elf.h>
#include <link.h>
#include <otel/thread_context.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
enum { INITIAL_EXEC = R_X86_64_TPOFF64, DESCRIPTOR = R_X86_64_TLSDESC };
#elif defined(__aarch64__)
enum { INITIAL_EXEC = R_AARCH64_TLS_TPREL, DESCRIPTOR = R_AARCH64_TLSDESC };
#else
enum { INITIAL_EXEC = -1, DESCRIPTOR = -1 };
#endif

/* An object's dynamic section, as far as it is of interest here. */
struct object {
    const ElfW(Sym) * symbols;
    const char *names;
    const uint32_t *hash;     /* DT_HASH, or … */
    const uint32_t *gnu_hash; /* … DT_GNU_HASH */
    const ElfW(Rela) * tables[2];
    size_t sizes[2]; /* in bytes */
};

struct search {
    const char *why;
    bool is_found;
};

/* Some C libraries have added the object's address to what the section says, others have not. */
static const void *at_address(const struct dl_phdr_info *info, ElfW(Addr) value)
{
    return (const void *)(value < info->dlpi_addr ? value + info->dlpi_addr : value);
}

static void read_entry(const struct dl_phdr_info *info, const ElfW(Dyn) * entry,
                       struct object *object)
{
    const void *address = at_address(info, entry->d_un.d_ptr);
    switch (entry->d_tag) {
    case DT_SYMTAB:
        object->symbols = address;
        break;
    case DT_STRTAB:
        object->names = address;
        break;
    case DT_HASH:
        object->hash = address;
        break;
    case DT_GNU_HASH:
        object->gnu_hash = address;
        break;
    case DT_RELA:
        object->tables[0] = address;
        break;
    case DT_RELASZ:
        object->sizes[0] = entry->d_un.d_val;
        break;
    case DT_JMPREL:
        object->tables[1] = address;
        break;
    case DT_PLTRELSZ:
        object->sizes[1] = entry->d_un.d_val;
        break;
    default:
        break;
    }
}

static bool read_object(const struct dl_phdr_info *info, struct object *object)
{
    memset(object, 0, sizeof *object);
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++)
            read_entry(info, entry, object);
    }
    return object->symbols != NULL && object->names != NULL;
}

/* A chain of the hash table ends where the lowest bit is set; symbols that are not in the table
 * come before all that are. */
static uint32_t count_by_gnu_hash(const uint32_t *table)
{
    const uint32_t bucket_count = table[0];
    const uint32_t first = table[1];
    const uint32_t *buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof *table);
    const uint32_t *chains = buckets + bucket_count;
    uint32_t last = 0;
    for (uint32_t i = 0; i < bucket_count; i++)
        last = buckets[i] > last ? buckets[i] : last;
    if (last < first)
        return first;
    while ((chains[last - first] & 1) == 0)
        last++;
    return last + 1;
}

static uint32_t find_symbol(const struct object *object)
{
    uint32_t count = 0;
    if (object->hash != NULL)
        count = object->hash[1];
    else if (object->gnu_hash != NULL)
        count = count_by_gnu_hash(object->gnu_hash);
    for (uint32_t i = 1; i < count; i++) {
        const ElfW(Sym) *symbol = &object->symbols[i];
        if (symbol->st_shndx != SHN_UNDEF && (symbol->st_info & 15) == STT_TLS &&
            strcmp(object->names + symbol->st_name, "otel_thread_ctx_v1") == 0)
            return i;
    }
    return 0;
}

/* Whether the object reaches the variable in one of the two ways that can be told from outside.
 * ELF64_R_INFO is that of both architectures. */
static bool is_reachable(const struct object *object, uint32_t symbol)
{
    for (unsigned i = 0; i < 2; i++)
        for (size_t k = 0; k < object->sizes[i] / sizeof *object->tables[i]; k++) {
            const uint64_t info = object->tables[i][k].r_info;
            const int64_t type = (int64_t)(info & UINT32_MAX);
            const bool is_it = info >> 32 == symbol ||
                               (info >> 32 == 0 && (uint64_t)object->tables[i][k].r_addend ==
                                                       object->symbols[symbol].st_value);
            if (is_it && (type == INITIAL_EXEC || type == DESCRIPTOR))
                return true;
        }
    return false;
}

/* The program itself comes first, and has the variable at a fixed distance from the thread
 * pointer: it needs no relocation. */
static int look_at(struct dl_phdr_info *info, size_t size, void *state)
{
    struct search *search = state;
    struct object object;
    const bool is_program = info->dlpi_name == NULL || info->dlpi_name[0] == '\0';
    if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data ||
        !read_object(info, &object))
        return 0;
    /* Of a library that was loaded, the block is not known before the thread has asked for it. */
    const uint32_t symbol = find_symbol(&object);
    const char *block = info->dlpi_tls_data;
    if (symbol == 0 || (block != NULL && block + object.symbols[symbol].st_value !=
                                             (const char *)oteli_thread_ctx_address()))
        return 0;
    search->is_found = true;
    if (!is_program && !is_reachable(&object, symbol))
        search->why = "otel_thread_ctx_v1 is reached in a way that readers do not know: neither "
                      "initial-exec nor by a TLS descriptor";
    return 1;
}

const char *oteli_thread_context_elf(void)
{
    struct search search = {.why = NULL};
    if (INITIAL_EXEC < 0)
        return "readers know thread-local memory of x86-64 and AArch64 only";
    dl_iterate_phdr(look_at, &search);
    if (!search.is_found)
        return "otel_thread_ctx_v1 is not in the dynamic symbol table of what defines it: link "
               "with -Wl,--export-dynamic-symbol=otel_thread_ctx_v1, and not with -static";
    return search.why;
}

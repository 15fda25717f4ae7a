/* SPDX-License-Identifier: Apache-2.0 */
/* functions/symbols.c - the door to elfutils' libdw and libelf.
 *
 * One lock guards all of it. Of a Dwfl there is one, whose list of modules is renewed when
 * the loader's counters have moved; a module that is still there keeps its open symbol
 * table. Files are mapped and closed again, so no descriptor stays. */
#include "functions/symbols.h"

#include "common/os/loader_generation.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SELF "/proc/self/exe"

/* A name that was looked up. */
struct name {
    uint64_t address; /* 0: a free place */
    uint64_t module;  /* the number of the module that it was found in */
    char *text;
};

/* What a Dwfl_Module has as its user data. */
struct module {
    uint64_t number; /* never used twice */
    uint64_t bias;   /* address minus what the file says */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Dwfl *dwfl;
static struct oteli_loader_count loader; /* when it was renewed */
static uint64_t serial;
static uint64_t modules_seen;
static struct name *names; /* open addressing */
static size_t name_count, name_capacity;

/* ---- modules ------------------------------------------------------------------------------ */

static int find_elf(Dwfl_Module *module, void **user_data, const char *path, Dwarf_Addr base,
                    char **file_name, Elf **elf)
{
    (void)module, (void)user_data, (void)base, (void)file_name;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    elf_version(EV_CURRENT);
    *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    if (*elf != NULL && elf_cntl(*elf, ELF_C_FDREAD) == 0)
        elf_cntl(*elf, ELF_C_FDDONE);
    close(fd);
    return -1;
}

static int report(struct dl_phdr_info *info, size_t size, void *state)
{
    (void)size;
    const bool is_program = *(bool *)state;
    *(bool *)state = false;
    GElf_Addr begin = UINT64_MAX;
    GElf_Addr end = 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD)
            continue;
        const GElf_Addr low = info->dlpi_addr + (part->p_vaddr & -part->p_align);
        const GElf_Addr high = info->dlpi_addr + part->p_vaddr + part->p_memsz;
        begin = low < begin ? low : begin;
        end = high > end ? high : end;
    }
    const char *path = is_program ? SELF : info->dlpi_name;
    if (end == 0 || path[0] == '\0')
        return 0;
    Dwfl_Module *reported = dwfl_report_module(dwfl, path, begin, end);
    void **user_data;
    if (reported == NULL ||
        dwfl_module_info(reported, &user_data, NULL, NULL, NULL, NULL, NULL, NULL) == NULL)
        return 0;
    struct module *module = *user_data;
    if (module == NULL && (module = calloc(1, sizeof *module)) != NULL) {
        module->number = ++modules_seen;
        *user_data = module;
    }
    if (module != NULL)
        module->bias = info->dlpi_addr;
    return 0;
}

/* Called with where the user data stands, like every callback of libdwfl. */
static int free_removed(Dwfl_Module *module, void *user_data, const char *name, Dwarf_Addr base,
                        void *state)
{
    (void)module, (void)name, (void)base, (void)state;
    free(*(void **)user_data);
    return DWARF_CB_OK;
}

/* Make the list of modules that of the loader. */
static bool renew(void)
{
    /* Only the place where distributions put what they stripped, by its build id. */
    static char *debug_files = "/usr/lib/debug";
    static const Dwfl_Callbacks callbacks = {.find_elf = find_elf,
                                             .find_debuginfo = dwfl_build_id_find_debuginfo,
                                             .debuginfo_path = &debug_files};
    const bool has_moved = oteli_loader_has_moved(&loader);
    if (dwfl != NULL && !has_moved)
        return true;
    if (dwfl == NULL)
        dwfl = dwfl_begin(&callbacks);
    if (dwfl == NULL)
        return false;
    dwfl_report_begin(dwfl);
    bool is_first = true; /* which is the program */
    dl_iterate_phdr(report, &is_first);
    dwfl_report_end(dwfl, free_removed, NULL);
    serial++;
    return true;
}

static const struct module *data_of(Dwfl_Module *module)
{
    void **user_data = NULL;
    if (module != NULL)
        dwfl_module_info(module, &user_data, NULL, NULL, NULL, NULL, NULL, NULL);
    return user_data != NULL ? *user_data : NULL;
}

/* ---- names --------------------------------------------------------------------------------- */

/* There if the program is C++; then the runtime of C++ has it. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status)
    __attribute__((weak));

/* The name without what a compiler puts behind it (".constprop.0"); allocated. */
static char *tidy_name(const char *symbol)
{
    const char *dot = symbol[0] != '\0' ? strchr(symbol + 1, '.') : NULL;
    char *plain = dot != NULL ? strndup(symbol, (size_t)(dot - symbol)) : strdup(symbol);
    if (plain == NULL || strncmp(plain, "_Z", 2) != 0 || __cxa_demangle == NULL)
        return plain;
    int status = 0;
    char *demangled = __cxa_demangle(plain, NULL, NULL, &status);
    if (demangled == NULL)
        return plain;
    free(plain);
    return demangled;
}

static char *look_up(Dwfl_Module *module, uint64_t address)
{
    GElf_Off offset = 0;
    GElf_Sym symbol = {0};
    const char *found = dwfl_module_addrinfo(module, address, &offset, &symbol, NULL, NULL, NULL);
    if (found != NULL && (offset == 0 || offset < symbol.st_size))
        return tidy_name(found);
    const struct module *data = data_of(module);
    const char *path = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    if (path == NULL || data == NULL)
        return NULL;
    const char *slash = strrchr(path, '/');
    const char *name = strcmp(path, SELF) == 0 ? program_invocation_short_name
                       : slash != NULL         ? slash + 1
                                               : path;
    char *text = NULL;
    if (asprintf(&text, "%s+0x%llx", name, (unsigned long long)(address - data->bias)) < 0)
        return NULL;
    return text;
}

static struct name *place_of(struct name *table, size_t capacity, uint64_t address)
{
    size_t i = (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (capacity - 1);
    while (table[i].address != 0 && table[i].address != address)
        i = (i + 1) & (capacity - 1);
    return &table[i];
}

static bool make_room(void)
{
    if ((name_count + 1) * 2 <= name_capacity)
        return true;
    const size_t capacity = name_capacity == 0 ? 256 : name_capacity * 2;
    struct name *table = calloc(capacity, sizeof *table);
    if (table == NULL)
        return false;
    for (size_t i = 0; i < name_capacity; i++)
        if (names[i].address != 0)
            *place_of(table, capacity, names[i].address) = names[i];
    free(names);
    names = table;
    name_capacity = capacity;
    return true;
}

/* The name of an address; NULL: unknown. A remembered one holds while no other module is
 * at its address. */
static const char *remember(uint64_t address)
{
    if (!renew() || !make_room())
        return NULL;
    struct name *place = place_of(names, name_capacity, address);
    Dwfl_Module *module = dwfl_addrmodule(dwfl, address);
    const struct module *data = data_of(module);
    if (data == NULL || (place->address != 0 && place->module == data->number))
        return place->text;
    char *text = look_up(module, address);
    if (text == NULL)
        return NULL;
    name_count += place->address == 0;
    free(place->text);
    *place = (struct name){.address = address, .module = data->number, .text = text};
    return text;
}

size_t oteli_symbols_name(const void *address, char *name, size_t size)
{
    pthread_mutex_lock(&lock);
    const char *text = remember((uintptr_t)address);
    const size_t length = text != NULL ? strlen(text) : 0;
    const size_t copied = length < size ? length : size;
    if (copied != 0)
        memcpy(name, text, copied);
    pthread_mutex_unlock(&lock);
    return length;
}

/* ---- all functions --------------------------------------------------------------------------- */

struct walk {
    void (*on_function)(void *state, const char *name, struct oteli_range function);
    void *state;
};

static int walk_module(Dwfl_Module *module, void **user_data, const char *name, Dwarf_Addr base,
                       void *state)
{
    (void)user_data, (void)name, (void)base;
    const struct walk *walk = state;
    const int symbols = dwfl_module_getsymtab(module);
    for (int i = 1; i < symbols; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *found = dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);
        if (found == NULL || GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
            symbol.st_shndx == SHN_UNDEF)
            continue;
        char plain[512];
        const size_t length = found[0] != '\0' ? 1 + strcspn(found + 1, ".") : 0;
        if (length == 0 || length >= sizeof plain)
            continue;
        memcpy(plain, found, length);
        plain[length] = '\0';
        const uint64_t size = symbol.st_size != 0 ? symbol.st_size : 1;
        walk->on_function(walk->state, plain, (struct oteli_range){address, address + size});
    }
    return DWARF_CB_OK;
}

void oteli_symbols_each(void (*on_function)(void *state, const char *name,
                                            struct oteli_range function),
                        void *state)
{
    pthread_mutex_lock(&lock);
    struct walk walk = {on_function, state};
    if (renew())
        dwfl_getmodules(dwfl, walk_module, &walk, 0);
    pthread_mutex_unlock(&lock);
}

uint64_t oteli_symbols_serial(void)
{
    pthread_mutex_lock(&lock);
    renew();
    const uint64_t now = serial;
    pthread_mutex_unlock(&lock);
    return now;
}

void oteli_symbols_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    dwfl = NULL;
    names = NULL;
    name_count = name_capacity = 0;
}

void oteli_symbols_fini(void)
{
    pthread_mutex_lock(&lock);
    if (dwfl != NULL) {
        dwfl_report_begin(dwfl); /* and nothing is reported: all are removed */
        dwfl_report_end(dwfl, free_removed, NULL);
        dwfl_end(dwfl);
    }
    for (size_t i = 0; i < name_capacity; i++)
        free(names[i].text);
    free(names);
    dwfl = NULL;
    names = NULL;
    name_count = name_capacity = 0;
    pthread_mutex_unlock(&lock);
}

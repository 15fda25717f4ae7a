/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/otel-flame.c - pprof profiles as a flame graph, of everything or of each value of a
 * label.
 *
 *     otel-flame --label query --out profile.html a.pb.gz b.pb.gz
 *
 * One thread. */
#include "tools/flame/flame_page.h"
#include "tools/flame/flame_text.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <otel/base.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { FAILED = 1, USAGE = 2, LINES_MAX = 20 };

/* Of a profile, unpacked: a day's has a hundredth of that. Decoded it may take fifty times as much,
 * if its messages are empty. */
enum { MOST_BYTES = 1 << 27 };

static const char usage_text[] =
    "usage: otel-flame [OPTION]... PROFILE...\n"
    "Draw pprof profiles (.pb.gz) as one flame graph.\n"
    "\n"
    "  -l, --label KEY        a graph for each value of this label, to choose from\n"
    "  -l, --label KEY=VALUE  only the samples with this value\n"
    "  -o, --out FILE         the page to write: .html, or .svg for one graph (flame.html; -: stdout)\n"
    "  -t, --title TEXT       what it is called\n"
    "  -h, --help             print this\n"
    "      --version          print the version\n"
    "\n"
    "PROFILE is a file, a pipe, or - for the standard input. Several are added up; what cannot be\n"
    "read is said, and left out. With --label KEY the share of each value is printed as well; an\n"
    ".svg has a box for each in its first row instead.\n"
    "Names come from the symbol tables of the programs, which have to be where they ran.\n"
    "Exit status: 0 it is written, 1 something is wrong, 2 wrong usage.\n"
    "\n"
    "  otel-flame --label http.route --out shop.html profiles/shop-*.pb.gz\n";

struct request {
    struct flame_choice choice;
    const char *out;
    const char *title;
    char *key; /* where KEY=VALUE was given */
};

static void complain(const char *file, const char *what)
{
    fprintf(stderr, "otel-flame: %s %s\n", file, what);
}

static bool has_ending(const char *name, const char *ending)
{
    const size_t length = strlen(name);
    const size_t tail = strlen(ending);
    return length >= tail && strcmp(name + length - tail, ending) == 0;
}

/* All bytes, unpacked, to be freed; the file is closed. NULL: *fault says why. */
static char *read_all(gzFile file, size_t *length, const char **fault)
{
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, length);
    char piece[1 << 14];
    long left = MOST_BYTES;
    int got = 0;
    int error;
    while (out != NULL && left > 0 && (got = gzread(file, piece, sizeof piece)) > 0)
        left -= (long)fwrite(piece, 1, (size_t)got, out);
    gzerror(file, &error);
    gzclose(file);
    if (out != NULL && fclose(out) == 0 && left > 0 && error == Z_OK)
        return bytes;
    if (left <= 0)
        *fault = "is too large";
    else if (error != Z_OK)
        *fault = error == Z_ERRNO ? "cannot be read" : "is a gzip file that is broken or cut off";
    free(bytes);
    return NULL;
}

/* A file, a pipe, or "-". NULL: *fault says why. */
static char *read_file(const char *name, size_t *length, const char **fault)
{
    struct stat status;
    const bool is_stdin = strcmp(name, "-") == 0;
    const int fd = is_stdin ? dup(STDIN_FILENO) : open(name, O_RDONLY | O_CLOEXEC);
    gzFile file = NULL;
    if (fd < 0 || fstat(fd, &status) != 0)
        *fault = errno == ENOENT ? "is not there" : "cannot be read";
    else if (S_ISDIR(status.st_mode))
        *fault = "is a directory";
    else if (!is_stdin && !S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))
        *fault = "is no file";
    else if ((file = gzdopen(fd, "rb")) != NULL)
        return read_all(file, length, fault);
    if (fd >= 0)
        close(fd);
    return NULL;
}

static bool add_file(struct flame_tree *tree, const char *name)
{
    struct flame_profile profile;
    size_t length;
    const char *fault = "does not fit into memory";
    char *bytes = read_file(name, &length, &fault);
    if (bytes != NULL)
        fault = flame_profile_read(&profile, bytes, length);
    free(bytes);
    if (fault == NULL) {
        fault = flame_tree_add(tree, &profile);
        flame_profile_fini(&profile);
    }
    if (fault != NULL)
        complain(name, fault);
    return fault == NULL;
}

/* Why there is nothing to draw, if there is nothing. */
static bool has_samples(const struct flame_tree *tree)
{
    const struct flame_choice *choice = &tree->choice;
    if (choice->key != NULL && !tree->has_key) {
        fprintf(stderr, "otel-flame: no sample has a label %s", choice->key);
        for (size_t i = 0; i < tree->key_count; i++) {
            fputs(i == 0 ? "; there are " : ", ", stderr);
            flame_put_plain(stderr, flame_tree_text(tree, tree->keys[i]));
        }
        fputc('\n', stderr);
        return false;
    }
    if (tree->nodes[FLAME_ALL].total > 0)
        return true;
    if (tree->has_left_out)
        fprintf(stderr, "otel-flame: no sample has %s=%s\n", choice->key, choice->value);
    else
        fputs("otel-flame: there are no samples\n", stderr);
    return false;
}

/* What can be read without a browser. */
static void print_shares(const struct flame_tree *tree)
{
    uint32_t left = tree->group_count;
    uint32_t root = flame_tree_group(tree, FLAME_ALL);
    for (; left > 0 && left + LINES_MAX > tree->group_count; left--) {
        const struct flame_node *node = &tree->nodes[root];
        char share[FLAME_NUMBER_SIZE];
        char time[FLAME_NUMBER_SIZE];
        printf("%8s  %8s  %s=", flame_share(node->total, tree->nodes[FLAME_ALL].total, share),
               flame_value(tree, node->total, time), tree->choice.key);
        flame_put_plain(stdout, flame_tree_text(tree, node->name));
        putchar('\n');
        root = flame_tree_group(tree, root);
    }
    if (left != 0)
        printf("          and %u more\n", left);
}

static bool write_out(const struct request *request, const struct flame_tree *tree)
{
    const bool is_stdout = strcmp(request->out, "-") == 0;
    FILE *out = is_stdout ? stdout : fopen(request->out, "we");
    if (out == NULL) {
        complain(request->out, "cannot be written");
        return false;
    }
    if (has_ending(request->out, ".svg"))
        flame_svg_write(out, tree, request->title);
    else
        flame_page_write(out, tree, request->title);
    const bool failed = ferror(out) != 0;
    const bool is_written = (is_stdout ? fflush(out) : fclose(out)) == 0 && !failed;
    if (!is_written)
        complain(request->out, "cannot be written");
    return is_written;
}

static int make(const struct request *request, char *const *files, int count)
{
    struct flame_tree tree;
    int status = FAILED;
    int added = 0;
    if (!flame_tree_init(&tree, &request->choice))
        goto no_memory;
    for (int i = 0; i < count; i++)
        added += add_file(&tree, files[i]);
    if (added == 0)
        goto fini;
    if (!flame_tree_finish(&tree))
        goto no_memory;
    if (!has_samples(&tree) || !write_out(request, &tree))
        goto fini;
    status = added == count ? 0 : FAILED;
    if (strcmp(request->out, "-") != 0) {
        print_shares(&tree);
        printf("%s: ", request->out);
        flame_put_summary(stdout, &tree);
        putchar('\n');
    }
    goto fini;
no_memory:
    complain("this", "does not fit into memory");
fini:
    flame_tree_fini(&tree);
    return status;
}

/* False: no memory. */
static bool choose(struct request *request, const char *label)
{
    const char *equals = strchr(label, '=');
    free(request->key);
    request->key = strndup(label, equals != NULL ? (size_t)(equals - label) : strlen(label));
    request->choice.key = request->key;
    request->choice.value = equals != NULL ? equals + 1 : NULL;
    return request->key != NULL;
}

static int say_wrong(const char *what)
{
    fprintf(stderr, "otel-flame: %s (--help says more)\n", what);
    return USAGE;
}

int main(int count, char **arguments)
{
    static const struct option options[] = {
        {"label", required_argument, NULL, 'l'}, {"out", required_argument, NULL, 'o'},
        {"title", required_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},     {NULL, 0, NULL, 0}};
    struct request request = {.out = "flame.html", .title = "Where the processor time goes"};
    int status = -1;
    int option;
    while (status < 0 && (option = getopt_long(count, arguments, "l:o:t:h", options, NULL)) >= 0) {
        if (option == 'l' && (optarg[0] == '\0' || optarg[0] == '='))
            status = say_wrong("which label?");
        else if (option == 'l')
            status = choose(&request, optarg) ? -1 : FAILED;
        else if (option == 'o')
            request.out = optarg;
        else if (option == 't')
            request.title = optarg;
        else if (option == 'h')
            status = fputs(usage_text, stdout) < 0;
        else if (option == 'v')
            status = puts("otel-flame " OTEL_VERSION) < 0;
        else
            status = say_wrong("that is no option of this program, or nothing stands behind it");
    }
    if (status < 0 && optind == count)
        status = say_wrong("which profiles?");
    request.choice.is_frame = has_ending(request.out, ".svg");
    if (status < 0)
        status = make(&request, arguments + optind, count - optind);
    free(request.key);
    return status;
}

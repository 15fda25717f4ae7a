/* SPDX-License-Identifier: Apache-2.0 */
/* mutant.h - which mutant of otel-c a process runs, and which ones it reached.
 *
 * The first line of each source that tests/mutants rewrote. OTELI_MUTANTS=NUMBER:FILE chooses the
 * mutant NUMBER, and none with 0; each place that is reached writes a 1 at its number into FILE.
 * The variable is read once, before any other code of the image; forked children inherit what was
 * read. A program that was started with another environment takes the variable from the nearest
 * process that started it and has it. */
#ifndef OTELI_MUTANT_H
#define OTELI_MUTANT_H
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OTELI_MUTANTS_MAX 4096
#define OTELI_MUTANT(number) (oteli_mutant_reached[number] = 1, oteli_mutant == (number))
/* One of each in an image, however many sources of it have been rewritten. */
#define OTELI_ONCE __attribute__((weak, visibility("hidden")))

OTELI_ONCE int oteli_mutant;
OTELI_ONCE unsigned char oteli_mutant_nowhere[OTELI_MUTANTS_MAX];
OTELI_ONCE unsigned char *oteli_mutant_reached = oteli_mutant_nowhere;

/* Reads /proc/PID/NAME, with a 0 behind it, and returns how many bytes there are. */
static inline long oteli_mutant_file(long pid, const char *name, char *into, size_t room)
{
    char path[64] = "/proc/", digits[24] = "";
    size_t at = sizeof digits - 1;
    do {
        digits[--at] = (char)('0' + pid % 10);
        pid /= 10;
    } while (pid > 0);
    strcat(strcat(path, digits + at), name);

    const int file = open(path, O_RDONLY | O_CLOEXEC);
    long bytes = 0;
    for (long got = 1; file >= 0 && got > 0 && (size_t)bytes<room - 1; bytes += got> 0 ? got : 0) {
        got = read(file, into + bytes, room - 1 - (size_t)bytes);
    }
    if (file >= 0) {
        close(file);
    }
    into[bytes] = 0;
    return bytes;
}

__attribute__((weak, visibility("hidden"), constructor(101))) void oteli_mutant_read(void);
void oteli_mutant_read(void)
{
    static const char variable[] = "OTELI_MUTANTS=";
    static char text[128 * 1024];
    static int done;
    if (done) {
        return;
    }
    done = 1;
    for (long pid = getpid(); pid > 1;) {
        const long bytes = oteli_mutant_file(pid, "/environ", text, sizeof text);
        for (const char *at = text; at < text + bytes; at += strlen(at) + 1) {
            char *path = NULL;
            if (strncmp(at, variable, sizeof variable - 1) != 0) {
                continue;
            }
            oteli_mutant = (int)strtol(at + sizeof variable - 1, &path, 10);
            const int file = open(path + 1, O_RDWR | O_CLOEXEC);
            if (file >= 0) {
                void *map =
                    mmap(NULL, OTELI_MUTANTS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
                oteli_mutant_reached = map == MAP_FAILED ? oteli_mutant_nowhere : map;
                close(file);
            }
            return;
        }
        oteli_mutant_file(pid, "/stat", text, sizeof text);
        const char *name_end = strrchr(text, ')');
        pid = name_end == NULL || strlen(name_end) < 4 ? 0 : strtol(name_end + 4, NULL, 10);
    }
}
#endif

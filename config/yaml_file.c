/* SPDX-License-Identifier: Apache-2.0 */
/* config/yaml_file.c - see yaml_file.h. Start/stop only. */
#include "config/yaml_file.h"

#include "common/os/read_all.h"
#include "common/text/error_text.h"
#include "config/read/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct oteli_place nowhere; /* the whole file */

otel_status oteli_file_parse(const char *text, size_t length, struct oteli_file *file,
                             struct oteli_settings *settings)
{
    const struct oteli_node *root = oteli_document_read(text, length, file);
    if (root != NULL)
        oteli_schema_check(root, &oteli_schema_file, file);
    if (root != NULL && file->faults == 0)
        oteli_settings_read(root, file, settings);
    return oteli_file_status(file);
}

static bool has_extension(const char *path, const char *extension)
{
    const size_t length = strlen(path);
    const size_t tail = strlen(extension);
    return length > tail && strcmp(path + length - tail, extension) == 0;
}

/* A device or a pipe might never end, or make us wait. */
static int open_regular(struct oteli_file *file)
{
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat about;
    struct oteli_error_text why;
    if (fd < 0) {
        oteli_fault(file, nowhere, "the file cannot be opened: %s", oteli_error_text(errno, &why));
        return -1;
    }
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode))
        return fd;
    oteli_fault(file, nowhere, "this is no regular file");
    close(fd);
    return -1;
}

otel_status oteli_file_read(struct oteli_file *file, struct oteli_settings *settings)
{
    if (!has_extension(file->path, ".yaml") && !has_extension(file->path, ".yml")) {
        oteli_fault(file, nowhere, "the name of a configuration file ends in .yaml or .yml");
        return OTEL_ERROR_INVALID_ARGUMENT;
    }
    const int fd = open_regular(file);
    if (fd < 0)
        return OTEL_ERROR_SYSTEM;
    otel_status status = OTEL_ERROR_NO_MEMORY;
    struct oteli_error_text why;
    char *text = malloc(OTELI_DOCUMENT_BYTES + 1);
    const ssize_t length = text != NULL ? oteli_read_all(fd, text, OTELI_DOCUMENT_BYTES + 1) : 0;
    if (text == NULL) {
        oteli_fault_no_memory(file);
    } else if (length < 0) {
        oteli_fault(file, nowhere, "the file cannot be read: %s", oteli_error_text(errno, &why));
        status = OTEL_ERROR_SYSTEM;
    } else {
        status = oteli_file_parse(text, (size_t)length, file, settings);
    }
    free(text);
    close(fd);
    return status;
}

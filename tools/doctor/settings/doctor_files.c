/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/settings/doctor_files.c - the contracts are in
 * tools/doctor/settings/doctor_files.h. */
#include "tools/doctor/settings/doctor_files.h"

#include "tools/doctor/settings/doctor_redact.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct doctor_file *next_file(struct doctor_record *record, const char *name,
                                     const char *path)
{
    struct doctor_file *file = &record->files[record->file_count++];
    snprintf(file->name, sizeof file->name, "%s", name);
    doctor_one_line(path, strlen(path), file->path, sizeof file->path);
    return file;
}

static void fault(struct doctor_file *file, const char *what, const char *detail)
{
    file->is_bad = true;
    snprintf(file->state, sizeof file->state, "%s%s", what, detail);
}

/* NULL: it cannot be read, and the file says why. */
static FILE *open_file(struct doctor_file *file, const char *path)
{
    struct stat status;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        fault(file, "is not there", "");
    else if (fd < 0)
        fault(file, "cannot be read: ", strerror(errno));
    else if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        fault(file, S_ISDIR(status.st_mode) ? "is a directory" : "is no regular file", "");
    else
        return fdopen(fd, "r");
    if (fd >= 0)
        close(fd);
    return NULL;
}

static void write_day(const ASN1_TIME *time, char *out, size_t size)
{
    struct tm day;
    if (ASN1_TIME_to_tm(time, &day) != 1 || strftime(out, size, "%Y-%m-%d", &day) == 0)
        snprintf(out, size, "an unknown day");
}

/* Whether a certificate counts today; otherwise the file says since or until when not. */
static bool is_valid_today(struct doctor_file *file, const X509 *certificate)
{
    char day[32];
    if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
        write_day(X509_get0_notAfter(certificate), day, sizeof day);
        fault(file, "has expired: its certificate was valid until ", day);
        return false;
    }
    if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
        write_day(X509_get0_notBefore(certificate), day, sizeof day);
        fault(file, "is not valid yet: its certificate begins on ", day);
        return false;
    }
    return true;
}

static void describe_certificate(struct doctor_file *file, const X509 *certificate, size_t more)
{
    char day[32];
    char subject[128];
    write_day(X509_get0_notAfter(certificate), day, sizeof day);
    X509_NAME_oneline(X509_get_subject_name(certificate), subject, sizeof subject);
    snprintf(file->state, sizeof file->state, "a certificate of %s, valid until %s", subject, day);
    if (more != 0) {
        const size_t length = strlen(file->state);
        snprintf(file->state + length, sizeof file->state - length, ", and %zu more", more);
    }
}

/* The first certificate of a file, which the caller frees; NULL: the file says why not. */
static X509 *read_certificates(struct doctor_file *file, const char *path)
{
    FILE *stream = open_file(file, path);
    if (stream == NULL)
        return NULL;
    X509 *first = PEM_read_X509(stream, NULL, NULL, NULL);
    size_t more = 0;
    for (X509 *next; first != NULL && (next = PEM_read_X509(stream, NULL, NULL, NULL)) != NULL;) {
        X509_free(next);
        more++;
    }
    fclose(stream);
    ERR_clear_error();
    if (first == NULL)
        fault(file, "has no certificate in it (PEM is wanted)", "");
    else if (is_valid_today(file, first))
        describe_certificate(file, first, more);
    return first;
}

/* Nobody is asked for a pass phrase: the exporter has none either. */
static int no_phrase(char *out, int size, int writes, void *state)
{
    (void)writes;
    *(bool *)state = true;
    if (size > 0)
        out[0] = '\0';
    return -1;
}

static void examine_key(struct doctor_file *file, const char *path, X509 *certificate)
{
    FILE *stream = open_file(file, path);
    if (stream == NULL)
        return;
    bool is_encrypted = false;
    EVP_PKEY *key = PEM_read_PrivateKey(stream, NULL, no_phrase, &is_encrypted);
    fclose(stream);
    if (is_encrypted)
        fault(file, "is protected by a pass phrase, which the exporter does not have", "");
    else if (key == NULL)
        fault(file, "has no private key in it (PEM is wanted)", "");
    else if (certificate != NULL && X509_check_private_key(certificate, key) != 1)
        fault(file, "is not the key of the client's certificate", "");
    else
        snprintf(file->state, sizeof file->state, "a private key%s",
                 certificate != NULL ? " that belongs to the certificate" : "");
    EVP_PKEY_free(key);
    ERR_clear_error();
}

void doctor_files_examine(const struct doctor_tls_files *files, struct doctor_record *record)
{
    X509 *certificate = NULL;
    if (files->ca != NULL)
        X509_free(read_certificates(next_file(record, files->ca_name, files->ca), files->ca));
    if (files->certificate != NULL)
        certificate = read_certificates(
            next_file(record, files->certificate_name, files->certificate), files->certificate);
    if (files->key != NULL)
        examine_key(next_file(record, files->key_name, files->key), files->key, certificate);
    X509_free(certificate);

    char *fault_text = record->settings.tls_file_fault;
    for (size_t i = 0; i < record->file_count && fault_text[0] == '\0'; i++) {
        const struct doctor_file *file = &record->files[i];
        if (file->is_bad)
            snprintf(fault_text, DOCTOR_TEXT, "%s, which %s names, %s", file->path, file->name,
                     file->state);
    }
    if ((files->certificate != NULL) != (files->key != NULL) && fault_text[0] == '\0')
        snprintf(fault_text, DOCTOR_TEXT, "there is a client's %s, but no %s",
                 files->key != NULL ? "key" : "certificate",
                 files->key != NULL ? "certificate that belongs to it" : "key to it");
}

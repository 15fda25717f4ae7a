/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/certificates.c - the contracts are in certificates.h. Owns the directory. */
#include "tests/support/certificates.h"

#include <dirent.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATHS = 8, PATH_BYTES = 512, DAY_S = 24 * 60 * 60 };

struct certificates {
    char directory[PATH_BYTES / 2];
    bool is_own;
    EVP_PKEY *key;
    X509 *authority;
    long serial;
    char *paths[PATHS];
    size_t next_path;
};

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "certificates: cannot %s\n", what);
    exit(2);
}

static FILE *create(struct certificates *certificates, const char *name, const char *suffix)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s%s", certificates->directory, name, suffix);
    FILE *file = fopen(path, "we");
    must(file != NULL, path);
    return file;
}

static void add_extension(X509 *certificate, X509 *issuer, int what, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, what, value);
    must(extension != NULL && X509_add_ext(certificate, extension, -1) == 1, value);
    X509_EXTENSION_free(extension);
}

/* A certificate without extensions and signature. */
static X509 *begin_certificate(struct certificates *certificates, const char *name, EVP_PKEY *key,
                               long from_s, long to_s)
{
    X509 *certificate = X509_new();
    must(certificate != NULL && X509_set_version(certificate, 2) == 1 &&
             ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++certificates->serial) == 1 &&
             X509_gmtime_adj(X509_getm_notBefore(certificate), from_s) != NULL &&
             X509_gmtime_adj(X509_getm_notAfter(certificate), to_s) != NULL &&
             X509_set_pubkey(certificate, key) == 1 &&
             X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                        (const unsigned char *)name, -1, -1, 0) == 1,
         "make a certificate");
    return certificate;
}

static void write_pair(struct certificates *certificates, const char *name, X509 *certificate,
                       EVP_PKEY *key)
{
    FILE *file = create(certificates, name, ".pem");
    must(PEM_write_X509(file, certificate) == 1, "write a certificate");
    must(fclose(file) == 0, "write a certificate");
    file = create(certificates, name, ".key");
    must(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1, "write a key");
    must(fclose(file) == 0, "write a key");
}

static void make_authority(struct certificates *certificates)
{
    certificates->serial = (long)getpid() << 16;
    certificates->key = EVP_EC_gen("P-256");
    must(certificates->key != NULL, "make a key");
    X509 *made =
        begin_certificate(certificates, "otel-c tests", certificates->key, -DAY_S, 30L * DAY_S);
    must(X509_set_issuer_name(made, X509_get_subject_name(made)) == 1, "name the authority");
    add_extension(made, made, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(made, made, NID_key_usage, "critical,keyCertSign,cRLSign");
    add_extension(made, made, NID_subject_key_identifier, "hash");
    must(X509_sign(made, certificates->key, EVP_sha256()) != 0, "sign");
    certificates->authority = made;
    write_pair(certificates, "ca", made, certificates->key);
}

struct certificates *certificates_new_in(const char *directory)
{
    struct certificates *certificates = calloc(1, sizeof *certificates);
    must(certificates != NULL, "get memory");
    snprintf(certificates->directory, sizeof certificates->directory, "%s", directory);
    make_authority(certificates);
    return certificates;
}

struct certificates *certificates_new(void)
{
    char directory[PATH_BYTES / 2];
    const char *base = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/otel-c-certificates.XXXXXX",
             base != NULL && *base != '\0' ? base : "/tmp");
    must(mkdtemp(directory) != NULL, directory);
    struct certificates *certificates = certificates_new_in(directory);
    certificates->is_own = true;
    return certificates;
}

void certificates_issue(struct certificates *certificates,
                        const struct certificate_request *request)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    must(key != NULL, "make a key");
    X509 *made = begin_certificate(certificates, request->name, key, -2L * DAY_S,
                                   request->is_expired ? -DAY_S : 10L * DAY_S);
    must(X509_set_issuer_name(made, X509_get_subject_name(certificates->authority)) == 1,
         "name the issuer");
    add_extension(made, certificates->authority, NID_subject_alt_name,
                  request->hosts != NULL ? request->hosts : "DNS:localhost,IP:127.0.0.1,IP:::1");
    add_extension(made, certificates->authority, NID_ext_key_usage, "serverAuth,clientAuth");
    add_extension(made, certificates->authority, NID_authority_key_identifier, "keyid");
    must(X509_sign(made, certificates->key, EVP_sha256()) != 0, "sign");
    write_pair(certificates, request->name, made, key);
    X509_free(made);
    EVP_PKEY_free(key);
}

const char *certificates_path(struct certificates *certificates, const char *file)
{
    char **path = &certificates->paths[certificates->next_path++ % PATHS];
    free(*path);
    must(asprintf(path, "%s/%s", certificates->directory, file) > 0, "get memory");
    return *path;
}

static void remove_directory(const struct certificates *certificates)
{
    DIR *files = opendir(certificates->directory);
    for (const struct dirent *entry; files != NULL && (entry = readdir(files)) != NULL;)
        (void)unlinkat(dirfd(files), entry->d_name, 0);
    if (files != NULL)
        (void)closedir(files);
    (void)rmdir(certificates->directory);
}

void certificates_free(struct certificates *certificates)
{
    if (certificates == NULL)
        return;
    if (certificates->is_own)
        remove_directory(certificates);
    for (size_t i = 0; i < PATHS; i++)
        free(certificates->paths[i]);
    X509_free(certificates->authority);
    EVP_PKEY_free(certificates->key);
    free(certificates);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/service_store.h - the database of the service that benchmarks/service.c
 * measures: products with a stock, and baskets of 16 lines, in SQLite, in memory.
 *
 * Nothing in here knows about tracing. Every call succeeds or fails the benchmark.
 *
 * Threads:  one thread. */
#ifndef OTELI_BENCH_SERVICE_STORE_H
#define OTELI_BENCH_SERVICE_STORE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SERVICE_PRODUCTS = 5000,
    SERVICE_BASKETS = 1000,
    SERVICE_LINES = 16,
    SERVICE_SKU = 16,
    SERVICE_NAME = 48
};

struct service_product {
    int64_t id;
    int64_t cents;
    int64_t stock;
    char name[SERVICE_NAME];
};

/* What a basket holds. */
struct service_line {
    int64_t line;
    int64_t quantity;
    int64_t cents; /* each */
    char sku[SERVICE_SKU];
    char name[SERVICE_NAME];
};

struct service_store;

/* Make the tables and fill them: always with the same rows. */
struct service_store *service_store_open(void);
void service_store_close(struct service_store *store);

/* The SKU of a product from 0 to SERVICE_PRODUCTS - 1. */
void service_store_sku(char sku[SERVICE_SKU], unsigned product);

/* A transaction around the next two. */
void service_store_begin(struct service_store *store);
void service_store_commit(struct service_store *store);

/* Each answers how many rows it changed. */
int service_store_take(struct service_store *store, int64_t product, int64_t quantity);
int service_store_put_line(struct service_store *store, int64_t basket, int64_t line,
                           int64_t product, int64_t quantity);

/* False: there is none with that SKU. */
bool service_store_find(struct service_store *store, const char *sku,
                        struct service_product *product);
/* Answers how many lines there are. */
unsigned service_store_lines(struct service_store *store, int64_t basket,
                             struct service_line lines[SERVICE_LINES]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/service_store.c - tables, prepared statements, and one function for each. */
#include "benchmarks/service_store.h"
#include "benchmarks/bench.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum statement { BEGIN, COMMIT, FIND, TAKE, PUT_LINE, LINES, STATEMENTS };

/* A stock that runs out is filled up, so that the work is the same for ever. */
static const char *const statement_texts[STATEMENTS] = {
    [BEGIN] = "BEGIN",
    [COMMIT] = "COMMIT",
    [FIND] = "SELECT id, cents, stock, name FROM product WHERE sku = ?1",
    [TAKE] = "UPDATE product SET stock = stock - ?2 + CASE WHEN stock < 100 THEN 1000 ELSE 0 END"
             " WHERE id = ?1",
    [PUT_LINE] = "UPDATE line SET product = ?3, quantity = ?4 WHERE basket = ?1 AND line = ?2",
    [LINES] = "SELECT line.line, line.quantity, product.cents, product.sku,"
              " product.name"
              " FROM line JOIN product ON product.id = line.product WHERE line.basket = ?1"
              " ORDER BY line.line"};

static const char schema[] =
    "CREATE TABLE product(id INTEGER PRIMARY KEY, sku TEXT NOT NULL UNIQUE, name TEXT NOT NULL,"
    " cents INTEGER NOT NULL, stock INTEGER NOT NULL);"
    "CREATE TABLE line(basket INTEGER, line INTEGER, product INTEGER NOT NULL,"
    " quantity INTEGER NOT NULL, PRIMARY KEY(basket, line)) WITHOUT ROWID;";

struct service_store {
    sqlite3 *database;
    sqlite3_stmt *statements[STATEMENTS];
};

static void expect(const struct service_store *store, bool is_good, const char *what)
{
    if (!is_good)
        bench_fail("SQLite: %s: %s", what, sqlite3_errmsg(store->database));
}

static void execute(const struct service_store *store, const char *text)
{
    expect(store, sqlite3_exec(store->database, text, NULL, NULL, NULL) == SQLITE_OK, text);
}

static sqlite3_stmt *prepare(const struct service_store *store, const char *text)
{
    sqlite3_stmt *statement = NULL;
    expect(store,
           sqlite3_prepare_v3(store->database, text, -1, SQLITE_PREPARE_PERSISTENT, &statement,
                              NULL) == SQLITE_OK,
           text);
    return statement;
}

/* Run a statement to the end whose arguments are integers, and make it ready for its next run. */
static void run(const struct service_store *store, sqlite3_stmt *statement,
                const int64_t *arguments, int count)
{
    for (int i = 0; i < count; i++)
        sqlite3_bind_int64(statement, i + 1, arguments[i]);
    expect(store, sqlite3_step(statement) == SQLITE_DONE, sqlite3_sql(statement));
    sqlite3_reset(statement);
}

void service_store_sku(char sku[SERVICE_SKU], unsigned product)
{
    snprintf(sku, SERVICE_SKU, "SKU-%05u", product * 7 % 100000);
}

static void fill(const struct service_store *store)
{
    sqlite3_stmt *product =
        prepare(store, "INSERT INTO product VALUES(?1, ?4, 'Product number ' || ?1, ?2, ?3)");
    sqlite3_stmt *line = prepare(store, "INSERT INTO line VALUES(?1, ?2, ?3, ?4)");
    for (unsigned i = 0; i < SERVICE_PRODUCTS; i++) {
        char sku[SERVICE_SKU];
        service_store_sku(sku, i);
        sqlite3_bind_text(product, 4, sku, -1, SQLITE_STATIC);
        run(store, product, (const int64_t[]){i, 100 + i * 31 % 9900, 1000}, 3);
    }
    for (unsigned i = 0; i < SERVICE_BASKETS * SERVICE_LINES; i++)
        run(store, line,
            (const int64_t[]){i / SERVICE_LINES, i % SERVICE_LINES, i * 13 % SERVICE_PRODUCTS,
                              1 + i % 5},
            4);
    sqlite3_finalize(product);
    sqlite3_finalize(line);
}

struct service_store *service_store_open(void)
{
    struct service_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        bench_fail("no memory");
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    expect(store, sqlite3_open_v2(":memory:", &store->database, flags, NULL) == SQLITE_OK, "open");
    execute(store, schema);
    execute(store, "BEGIN");
    fill(store);
    execute(store, "COMMIT; ANALYZE");
    for (unsigned i = 0; i < STATEMENTS; i++)
        store->statements[i] = prepare(store, statement_texts[i]);
    return store;
}

void service_store_close(struct service_store *store)
{
    for (unsigned i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(store->statements[i]);
    sqlite3_close(store->database);
    free(store);
}

void service_store_begin(struct service_store *store)
{
    run(store, store->statements[BEGIN], NULL, 0);
}

void service_store_commit(struct service_store *store)
{
    run(store, store->statements[COMMIT], NULL, 0);
}

int service_store_take(struct service_store *store, int64_t product, int64_t quantity)
{
    run(store, store->statements[TAKE], (const int64_t[]){product, quantity}, 2);
    return sqlite3_changes(store->database);
}

int service_store_put_line(struct service_store *store, int64_t basket, int64_t line,
                           int64_t product, int64_t quantity)
{
    run(store, store->statements[PUT_LINE], (const int64_t[]){basket, line, product, quantity}, 4);
    return sqlite3_changes(store->database);
}

/* A text column, cut where there is no more room. */
static void copy_text(char *copy, size_t size, sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    const size_t length = (size_t)sqlite3_column_bytes(statement, column);
    const size_t taken = length < size ? length : size - 1;
    memcpy(copy, text, taken);
    copy[taken] = '\0';
}

bool service_store_find(struct service_store *store, const char *sku,
                        struct service_product *product)
{
    sqlite3_stmt *statement = store->statements[FIND];
    sqlite3_bind_text(statement, 1, sku, -1, SQLITE_STATIC);
    const int status = sqlite3_step(statement);
    expect(store, status == SQLITE_ROW || status == SQLITE_DONE, "find");
    if (status == SQLITE_ROW) {
        product->id = sqlite3_column_int64(statement, 0);
        product->cents = sqlite3_column_int64(statement, 1);
        product->stock = sqlite3_column_int64(statement, 2);
        copy_text(product->name, sizeof product->name, statement, 3);
    }
    sqlite3_reset(statement);
    return status == SQLITE_ROW;
}

unsigned service_store_lines(struct service_store *store, int64_t basket,
                             struct service_line lines[SERVICE_LINES])
{
    sqlite3_stmt *statement = store->statements[LINES];
    unsigned count = 0;
    int status;
    sqlite3_bind_int64(statement, 1, basket);
    while ((status = sqlite3_step(statement)) == SQLITE_ROW && count < SERVICE_LINES) {
        struct service_line *line = &lines[count++];
        line->line = sqlite3_column_int64(statement, 0);
        line->quantity = sqlite3_column_int64(statement, 1);
        line->cents = sqlite3_column_int64(statement, 2);
        copy_text(line->sku, sizeof line->sku, statement, 3);
        copy_text(line->name, sizeof line->name, statement, 4);
    }
    expect(store, status == SQLITE_DONE, "lines");
    sqlite3_reset(statement);
    return count;
}

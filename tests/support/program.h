/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/program.h - random programs that trace, and what must come of them.
 *
 *     program_make     a list of operations, each for one of several threads, together with
 *                      what they mean: the model. The list has one order; an operation waits
 *                      only for those before it that it cannot be exchanged with
 *     program_run      the same on real threads, with the real SDK
 *     program_check    whether what was exported and counted is what the model says
 *
 * A thread of a program is called a life: it begins, does its operations and ends, possibly
 * with spans open. Later lives take over what earlier ones have left behind.
 *
 * The model knows of the API what its headers say, and of contexts that an attached one or a
 * stretch that ends over open spans leaves the one before it current (api/thread/thread_state.h).
 *
 * Threads:  program_run starts its own; everything else one thread. */
#ifndef OTELI_TESTS_PROGRAM_H
#define OTELI_TESTS_PROGRAM_H

#include <otel/memory.h>
#include <otel/otel.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    PROGRAM_LIVES = 12,
    PROGRAM_OPS = 800,
    PROGRAM_SPANS = 400,
    PROGRAM_SETS = 400,
    PROGRAM_LINES = 200,
    PROGRAM_PLACES = 500,
    PROGRAM_PARENTS = 4,
    PROGRAM_REMOTES = 3, /* the last one is not sampled */
    PROGRAM_NONE = -1
};

/* What can be current, or a parent. */
enum program_context_kind { PROGRAM_NO_SPAN, PROGRAM_SPAN, PROGRAM_STRETCH, PROGRAM_REMOTE };
struct program_context {
    enum program_context_kind kind;
    int index; /* of the span, the set of the stretch, the remote parent */
};

enum program_op_kind {
    PROGRAM_ENTER,
    PROGRAM_START,
    PROGRAM_END,
    PROGRAM_CANCEL,
    PROGRAM_COLLECT,
    PROGRAM_SET, /* an attribute whose key is the life's */
    PROGRAM_FAIL,
    PROGRAM_ATTACH,
    PROGRAM_DETACH,
    PROGRAM_BEGIN,  /* otel_lines_begin */
    PROGRAM_FINISH, /* otel_lines_end */
    PROGRAM_MOUNT,
    PROGRAM_FREE,
    PROGRAM_RECORD, /* otel_span_record; the span's handle is a wrapped one */
    PROGRAM_EXIT
};

enum program_parent { PROGRAM_CURRENT, PROGRAM_ROOT, PROGRAM_EXPLICIT };

struct program_op {
    enum program_op_kind kind;
    int life;
    int span;
    int lines;
    int token;
    int value;
    enum program_parent parent;
    struct program_context context; /* of an explicit parent, or to attach */
    bool hold;
    bool linked;
    struct program_context parents[PROGRAM_PARENTS]; /* to mount under */
    int parent_count;
    int expected;                     /* spans of the otel_lines that come out */
    int lost[OTEL_DROP_REASON_COUNT]; /* by it, but for exits */
    int withheld[OTEL_WITHHELD_REASON_COUNT];
    int needs[PROGRAM_LIVES]; /* how many operations of each life must be done before */
};

enum program_fate {
    PROGRAM_OPEN,
    PROGRAM_UNSAMPLED,
    PROGRAM_IN_SET,
    PROGRAM_EXPORTED,
    PROGRAM_LOST
};

struct program_span {
    int life; /* an entered one's; PROGRAM_NONE: detached */
    struct program_context parent;
    int trace;
    enum program_fate fate;
    bool is_open;
    bool is_sampled;
    bool is_held;      /* as its handle says */
    bool is_collected; /* likewise */
    bool holds;
    bool is_late;
    bool has_failed;
    int set; /* where it ends, or has ended */
    int values[PROGRAM_LIVES];

    /* when it has run */
    otel_span handle;
    otel_span_context ids;
};

enum program_state { PROGRAM_HOLDING, PROGRAM_KEPT, PROGRAM_CLOSED };

struct program_set {
    enum program_state state;
    bool is_abandoned; /* closed because its root was left open */
    int count;         /* of spans that ended into it */
    bool has_error;
    int outer;         /* the set around it, which takes what it keeps */
    otel_span stretch; /* what is current in it, when it has run */
};

struct program_lines {
    int set;
    bool is_given; /* there were spans in it */
    bool is_accounted;
    bool is_free;
    otel_lines *lines; /* when it has run */
};

struct program_mount {
    int set;
    struct program_context parent;
    bool linked;
};

/* A place on a thread's stack of contexts. */
enum program_place_kind {
    PROGRAM_BOTTOM,
    PROGRAM_IS_SPAN,
    PROGRAM_ATTACHED,
    PROGRAM_IS_STRETCH,
    PROGRAM_COVER
};
struct program_place {
    enum program_place_kind kind;
    struct program_context context;
    int below; /* a cover: what it repeats */
    int token; /* attached: PROGRAM_NONE once it was detached */
    bool is_dead;
    bool is_passed; /* one of its trace that it was entered in has ended */
};

struct program_life {
    struct program_place places[PROGRAM_PLACES];
    int top;
    int attached[PROGRAM_PLACES]; /* places, the newest last */
    int attached_count;
    int after; /* the life that ends before this one begins */
    int op_count;
    bool has_ended;
};

/* Who has read and written a thing: operations of each life so far, or 0. */
struct program_history {
    int writer;
    int written;
    int read[PROGRAM_LIVES];
};

enum { PROGRAM_THINGS = 2 * PROGRAM_SPANS + PROGRAM_SETS + PROGRAM_LINES };

struct program {
    uint64_t seed;
    uint64_t random;
    bool is_simple;
    bool has_rules;

    struct program_op ops[PROGRAM_OPS];
    int op_count;
    struct program_span spans[PROGRAM_SPANS];
    int span_count;
    struct program_set sets[PROGRAM_SETS];
    int set_count;
    struct program_lines lines[PROGRAM_LINES];
    int lines_count;
    struct program_mount mounts[PROGRAM_OPS * PROGRAM_PARENTS];
    int mount_count;
    struct program_life lives[PROGRAM_LIVES];
    int life_count;
    struct program_history things[PROGRAM_THINGS];
    int token_count;
    int holders[PROGRAM_SPANS + PROGRAM_SETS + PROGRAM_REMOTES]; /* by trace */

    otel_stats expected;
    otel_span_context remotes[PROGRAM_REMOTES];
    struct {
        int span_count; /* 0: it is not asked about */
        bool has_error;
    } tails[PROGRAM_SPANS]; /* by the number of the root */
};

/* Make the program of a seed, with its model. */
void program_make(struct program *program, uint64_t seed);

/* program_model.c: do the last operation of the list, whose members say what it is to do. */
void program_do(struct program *program, struct program_op *op);

/* The context that is current in a life. */
struct program_context program_current(const struct program *program, int life);

/* What the rules say about the trace of this root. */
bool program_keeps(int root, bool has_error);

/* The number at the end of a name or key, behind `skip` characters. */
int program_number(otel_slice text, size_t skip);

/* A random number below a limit. */
int program_below(struct program *program, int limit);

/* Run it; the spans that are exported go to `memory`. The SDK has been shut down then, and
 * all threads have ended. */
void program_run(struct program *program, otel_memory *memory);

/* End the test when this is not so of a span, and say of which program. */
void program_require(const struct program *program, bool condition, const char *what, int number);

/* End the test because an operation has another number of spans lost or withheld than it should. */
void program_fail_at(const struct program *program, const struct program_op *op, const char *reason,
                     uint64_t count, int wanted);

/* End the test unless everything came as the model says. */
void program_check(struct program *program, const otel_memory *memory);

/* All of it, with what is open when the SDK stops: that is ended afterwards, and harms nobody;
 * printed before, if that is asked for. */
void program_try(struct program *program, uint64_t seed, bool print);

#endif

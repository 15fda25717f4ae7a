/* SPDX-License-Identifier: Apache-2.0 */
/* functions/entry_hooks.c - what the compiler calls at the entry and the exit of each function.
 *
 * App threads, at any point of a program that knows nothing of it. So a hook looks first
 * whether it may do anything:
 *
 *   no SDK was ever started     one load, and that is all
 *   inside a hook already       a signal handler runs: nothing, and nothing for the exit either
 *   inside a signal handler     nothing until the handler has returned. It is known by where
 *                               it will return to, which is code of the kernel's choice
 *   on another stack            nothing: heights could not be compared (sigaltstack, coroutines)
 *
 *   the exporter's own thread   nothing: exporting spans would make spans
 *
 * What a thread has is a small thread-local struct, and from its first traced function to its
 * end the pages with its frames. They are mapped, not allocated, and not thread-local either:
 * that would take them from the stacks of all threads, which may be small. */
#include "functions/entry_hooks.h"

#include "common/base/atomic.h"
#include "functions/exclude.h"

#include <errno.h>
#include <otel/functions.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

/* These are the hooks' names for both compilers. */
void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

struct thread {
    struct oteli_frames *frames; /* NULL: nothing was traced yet */
    uintptr_t stack_low;         /* the thread's own stack */
    uintptr_t stack_high;
    uintptr_t handler_at; /* a signal handler runs that began here; 0: none */
    const void *handler;
    uint32_t busy; /* inside a hook */
    bool is_off;   /* is never traced */
};

#if defined(__GLIBC__)
static __thread struct thread self __attribute__((tls_model("initial-exec")));
#else
static __thread struct thread self;
#endif

static struct {
    uint32_t enabled; /* atomic; 0 before the start */
    bool has_exit_key;
    pthread_key_t exit_key;
    otel_tracer *tracer;
    struct oteli_frames_limits limits;
} hooks;

/* The thread ends inside its functions, by pthread_exit. */
static void on_thread_exit(void *state)
{
    (void)state;
    if (self.frames == NULL)
        return;
    self.busy = 1;
    oteli_frames_clear(self.frames, &hooks.limits);
    munmap(self.frames, sizeof *self.frames);
    self.frames = NULL;
    self.handler_at = 0;
    self.busy = 0;
}

void oteli_custom_start(otel_tracer *tracer, const struct oteli_frames_limits *limits)
{
    if (!hooks.has_exit_key)
        hooks.has_exit_key = pthread_key_create(&hooks.exit_key, on_thread_exit) == 0;
    hooks.tracer = tracer;
    hooks.limits = *limits;
    oteli_store_release_32(&hooks.enabled, 1); /* pairs with the load of may_trace */
}

void otel_functions_enable(bool enabled)
{
    if (hooks.tracer != NULL)
        oteli_store_release_32(&hooks.enabled, enabled);
}

static void find_stack(void)
{
    self.stack_low = 0;
    self.stack_high = UINTPTR_MAX;
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0 && size != 0) {
        self.stack_low = (uintptr_t)low;
        self.stack_high = (uintptr_t)low + size;
    }
    pthread_attr_destroy(&attributes);
}

static bool is_exporter(void)
{
    char name[16];
    return pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
           strcmp(name, "otel-export") == 0;
}

/* The first function of a thread. */
static OTELI_COLD void set_up(void)
{
    const int saved_errno = errno;
    self.busy = 1;
    self.is_off = is_exporter();
    if (!self.is_off) {
        find_stack();
        void *pages = mmap(NULL, sizeof *self.frames, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        self.is_off = pages == MAP_FAILED;
        self.frames = self.is_off ? NULL : pages;
    }
    if (self.frames != NULL && hooks.has_exit_key)
        pthread_setspecific(hooks.exit_key, self.frames);
    self.busy = 0;
    errno = saved_errno;
}

/* Whether a function is called by the kernel: what it returns to is the way out of a signal
 * handler, which looks the same in every C library, because debuggers look for it. The last
 * instruction of a module's code could be a call, with nothing mapped behind it; so nothing
 * is read at the beginning or across the end of a page. */
static inline bool is_called_by_kernel(const void *site)
{
#if defined(__x86_64__)
    static const uint8_t way_out[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
#elif defined(__aarch64__)
    static const uint8_t way_out[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
#else
    static const uint8_t way_out[] = {0};
    return false;
#endif
    const uintptr_t place = (uintptr_t)site & 4095;
    return OTELI_LIKELY(place - 1 < 4096 - sizeof way_out) &&
           OTELI_UNLIKELY(*(const uint8_t *)site == way_out[0]) &&
           memcmp(site, way_out, sizeof way_out) == 0;
}

/* Whether to do anything for a caller, when a handler may be running. */
static OTELI_COLD bool is_past_handler(const struct oteli_caller *caller, bool is_exit)
{
    if (caller->at <= self.handler_at) {
        if (is_exit && caller->at == self.handler_at && caller->function == self.handler)
            self.handler_at = 0;
        return false;
    }
    self.handler_at = 0; /* it was left by siglongjmp */
    return true;
}

static inline bool is_on_stack(const struct oteli_caller *caller)
{
    return caller->at - self.stack_low < self.stack_high - self.stack_low;
}

static inline bool may_enter(const struct oteli_caller *caller)
{
    if (OTELI_UNLIKELY(self.busy != 0 || (self.frames != NULL && !is_on_stack(caller))))
        return false;
    if (OTELI_UNLIKELY(is_called_by_kernel(caller->site))) {
        if (caller->at > self.handler_at) { /* not by a signal in a handler */
            self.handler_at = caller->at;
            self.handler = caller->function;
        }
        return false;
    }
    if (OTELI_UNLIKELY(self.handler_at != 0) && !is_past_handler(caller, false))
        return false;
    if (OTELI_UNLIKELY(self.frames == NULL)) {
        if (!self.is_off)
            set_up();
        if (self.frames == NULL || !is_on_stack(caller))
            return false;
    }
    return !oteli_is_excluded(caller->function);
}

#define CALLER(function, site)                                                             \
    {                                                                                      \
        function, site, __builtin_return_address(0), (uintptr_t)__builtin_frame_address(0) \
    }

OTEL_API void __cyg_profile_func_enter(void *function, void *site)
{
    if (otel_is_idle_() || OTELI_UNLIKELY(oteli_load_acquire_32(&hooks.enabled) == 0))
        return;
    const struct oteli_caller caller = CALLER(function, site);
    if (!may_enter(&caller))
        return;
    self.busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    oteli_frames_enter(self.frames, &hooks.limits, hooks.tracer, &caller);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self.busy = 0;
}

OTEL_API void __cyg_profile_func_exit(void *function, void *site)
{
    struct oteli_frames *frames = self.frames;
    if (self.busy != 0 || (self.handler_at == 0 && (frames == NULL || frames->depth == 0)))
        return;
    const struct oteli_caller caller = CALLER(function, site);
    if (frames != NULL && OTELI_UNLIKELY(!is_on_stack(&caller)))
        return;
    if (OTELI_UNLIKELY(self.handler_at != 0) && !is_past_handler(&caller, true))
        return;
    if (OTELI_UNLIKELY(frames == NULL))
        return;
    self.busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    const bool is_excluded = frames->deeper != 0 && oteli_is_excluded(function);
    oteli_frames_exit(frames, &hooks.limits, &caller, is_excluded);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self.busy = 0;
}

// SPDX-License-Identifier: Apache-2.0
// tests/support/trampolines_program.cc - trampolines in a program of C++: exceptions, the end of a
// thread, longjmp and the unwinder go through five of them, and leave nothing behind that a
// profiler would take for a label. tests/integration/trampolines.sh builds it in many ways.
//
//   trampolines_program           says "ok", or what is wrong
//   trampolines_program stop      calls stop_here() inside, for a debugger
extern "C" {
#include "profiling/labels/trampolines.h"
#include "tests/support/dead_records.h"
}

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <unwind.h>

namespace {

const unsigned depth_of_all = 5;

void check(bool condition, const char *what)
{
    if (!condition) {
        std::fprintf(stderr, "%s\n", what);
        std::exit(1);
    }
}

struct descent {
    unsigned left;
    void *(*bottom)(void *);
    unsigned cleaned;
};

// Something that an exception has to clean up in each frame on its way.
struct cleaner {
    explicit cleaner(descent *of) : of_(of) {}
    ~cleaner() { of_->cleaned++; }
    descent *of_;
};

void *descend(void *argument)
{
    auto *down = static_cast<descent *>(argument);
    if (down->left == 0)
        return down->bottom(argument);
    const cleaner on_the_way(down);
    const unsigned index = down->left-- * 7;
    return oteli_trampoline_at(index)(argument, descend);
}

struct failure {
    int number;
};

void *fail(void *) // NOLINT
{
    throw failure{4711};
}

void throw_and_catch()
{
    descent down = {depth_of_all, fail, 0};
    int caught = 0;
    try {
        descend(&down);
    } catch (const failure &failed) {
        caught = failed.number;
    }
    check(caught == 4711, "the exception was not caught");
    check(down.cleaned == depth_of_all, "a frame was not cleaned up");
}

void *throw_many(void *argument)
{
    for (int i = 0; i < 100; i++)
        throw_and_catch();
    return argument;
}

_Unwind_Reason_Code count_frame(_Unwind_Context *context, void *state)
{
    const int index = oteli_trampoline_of(_Unwind_GetIP(context) - 1);
    auto *count = static_cast<unsigned *>(state);
    if (index == static_cast<int>((*count + 1) * 7))
        ++*count;
    return _URC_NO_REASON;
}

void *unwind(void *argument)
{
    unsigned count = 0;
    _Unwind_Backtrace(count_frame, &count);
    check(count == depth_of_all, "the unwinder does not see all trampolines");
    return argument;
}

std::jmp_buf way_out;

void *jump(void *)
{
    std::longjmp(way_out, 1);
}

void *jump_through_one(void *argument)
{
    if (setjmp(way_out) == 0)
        oteli_trampoline_at(3)(argument, jump);
    return argument;
}

void *end_thread(void *)
{
    pthread_exit(nullptr);
}

void *end_inside(void *)
{
    descent down = {depth_of_all, end_thread, 0};
    return descend(&down);
}

} // namespace

extern "C" __attribute__((noinline)) void *stop_here(void *argument)
{
    const char *volatile inside = "a debugger stops here";
    return inside != nullptr ? argument : nullptr;
}

int main(int argc, char **argv)
{
    if (argc > 1 && std::strcmp(argv[1], "stop") == 0) {
        descent down = {depth_of_all, stop_here, 0};
        return descend(&down) == &down ? 0 : 1;
    }
    descent down = {depth_of_all, unwind, 0};
    check(descend(&down) == &down, "the result is another");
    throw_and_catch();
    check(dead_records_after(dead_records_work, nullptr) == 0, "a return leaves records behind");
    check(dead_records_returns() > 0, "there was nothing to find");
    check(dead_records_after(throw_many, nullptr) == 0, "an exception leaves records behind");
    check(dead_records_after(end_inside, nullptr) == 0,
          "the end of a thread leaves records behind");
    check(dead_records_after(jump_through_one, nullptr) == 1, "a longjmp leaves one record behind");
    std::puts("ok");
    return 0;
}

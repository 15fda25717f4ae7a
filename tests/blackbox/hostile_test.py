# SPDX-License-Identifier: Apache-2.0
"""A hostile home: limits, missing descriptors, no /proc, refused system calls, small stacks, real time.

In each of them the program lives and does its own work, no descriptor of ours is where its standard
ones should be, and its spans arrive; or a message says why they do not, and the sums show it.
"""
import collections
import contextlib
import ctypes
import errno
import os
import platform
import re
import socket
import struct
import subprocess
import tempfile
import time
import unittest

import harness

WORK, CHILD = 200, 1  # spans of the threads and of the forked child
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
HOPELESS = {"OTEL_EXPORTER_OTLP_TIMEOUT": "300"}  # where nothing can arrive
CALLS = {  # numbers of x86-64
    "poll": 7, "ppoll": 271, "madvise": 28, "socketpair": 53, "prctl": 157, "sched_setaffinity": 203,
    "sched_getaffinity": 204, "epoll_create1": 291, "eventfd2": 290, "timerfd_create": 283,
    "perf_event_open": 298, "getrandom": 318, "memfd_create": 319, "membarrier": 324, "clone3": 435,
    "uname": 63, "ftruncate": 77, "fallocate": 285, "rseq": 334,
}


class Filter(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("steps", ctypes.c_void_p)]


def refuse(call, error):
    """Makes this process's `call` fail with `error`; for subprocess's preexec_fn."""
    steps = b"".join(struct.pack("HBBI", *step) for step in (
        (LOAD, 0, 0, 0), (JUMP_EQUAL, 0, 1, CALLS[call]), (RETURN, 0, 0, REFUSE | error),
        (RETURN, 0, 0, ALLOW)))
    kept = ctypes.create_string_buffer(steps, len(steps))
    program = Filter(len(steps) // 8, ctypes.cast(kept, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)

    def apply():
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "seccomp")
        kept.raw  # lives as long as this function
    return apply


class Stay:
    """What the guest said of its stay: a line a fact."""

    def __init__(self, code, text):
        self.code, self.text = code, text
        self.said = [line.split(" ", 2)[2] for line in text.splitlines() if line.startswith("said ")]

    def fact(self, name):
        found = re.search(f"^{name} (.*)$", self.text, re.MULTILINE)
        return found and found.group(1)


def stay(receiver, *arguments, before=(), env=None, **options):
    reading, writing = os.pipe()
    try:
        with open("/dev/null", "rb+", buffering=0) as null:
            standard = {name: null for name in ("stdin", "stdout", "stderr")}
            command = [*before, harness.program("guest"), str(writing), *arguments]
            guest = subprocess.Popen(command, env=harness.environment(env, receiver), pass_fds=(writing,),
                                     **{**standard, **options})
        os.close(writing)
        writing = -1
        with os.fdopen(os.dup(reading), errors="replace") as stream:
            text = stream.read()
        return Stay(guest.wait(timeout=harness.RUN_SECONDS), text)
    finally:
        for descriptor in (reading, writing):
            if descriptor >= 0:
                os.close(descriptor)


class Hostile(unittest.TestCase):
    def check(self, done, spans):
        """The program's work is done; all spans arrived, or it was said why not."""
        self.assertEqual(done.code, 0, done.text)
        self.assertEqual(done.fact("work"), "100", done.text)
        self.assertNotIn("died", done.text)
        self.assertNotIn("rude", done.text)
        arrived = len({span.span_id for span in spans if span.name != "child"})
        if done.fact("start") == "ok" or arrived:
            ended, delivered = map(int, re.match(r"(\d+) delivered (\d+)", done.fact("ended")).groups())
            unconfirmed = int((re.search(r"unconfirmed (\d+)", done.text) or [0, 0])[1])
            self.assertTrue(delivered <= arrived <= delivered + unconfirmed, done.text)
            self.assertEqual(ended, WORK, done.text)
        if arrived != WORK and done.fact("start") != "no memory":
            self.assertTrue(done.said, f"{WORK - arrived} spans are lost, and nothing was said: {done.text}")
        return arrived

    @contextlib.contextmanager
    def home(self, *arguments, **options):
        with harness.Receiver() as receiver:
            done = stay(receiver, *arguments, **options)
            yield done, receiver

    def arrives(self, *arguments, **options):
        with self.home(*arguments, **options) as (done, receiver):
            spans = receiver.spans()
        self.assertEqual(self.check(done, spans), WORK, done.text)
        self.assertEqual(len(spans), WORK + CHILD, done.text)
        return done

    def test_a_friendly_home(self):
        with tempfile.TemporaryFile() as stdout:
            self.arrives(stdout=stdout)
            self.assertEqual(stdout.seek(0, os.SEEK_END), 0)

    def test_little_address_space(self):
        for room in (0, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20):
            with self.subTest(room=room), self.home(f"room={room}") as (done, receiver):
                self.check(done, receiver.spans())

    def test_small_stacks(self):
        self.arrives(f"stack={64 << 10}")

    def test_no_standard_descriptors(self):
        def close():
            for descriptor in range(3):
                os.close(descriptor)
        done = self.arrives(preexec_fn=close, stdin=None, stdout=None, stderr=None)
        self.assertIsNone(done.fact("open"), done.text)

    def test_no_environment(self):
        """Nothing listens at the default place, or somebody else does: only what is said counts."""
        with tempfile.TemporaryFile() as stdout:
            done = stay(None, env={"LD_LIBRARY_PATH": str(harness.LIBRARIES)}, stdout=stdout)
            self.assertEqual(stdout.seek(0, os.SEEK_END), 0)
        self.assertEqual((done.code, done.fact("work"), done.fact("rude")), (0, "100", None), done.text)
        self.assertTrue(any("localhost:4318" in line for line in done.said), done.text)

    def test_no_proc(self):
        self.arrives(before=harness.after_mount(self, "-t tmpfs none /proc"))

    def test_refused_system_calls(self):
        if platform.machine() != "x86_64":
            self.skipTest("the filters are for x86-64")
        optional = {(call, error) for call in ("poll", "ppoll", "epoll_create1", "eventfd2", "socketpair")
                    for error in (errno.EPERM, errno.ENOSYS)}
        optional.add(("clone3", errno.EPERM))  # the C library takes clone after ENOSYS only
        for call in CALLS:
            for error in (errno.EPERM, errno.ENOSYS):
                with self.subTest(call=call, error=errno.errorcode[error]), \
                        self.home(preexec_fn=refuse(call, error), env=HOPELESS if "poll" in call else None) \
                        as (done, receiver):
                    arrived = self.check(done, receiver.spans())
                    if (call, error) not in optional:
                        self.assertEqual(arrived, WORK, done.text)

    def test_real_time_on_one_core(self):
        def schedule():
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.arrives(preexec_fn=schedule)


class SmallFiles(unittest.TestCase):
    def trace(self, *taken, env=None, arrive=3):
        """Runs with that taken away. The program does its work; its spans arrive, or it is said."""
        with harness.Receiver() as receiver:
            done = harness.run("hostile", *taken, receiver=receiver, env=env)
        if done.returncode == 77:
            self.skipTest(f"{taken}: not allowed here")
        self.assertEqual(done.returncode, 0, f"{taken}: {done.stderr}")
        self.assertEqual(len(receiver.spans()), arrive, f"{taken}: {done.stdout}{done.stderr}")
        return done

    def test_no_file_may_be_written(self):
        for taken in (("fsize=0",), ("fsize=4096",), ("fsize=0", "children=1"), ("fsize=0", "threadless")):
            self.trace(*taken)

    def test_messages_go_to_a_file_that_may_not_grow(self):
        path = harness.PROGRAMS / f"hostile-{os.getpid()}.txt"
        self.addCleanup(path.unlink)
        with open(path, "w") as stderr, harness.Receiver() as receiver:
            done = subprocess.run(
                [harness.program("hostile"), "fsize=0"], stderr=stderr, check=False,
                stdout=subprocess.DEVNULL,
                env=harness.environment({"OTEL_BSP_SCHEDULE_DELAY": "wrong"}, receiver))
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(receiver.spans()), 3)


class Messages(unittest.TestCase):
    """Lines of the SDK's own on stderr, where the program has no log handler."""

    def lines(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line for line in done.stderr.splitlines() if re.match(r"otel-c(\[\d+\])?: ", line)]

    def test_lost_spans_are_said_where_poll_is_refused(self):
        if platform.machine() != "x86_64":
            self.skipTest("the filters are for x86-64")
        for error in (errno.EPERM, errno.ENOSYS):
            with self.subTest(error=errno.errorcode[error]), harness.Receiver() as receiver:
                done = harness.run("hostile", receiver=receiver, preexec_fn=refuse("poll", error), env=HOPELESS)
                self.assertTrue(self.lines(done) or len(receiver.spans()) == 3, done.stdout)

    def test_forked_children_say_no_more_than_one_process(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))  # and does not listen
            started = time.monotonic()
            done = harness.run("hostile", "children=50", env={
                "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{closed.getsockname()[1]}",
                "OTEL_EXPORTER_OTLP_TIMEOUT": "20"})
        times = 1 + (time.monotonic() - started) // 10  # a kind of line is said once in ten seconds
        kinds = collections.Counter(re.sub(r"\d+|s? \((and )?\d+ more.*", "", line) for line in self.lines(done))
        self.assertEqual(done.stdout.count("dropped 3 "), 50, done.stdout)
        self.assertTrue(kinds)
        self.assertLessEqual(max(kinds.values()), times, done.stderr)

    def test_a_process_that_ends_says_how_many_spans_it_leaves(self):
        for words, level, count in (
                (["exit"], "info", 1), (["exit", "children=1"], "info", 1), (["exit", "threadless"], "info", 1),
                (["exit", "handler"], "info", 0), (["exit"], "error", 0), (["_exit"], "info", 0),
                (["_exit", "children=1"], "info", 0), (["children=1"], "info", 0), ([], "info", 0)):
            with self.subTest(words=words, level=level), harness.Receiver() as receiver:
                done = harness.run("hostile", *words, receiver=receiver, env={
                    "OTEL_BSP_SCHEDULE_DELAY": "600000", "OTEL_LOG_LEVEL": level})
                self.assertEqual(len([line for line in self.lines(done) if "3 spans" in line]), count,
                                 done.stderr)


class ClosedPipe(unittest.TestCase):
    def test_the_console_without_a_reader_ends_no_program(self):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [harness.program("hostile"), "threadless"], stdout=writing, check=False,
            stderr=subprocess.PIPE, env=harness.environment({"OTEL_TRACES_EXPORTER": "console"}))
        os.close(writing)
        self.assertIn(done.returncode, (0, 1), done.stderr)


if __name__ == "__main__":
    harness.main()

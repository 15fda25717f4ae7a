# SPDX-License-Identifier: Apache-2.0
"""Spans on disk survive what clocks, disks and file systems do: steps of the wall clock, reads that
fail once or for ever, and time stamps of two seconds; and programs that are killed.

spec: X25
"""
import collections
import os
import pathlib
import queue
import random
import re
import socket
import subprocess
import tempfile
import time
import unittest

import harness


class Program:
    """The program `obey`, which does what it is told."""

    def __init__(self, directory, port, env=None):
        made = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_C_SPOOL_DIR": directory,
                "OTEL_BSP_SCHEDULE_DELAY": "100", **(env or {})}
        self.process = subprocess.Popen([harness.program("obey")], env=harness.environment(made), text=True,
                                        bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        return self.process.stdout.readline().strip()

    def stats(self):
        return {name: int(number.replace(",", ""))
                for name, number in re.findall(r"(\w+) (\d[\d,]*)", self.tell("stats"))}

    def kill(self):
        self.process.kill()
        self.process.communicate(timeout=harness.RUN_SECONDS)

    def end(self):
        _, log = self.process.communicate(timeout=harness.RUN_SECONDS)
        return log


class Spool(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = folder.name
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.names = queue.Queue()
        self.programs = []

    def tearDown(self):
        for program in self.programs:
            if program.process.poll() is None:
                program.end()

    def program(self, env=None):
        self.programs.append(Program(self.directory, self.port, env))
        return self.programs[-1]

    def come_back(self):
        """The receiver is there from now on; what arrives is in self.names."""
        def answer(message):
            for group in message.resource_spans:
                for scope in group.scope_spans:
                    for span in scope.spans:
                        self.names.put(span.name)
            return 200, {}, b""

        receiver = harness.Receiver(answer, self.port)
        receiver.__enter__()
        self.addCleanup(receiver.__exit__)

    def arrives(self):
        return self.names.get(timeout=harness.RUN_SECONDS)

    def test_a_step_of_the_wall_clock_expires_nothing(self):
        program = self.program()
        program.tell("span before")
        program.tell(f"step {700 * 24 * 3600}")
        program.tell("span after")
        self.come_back()
        self.assertEqual([self.arrives(), self.arrives()], ["before", "after"])
        self.assertEqual(program.stats()["expired"], 0)

    def test_a_step_back_expires_nothing(self):
        program = self.program()
        program.tell("span before")
        program.tell(f"step {-700 * 24 * 3600}")
        program.tell("span after")
        self.come_back()
        self.assertEqual({self.arrives(), self.arrives()}, {"before", "after"})
        self.assertEqual(program.stats()["expired"], 0)

    def test_files_of_another_process_survive_a_step_that_comes_after_they_were_seen(self):
        days = 700 * 24 * 3600
        writer, finder = self.program(), self.program()
        for program in (writer, finder):
            program.tell(f"step {-days}")  # a device without a clock
        writer.tell("span other")
        writer.end()
        finder.tell("span first")
        finder.tell(f"step {days}")
        finder.tell("span last")
        self.come_back()
        self.assertEqual({self.arrives() for _ in range(3)}, {"first", "other", "last"})
        self.assertEqual(finder.stats()["expired"], 0)

    def test_a_short_program_sends_what_earlier_ones_left(self):
        first = self.program()
        for number in range(20):
            first.tell(f"span {number}")
        first.end()
        self.come_back()
        second = self.program()
        second.tell("stop 60000")
        stats = second.stats()
        self.assertEqual((stats["sent"], stats["waiting"]), (20, 0))

    def test_a_short_program_does_not_wait_for_a_receiver_that_is_away(self):
        first = self.program()
        first.tell("span left")
        first.end()
        second = self.program()
        self.assertEqual(second.tell("stop 600000"), "ok")
        self.assertEqual(second.stats()["waiting"], 1)

    def test_a_read_that_fails_once_loses_nothing(self):
        program = self.program()
        program.tell("span whole")
        program.tell("break 1")
        self.come_back()
        self.assertEqual(self.arrives(), "whole")
        self.assertEqual(program.stats()["torn"], 0)

    def test_a_file_that_cannot_be_read_holds_up_no_other(self):
        program = self.program()
        program.tell("span broken")
        program.tell("span whole")
        program.tell("break-first")
        self.come_back()
        self.assertEqual(self.arrives(), "whole")
        while program.stats()["waiting"] > 1:
            pass  # the program has not read the answer yet
        stats = program.stats()
        self.assertEqual((stats["torn"], stats["waiting"]), (0, 1))
        self.assertIn("cannot be read now: Input/output error", program.end())

    def test_time_stamps_of_two_seconds_hide_no_file(self):
        program, other = self.program(), self.program()
        program.tell("coarse")
        program.tell("span mine")
        other.tell("span theirs")
        other.end()
        self.come_back()
        self.assertEqual({self.arrives(), self.arrives()}, {"mine", "theirs"})

    def test_kills_lose_nothing_that_was_handed_over(self):
        """While the receiver is away, comes back, breaks connections off, and goes again."""
        seed = random.randrange(1 << 32) if os.environ.get("OTEL_TEST_LONG") else 1
        dice, handed, arrived = random.Random(seed), [], collections.Counter()

        def answer(message):
            if is_breaking:
                raise ConnectionError
            arrived.update(span.name for group in message.resource_spans for scope in group.scope_spans
                           for span in scope.spans)
            return 200, {}, b""

        def trace_and_kill(number):
            program = self.program()
            for at in range(dice.randint(50, 100)):
                handed.append(f"{number}-{at}")
                self.assertEqual(program.tell(f"span {handed[-1]}"), "ok", f"seed {seed}")
            program.process.stdin.write("spans 20\n")  # and in the middle of this one
            time.sleep(dice.random() * 0.05)
            program.kill()

        is_breaking = False
        for number in range(8):
            if number not in (3, 6):
                trace_and_kill(number)
                continue
            is_breaking = number == 6
            with harness.Receiver(answer, self.port) as receiver:
                receiver.server.handle_error = lambda *_: None
                trace_and_kill(number)
        is_breaking = False
        with harness.Receiver(answer, self.port):
            last = self.program()
            while (stats := last.stats())["found"] == 0 or stats["waiting"] != 0:
                pass
            last.end()
        self.assertEqual((stats["torn"], stats["evicted"]), (0, 0))
        self.assertEqual(list(pathlib.Path(self.directory).rglob("*.otlp")), [])
        self.assertEqual(set(handed) - set(arrived), set(), f"seed {seed}")
        # Whoever is killed between the answer and the removal of a file sends it once more.
        self.assertLessEqual(max(arrived[name] for name in handed), 3)


if __name__ == "__main__":
    harness.main()

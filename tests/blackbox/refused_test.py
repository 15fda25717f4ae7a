# SPDX-License-Identifier: Apache-2.0
"""A receiver that refuses one span costs no other span, and one that refuses all is left in peace."""
import contextlib
import math
import socket
import tempfile
import types
import unittest

import harness
from spool_test import Program

SPANS = 500


class Refusing:
    """A receiver that refuses every request in which a span has one of these names (None: every one)."""

    def __init__(self, bad, port=0):
        self.bad, self.attempts = bad, 0
        super().__init__(self.decide, port)

    def decide(self, message):
        self.attempts += 1
        names = {span.name for group in message.resource_spans for scope in group.scope_spans
                 for span in scope.spans}
        refused = self.bad is None or bool(names & self.bad)
        return (400 if refused else 200), {}, b""

    def names(self):
        return [span.name for span in self.spans()]


class ByHttp(Refusing, harness.Receiver):
    pass


class ByGrpc(Refusing, harness.GrpcReceiver):
    pass


class Refused(unittest.TestCase):
    kind = ByHttp

    def program(self, directory, receiver, env):
        return Program(directory, receiver.port, {**receiver.env, **env})

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = folder.name

    def trace(self, receiver, count=SPANS, env=None, times=1):
        """What became of so many spans."""
        program = self.program("", receiver, {"OTEL_BSP_SCHEDULE_DELAY": "100000", **(env or {})})
        for _ in range(times):
            program.tell(f"spans {count}")
        stats = program.stats()
        program.end()
        return stats

    def check(self, bad, attempts, env=None):
        with self.kind({str(number) for number in bad}) as receiver:
            stats = self.trace(receiver, env=env)
        self.assertEqual(sorted(map(int, receiver.names())),
                         [number for number in range(SPANS) if number not in bad])
        self.assertEqual((stats["delivered"], stats["permanent_error"]), (SPANS - len(bad), len(bad)))
        self.assertLessEqual(receiver.attempts, attempts)

    def test_one_bad_span_costs_no_other_and_few_requests(self):
        most = 1 + math.ceil(math.log2(SPANS)) + 1 + 1
        for bad in 0, 1, 249, 250, 498, 499:
            with self.subTest(bad):
                self.check({bad}, most)

    def test_a_shutdown_asks_once_where_nobody_listens(self):
        with self.kind(None) as receiver:
            pass  # not any more
        program = self.program("", receiver, {"OTEL_BSP_SCHEDULE_DELAY": "100000"})
        program.tell("queue 100")
        program.tell("stop 600000")
        self.assertEqual(program.stats()["retry_exhausted"], 100)
        self.assertIn("failed after 1 attempt:", program.end())

    def first_line(self, port, env):
        """What the log says first of three spans for a receiver that does not answer."""
        receiver = types.SimpleNamespace(port=port, env=self.kind.env)
        program = self.program("", receiver, {"OTEL_BSP_EXPORT_TIMEOUT": "600000", **env})
        program.tell("queue 3")
        line = program.process.stderr.readline()
        program.tell("stop 1")
        program.end()
        return line

    def test_a_receiver_that_is_not_there_is_said_before_spans_are_lost(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        line = self.first_line(port, {"OTEL_EXPORTER_OTLP_TIMEOUT": "600000"})
        self.assertRegex(line, rf"^otel-c: warning: OTLP export to http://127\.0\.0\.1:{port}/\S*: "
                               r".*[Cc]onnect.*; 3 spans wait for the next attempt$")

    def test_a_receiver_that_says_nothing_is_said_when_it_is_tried_again(self):
        with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf, contextlib.ExitStack() as callers:
            for _ in range(2):  # of which one has no place in the backlog, nor has the program then
                caller = callers.enter_context(socket.socket())
                caller.setblocking(False)
                caller.connect_ex(deaf.getsockname())
            line = self.first_line(deaf.getsockname()[1], {"OTEL_EXPORTER_OTLP_TIMEOUT": "600000"})
        self.assertRegex(line, r"; 3 spans wait for the next attempt$")

    def test_several_bad_spans(self):
        self.check({0, 1, 77, 300, 301, 499}, 6 * 12)

    def test_requests_on_their_way_side_by_side(self):
        self.check({3, 333}, 4 * 12, {"OTEL_C_OTLP_CONCURRENCY": "4", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "100"})

    def test_json(self):
        """The receiver of these tests reads protobuf only: all that counts is the number of requests."""
        with self.kind(None) as receiver:
            self.trace(receiver, env={"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"})
        self.assertLess(len(receiver.heard), 40)

    def test_a_receiver_that_refuses_all_is_left_in_peace(self):
        with self.kind(None) as receiver:
            stats = self.trace(receiver, times=20)
        self.assertEqual(stats["permanent_error"], 20 * SPANS)
        self.assertLess(receiver.attempts, 20 + 40)

    def test_a_bad_span_on_disk(self):
        """Costs its request, and no other."""
        with self.kind({"77"}) as receiver:
            pass  # nobody is there yet
        port = receiver.port
        program = self.program(self.directory, receiver, {})
        program.tell(f"spans {SPANS}")
        program.tell("span good")
        with self.kind({"77"}, port) as receiver:
            while program.stats()["waiting"] != 0:
                program.tell("stats")
            stats = program.stats()
            program.end()
        self.assertEqual(receiver.names(), ["good"])
        self.assertEqual((stats["sent"], stats["refused"]), (1, SPANS))


class RefusedByGrpc(Refused):
    kind = ByGrpc
    test_json = None


if __name__ == "__main__":
    harness.main()

# SPDX-License-Identifier: Apache-2.0
"""A program that leaves main by pthread_exit ends as it would without otel-c: with status 0 when its
last thread returns, once it has called otel_shutdown, and by SIGTERM as long as it has a thread."""
import signal
import subprocess
import unittest

import harness


class LeavesMain(unittest.TestCase):
    def test_its_last_thread_ends_it(self):
        for way in "plain", "ends", "ended":
            with self.subTest(way), harness.Receiver() as receiver:
                done = harness.run("leaves_main", way, "returns", receiver=receiver)
                self.assertEqual((done.returncode, done.stdout), (0, "alone\n"))
                self.assertEqual(len(receiver.spans()), 1 if way == "ends" else 0)

    def test_sigterm_ends_it(self):
        for way in "plain", "ends", "ended", "traces":
            with self.subTest(way), harness.Receiver() as receiver:
                with subprocess.Popen([harness.program("leaves_main"), way, "stays"], text=True,
                                      env=harness.environment(receiver=receiver),
                                      stdout=subprocess.PIPE) as process:
                    self.assertEqual(process.stdout.readline(), "alone\n")
                    process.send_signal(signal.SIGTERM)
                    self.assertEqual(process.wait(harness.RUN_SECONDS), -signal.SIGTERM)


if __name__ == "__main__":
    harness.main()

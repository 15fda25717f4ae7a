# SPDX-License-Identifier: Apache-2.0
"""Programs that have nothing to export hold no connection to the receiver."""
import unittest

import harness
from spool_test import Program

PROGRAMS = 10


class Idle(unittest.TestCase):
    def test_connections_are_closed_after_half_a_minute_and_made_again(self):
        with harness.Receiver() as receiver:
            programs = [Program("", receiver.port) for _ in range(PROGRAMS)]
            for program in programs:
                self.assertEqual(program.tell("span first"), "ok")
            self.assertEqual(len(receiver.open), PROGRAMS)
            while receiver.open:
                for program in programs:
                    program.tell("later 30")
            for program in programs:
                self.assertEqual(program.tell("span last"), "ok")
                program.end()
        self.assertEqual(sorted(span.name for span in receiver.spans()),
                         ["first"] * PROGRAMS + ["last"] * PROGRAMS)


if __name__ == "__main__":
    harness.main()

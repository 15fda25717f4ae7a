#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests read of a receiver while it still writes (tests/support/receiver.py)."""
import collections
import json
import os
import pathlib
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import receiver  # noqa: E402

REQUESTS = 1_000


class GrowingFile(unittest.TestCase):
    """A receiver writes a line in pieces, and is read between any two of them."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = pathlib.Path(self.folder.name, "received-plain.json")
        self.file.touch()
        self.writer = threading.Thread(target=self.write)

    def write(self):
        with open(self.file, "ab", buffering=0) as file:
            for number in range(REQUESTS):
                line = json.dumps({"number": number}).encode() + b"\n"
                for start in range(0, len(line), 6):
                    os.write(file.fileno(), line[start:start + 6])

    def test_what_came_since(self):
        collector = receiver.EveryWay.__new__(receiver.EveryWay)
        collector.files_of, collector.read = {"plain": [self.file]}, collections.Counter()
        self.writer.start()
        taken = []
        while self.writer.is_alive():
            taken += collector.take("plain")
        taken += collector.take("plain")
        self.assertEqual([request["number"] for request in taken], list(range(REQUESTS)))

    def test_all_that_came(self):
        self.writer.start()
        while self.writer.is_alive():
            numbers = [request["number"] for request in receiver.requests_in(self.file)]
            self.assertEqual(numbers, list(range(len(numbers))))
        self.assertEqual(len(list(receiver.requests_in(self.file))), REQUESTS)

    def test_no_file_yet(self):
        self.assertEqual(list(receiver.requests_in(self.file.with_name("none"))), [])


if __name__ == "__main__":
    unittest.main()

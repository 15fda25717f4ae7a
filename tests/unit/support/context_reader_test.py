#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The reader of support/context_reader.py refuses what breaks a rule. That it finds what it should
is seen by integration.thread_context. Memory is played."""
import pathlib
import struct
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "support"))
from context_reader import Fault, Reader  # noqa: E402

RECORD, VARIABLE, HEADER, PAYLOAD = 0x1000, 0x2000, 0x3000, 0x4000
SCHEMA, KEYS = b"threadlocal.schema_version", b"threadlocal.attribute_key_map"


class Played(Reader):
    def __init__(self, memory, mappings=1):
        super().__init__(0)
        self.played = memory
        self.maps = [(HEADER, HEADER + 32, "rw-p", 0, "/memfd:OTEL_CTX")] * mappings

    def read(self, address, layout):
        if len(self.played.get(address, b"")) < struct.calcsize(layout):
            raise Fault("there is no memory")
        return struct.unpack(layout, self.played[address][:struct.calcsize(layout)])


def record(trace=b"0123456789abcdef", span=b"ghijklmn", valid=1, flags=3, size=0):
    return struct.pack("<16s8sBBH", trace, span, valid, flags, size)


def part(field, content):
    return bytes([field << 3 | 2, len(content)]) + content


def pair(key, content):
    return part(1, key) + part(2, content)


GOOD = (part(1, part(1, pair(b"service.name", part(1, b"checkout")))
             + part(1, pair(b"host.name", part(1, b"here"))))
        + part(2, pair(SCHEMA, part(1, b"tlsdesc_v1_dev")))
        + part(2, pair(KEYS, part(5, part(1, part(1, b"route"))))))


def published(payload, signature=b"OTEL_CTX", version=2, size=None, at=None):
    at = time.clock_gettime_ns(time.CLOCK_BOOTTIME) if at is None else at
    size = len(payload) if size is None else size
    return {HEADER: struct.pack("<8sIIQQ", signature, version, size, at, PAYLOAD),
            PAYLOAD: payload}


class ContextReader(unittest.TestCase):
    def point(self, address, content):
        return Played({VARIABLE: struct.pack("<Q", address), address: content}).record(VARIABLE)

    def test_records_that_break_a_rule_are_refused(self):
        self.assertEqual(self.point(RECORD, record()),
                         f"{b'0123456789abcdef'.hex()}:{b'ghijklmn'.hex()}:03")
        self.assertEqual(self.point(RECORD, record(valid=0)), "none")
        for changed in ({"valid": 2}, {"trace": b""}, {"span": b""}, {"size": 613},
                        {"trace": b"", "span": b"", "flags": 1}):
            with self.subTest(changed), self.assertRaises(Fault):
                self.point(RECORD, record(**changed))
        for address, content in (RECORD + 1, record()), (64, b""):
            with self.subTest(address), self.assertRaises(Fault):
                self.point(address, content)

    def test_headers_that_break_a_rule_are_refused(self):
        self.assertEqual(Played(published(GOOD)).context()[1:], ("checkout", "tlsdesc_v1_dev", 2))
        for changed in ({"signature": b"OTEL_CTx"}, {"version": 1}, {"at": 2**64 - 1}, {"at": 0},
                        {"size": 0}, {"size": 65537}, {"size": len(GOOD) - 1}):
            with self.subTest(changed), self.assertRaises(Fault):
                Played(published(GOOD, **changed)).context()
        with self.assertRaises(Fault):
            Played(published(GOOD), 2).context()

    def test_payloads_that_break_a_rule_are_refused(self):
        resource = part(1, b"")
        for payload in (GOOD + part(2, pair(SCHEMA, part(1, b"v"))), GOOD + b"\x18\1",
                        GOOD + part(3, b"12345"), GOOD + resource, GOOD + b"\x0d1234",
                        resource + part(2, pair(KEYS, part(5, part(1, part(1, b""))))),
                        resource + part(2, pair(KEYS, part(1, b"route"))),
                        resource + part(2, pair(SCHEMA, part(1, b""))),
                        resource + part(2, pair(SCHEMA, part(5, part(1, part(1, b"a"))))),
                        resource + part(2, pair(b"other", part(1, b"\xff"))),
                        part(2, pair(b"other", part(1, b"a")))):
            with self.subTest(payload), self.assertRaises(Fault):
                Played(published(payload)).context()


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The strict receiver (support/strict_receiver.py) is strict: what is not OTLP is refused.

usage: strict_receiver_test.py PATH-OF-MAKE_CERTIFICATES
"""
import gzip
import http.client
import json
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support")]
import receiver  # noqa: E402

receiver.run_with_peers()
import grpc  # noqa: E402
import strict_receiver  # noqa: E402

MAKE_CERTIFICATES = sys.argv.pop(1)
SPAN = {"traceId": "31" * 16, "spanId": "32" * 8, "name": "n", "kind": 1,
        "startTimeUnixNano": "5", "endTimeUnixNano": "6",
        "attributes": [{"key": "k", "value": {"intValue": "7"}}]}
HEAD = {"User-Agent": "OTel-OTLP-Exporter-C/1.2.3"}
PROTOBUF, JSON = (dict(HEAD, **{"Content-Type": kind}) for kind in strict_receiver.TYPES)


def request(**changes):
    span = {name: value for name, value in dict(SPAN, **changes).items() if value is not None}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def message(**changes):
    return strict_receiver.parsed_json(json.dumps(request(**changes)).encode())


class Strictness(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="strict.")
        certificates = receiver.Certificates(cls.folder.name, MAKE_CERTIFICATES)
        cls.strict = strict_receiver.StrictReceiver(cls.folder.name, certificates)
        cls.strict.start()

    @classmethod
    def tearDownClass(cls):
        cls.strict.stop()
        cls.folder.cleanup()

    def setUp(self):
        self.strict.faults.clear()
        self.strict.take()

    def post(self, body, head):
        port = self.strict.addresses["plain", "http"]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
        connection.request("POST", "/v1/traces", body, head)
        status = connection.getresponse().status
        connection.close()
        return status

    def call(self, body, agent=HEAD["User-Agent"]):
        address = f"127.0.0.1:{self.strict.addresses['plain', 'grpc']}"
        with grpc.insecure_channel(address,
                                   options=[("grpc.primary_user_agent", agent)]) as channel:
            try:
                return channel.unary_unary(strict_receiver.METHOD)(body, timeout=100)
            except grpc.RpcError as error:
                return error.code()

    def check_refused(self, body, head):
        self.assertEqual(self.post(body, head), 400)
        self.assertEqual(len(self.strict.faults), 1)
        self.assertEqual(self.strict.take(), [])

    def check_taken(self):
        self.assertEqual(self.strict.faults, [])
        (taken,) = self.strict.take()
        self.assertEqual(taken.as_json(), request())
        return taken.facts

    def test_takes_protobuf(self):
        self.assertEqual(self.post(message().SerializeToString(), PROTOBUF), 200)
        self.check_taken()

    def test_takes_json(self):
        self.assertEqual(self.post(json.dumps(request()), JSON), 200)
        self.check_taken()

    def test_takes_grpc(self):
        self.assertEqual(self.call(message().SerializeToString()), b"")
        self.check_taken()

    def test_takes_gzip(self):
        body = gzip.compress(message().SerializeToString())
        self.assertEqual(self.post(body, dict(PROTOBUF, **{"Content-Encoding": "gzip"})), 200)
        self.assertEqual(self.check_taken()["compression"], "gzip")

    def test_refuses_what_is_no_utf8(self):
        good = message(name="ab").SerializeToString()
        self.check_refused(good.replace(b"\x02ab", b"\x02a\xff"), PROTOBUF)

    def test_refuses_unknown_fields_and_rubbish(self):
        for more in (b"\x7a\x01x", b"\xff"):
            with self.subTest(more):
                self.setUp()
                self.check_refused(message().SerializeToString() + more, PROTOBUF)

    def test_refuses_spans_that_are_not_valid(self):
        twice = SPAN["attributes"] * 2
        for change in ({"traceId": "00" * 16}, {"traceId": "31" * 15}, {"spanId": "00" * 8},
                       {"parentSpanId": "33"}, {"kind": None}, {"kind": 6},
                       {"endTimeUnixNano": None}, {"attributes": twice},
                       {"attributes": [{"value": {}}]}, {"status": {"code": 3}}):
            with self.subTest(change):
                self.setUp()
                self.check_refused(json.dumps(request(**change)), JSON)

    def test_refuses_json_that_is_not_otlps(self):
        for change in ({"traceId": "MTExMTExMTExMTExMTExMQ=="}, {"startTimeUnixNano": 5},
                       {"kind": "SPAN_KIND_INTERNAL"}, {"trace_state": "a=b"}, {"other": 1},
                       {"attributes": [{"key": "k", "value": {"intValue": 7}}]},
                       {"attributes": [{"key": "k", "value": {"doubleValue": float("nan")}}]}):
            with self.subTest(change):
                self.setUp()
                self.check_refused(json.dumps(request(**change)), JSON)

    def test_refuses_a_name_that_is_twice_in_an_object(self):
        self.check_refused('{"resourceSpans":[],"resourceSpans":[]}', JSON)

    def test_refuses_heads_that_are_wrong(self):
        body = message().SerializeToString()
        for change in ({"Content-Type": "text/plain"}, {"User-Agent": "curl"},
                       {"Expect": "100-continue"}, {"Content-Encoding": "gzip"},
                       {"Host": "elsewhere"}):
            with self.subTest(change):
                self.setUp()
                self.check_refused(body, dict(PROTOBUF, **change))

    def test_refuses_calls_that_are_wrong(self):
        self.assertEqual(self.call(b"\xff"), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(self.call(b""), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(self.call(message().SerializeToString(), agent="other"),
                         grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(len(self.strict.faults), 3)
        self.assertEqual(self.strict.take(), [])


if __name__ == "__main__":
    unittest.main()

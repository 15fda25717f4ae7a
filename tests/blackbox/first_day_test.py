# SPDX-License-Identifier: Apache-2.0
"""The first program of a new user: one span, to a receiver, with everything from OTEL_*."""
import unittest

import harness


class FirstDay(unittest.TestCase):
    def test_one_span_arrives(self):
        with harness.Receiver() as receiver:
            done = harness.run("one_span", receiver=receiver, env={"OTEL_SERVICE_NAME": "shop"})
        self.assertEqual(done.returncode, 0, done.stderr)
        (span,) = receiver.spans()
        self.assertEqual(span.name, "one")
        self.assertEqual(harness.attributes(span), {"text": "value", "number": 42})
        self.assertEqual(harness.attributes(receiver.resources()[0])["service.name"], "shop")
        self.assertIn("delivered 1", done.stdout)
        ((path, headers, _),) = receiver.heard
        self.assertEqual((path, headers["Host"]), ("/v1/traces", f"127.0.0.1:{receiver.port}"))
        self.assertEqual(headers["Content-Type"], "application/x-protobuf")
        self.assertRegex(headers["User-Agent"], r"^OTel-OTLP-Exporter-C/\d")
        for name in "Content-Encoding", "Transfer-Encoding", "Expect":
            self.assertNotIn(name, headers)

    def test_a_forgotten_shutdown_is_said(self):
        done = harness.run("one_span", "forgets", env={"OTEL_BSP_SCHEDULE_DELAY": "600000"})
        self.assertIn("\notel-c: warning: the process ends without otel_shutdown: 1 span is not exported\n",
                      "\n" + done.stderr)

    def test_debug_says_what_was_exported(self):
        with harness.Receiver() as receiver:
            done = harness.run("one_span", receiver=receiver, env={"OTEL_LOG_LEVEL": "debug"})
        self.assertRegex(done.stderr, f"(?m)^otel-c: debug: OTLP export to {receiver.endpoint}/v1/traces: "
                                      r"1 span, \d+ bytes, in \d+ ms$")


if __name__ == "__main__":
    harness.main()

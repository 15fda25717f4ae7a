# SPDX-License-Identifier: Apache-2.0
"""otel-view from the outside: real OTLP bytes over loopback, and what it prints."""
import gzip
import http.client
import json
import re
import signal
import struct
import subprocess
import threading
import unittest

import harness

START = 1785600000_123_000_000
TRACE = bytes.fromhex("4bf92f3577b34da6a3ce929d0e0e4736")
OTLP = {"Content-Type": "application/x-protobuf"}


def zstd_frame(body):
    """A frame of one block that is not compressed."""
    return (b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(body))
            + struct.pack("<I", len(body) << 3 | 1)[:3] + body)


def span_id(number):
    return number.to_bytes(8, "big")


def make_request(service_name, *spans):
    """One request of one service; spans are (id, parent id, name, start ms, length ms)."""
    request = harness.service.ExportTraceServiceRequest()
    group = request.resource_spans.add()
    name = group.resource.attributes.add()
    name.key, name.value.string_value = "service.name", service_name
    scope = group.scope_spans.add()
    for number, parent, text, start_ms, length_ms in spans:
        span = scope.spans.add(trace_id=TRACE, span_id=span_id(number), name=text, kind=1)
        if parent:
            span.parent_span_id = span_id(parent)
        span.start_time_unix_nano = START + start_ms * 1000000
        span.end_time_unix_nano = span.start_time_unix_nano + length_ms * 1000000
    return request


def spans_of(request):
    return request.resource_spans[0].scope_spans[0].spans


class Viewer:
    """A running otel-view, and everything it says."""

    def __init__(self, *options):
        # Without buffers: communicate() does not know what readline() has read in advance.
        self.process = subprocess.Popen([harness.program("otel-view"), "--port", "0", *options], bufsize=0,
                                        env=harness.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = self.process.stderr.readline().decode()
        found = re.fullmatch(r"otel-view: listening on (http://127\.0\.0\.1:(\d+))"
                             r"(?:, for gRPC on (http://127\.0\.0\.1:\d+))?\n", first)
        assert found, first + self.process.stderr.read().decode()
        self.http, self.port, self.grpc = found[1], int(found[2]), found[3]
        self.watchdog = threading.Timer(200, self.process.kill)
        self.watchdog.start()

    def ask(self, method, path, body, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=100)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer, content

    def post(self, body, **headers):
        if not isinstance(body, bytes):
            body = body.SerializeToString()
        head = dict(OTLP, **{name.replace("_", "-"): value for name, value in headers.items()})
        return self.ask("POST", "/v1/traces", body, head)

    def endpoint(self, protocol):
        if protocol == "grpc" and self.grpc is None:
            self.end(signal.SIGTERM)
            raise unittest.SkipTest("this otel-view was built without libnghttp2")
        return self.grpc if protocol == "grpc" else self.http

    def send(self, protocol="http/protobuf", program=("one_span",), **env):
        """A program with the real exporter sends its spans. Gives what it said."""
        if (harness.PROGRAMS / "otel-view").exists() and not (harness.PROGRAMS / "one_span").exists():
            self.end(signal.SIGTERM)
            raise unittest.SkipTest("sanitizers run on the tools alone, without the suite's programs")
        env = {"OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint(protocol),
               "OTEL_SERVICE_NAME": "real", **env}
        return harness.run(*program, env=env)

    def end(self, with_signal=None):
        """What it printed: (stdout, the lines of stderr after the first)."""
        if with_signal is not None:
            self.process.send_signal(with_signal)
        out, err = self.process.communicate(timeout=100)
        self.watchdog.cancel()
        assert self.process.returncode == 0, (self.process.returncode, err.decode())
        return out.decode(), err.decode().splitlines()


class Drawing(unittest.TestCase):
    maxDiff = None

    def test_a_trace_of_two_services_in_two_requests(self):
        view = Viewer("--count", "3")
        bank = make_request("bank", (3, 2, "POST /charge", 30, 100))
        spans_of(bank)[0].kind = 2
        spans_of(bank)[0].status.code = 2
        spans_of(bank)[0].status.message = "card declined"
        shop = make_request("shop", (1, 0, "checkout", 0, 200), (2, 1, "POST", 20, 120))
        attribute = spans_of(shop)[0].attributes.add(key="cart.items")
        attribute.value.array_value.values.add().int_value = 3
        attribute.value.array_value.values.add().string_value = "a b"
        spans_of(shop)[1].kind = 3

        self.assertEqual(view.post(bank)[0].status, 200)
        answer, content = view.post(shop)
        out, err = view.end()

        self.assertEqual((answer.status, content), (200, b""))
        self.assertEqual(answer.getheader("Content-Type"), "application/x-protobuf")
        self.assertEqual(err, ["received 3 spans"])
        self.assertEqual(out, """\
trace 4bf92f3577b34da6a3ce929d0e0e4736  3 spans  1 error  200 ms  2026-08-01 16:00:00.123Z
      shop, bank
checkout  @shop                                                200 ms ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
│ cart.items=[3,"a b"]
└─ POST  client                                                120 ms    ━━━━━━━━━━━━━━━━━━
   └─ ✗ POST /charge  @bank server                             100 ms     ╺━━━━━━━━━━━━━━╸
        error: card declined

""")

    def test_a_complete_trace_is_drawn_before_the_end(self):
        view = Viewer()
        view.post(make_request("shop", (1, 0, "checkout", 0, 200)))

        line = view.process.stdout.readline().decode()

        self.assertTrue(line.startswith("trace 4bf92f"), line)
        view.end(signal.SIGTERM)

    def test_what_is_incomplete_is_drawn_at_the_end(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            view = Viewer()
            view.post(make_request("shop", (2, 1, "child", 0, 1)))
            out, err = view.end(number)
            self.assertIn("child  @shop", out)
            self.assertIn("  parent 0000000000000001 not here\n", out)
            self.assertEqual(err, ["received 1 spans"])

    def test_idle_exit(self):
        view = Viewer("--idle-exit", "50")
        out, err = view.end()
        self.assertEqual((out, err), ("", ["received 0 spans"]))

    def test_a_span_that_comes_twice_is_drawn_once(self):
        view = Viewer("--count", "2")
        first = make_request("shop", (2, 1, "child", 0, 1))
        view.post(first)
        view.post(first)
        view.post(make_request("shop", (1, 0, "root", 0, 1)))
        out, err = view.end()
        self.assertEqual(out.count("child"), 1)
        self.assertEqual(err, ["received 2 spans (1 twice)"])

    def test_links_and_a_tracestate(self):
        view = Viewer("--count", "2")
        request = make_request("shop", (1, 0, "root", 0, 1), (2, 1, "child", 0, 1))
        root, child = spans_of(request)
        root.trace_state = child.trace_state = "ot=th:8"
        child.links.add(trace_id=TRACE, span_id=span_id(1))
        link = child.links.add(trace_id=bytes(15) + b"\7", span_id=span_id(8), trace_state="a=1")
        link.attributes.add(key="why").value.string_value = "batch"
        child.links.add()  # of no span
        view.post(request)
        out, _ = view.end()
        self.assertEqual([line.strip() for line in out.splitlines() if "━" not in line][1:-1], [
            "│ tracestate ot=th:8",
            "→ span 0000000000000001",
            "→ span 0000000000000008 of trace 00000000000000000000000000000007  why=batch  tracestate a=1",
            "1 link more"])

    def test_what_is_compressed(self):
        body = make_request("shop", (1, 0, "root", 0, 1)).SerializeToString()
        for encoding, compressed in (
                ("gzip", gzip.compress(body)), ("zstd", zstd_frame(body)),
                ("gzip", gzip.compress(body[:9]) + gzip.compress(b"") + gzip.compress(body[9:]))):
            view = Viewer("--count", "1")
            answer, content = view.post(compressed, Content_Encoding=encoding)
            if answer.status == 415:
                self.assertEqual(content, b"this otel-view was built without that Content-Encoding\n")
                view.end(signal.SIGTERM)
            else:
                self.assertIn("root  @shop", view.end()[0])

    def test_a_request_without_spans_is_fine(self):
        view = Viewer()
        answer, content = view.post(b"")
        out, err = view.end(signal.SIGTERM)
        self.assertEqual((answer.status, content), (200, b""))
        self.assertEqual((out, err), ("", ["received 0 spans"]))

    def test_the_resource_of_each_service(self):
        view = Viewer("--count", "2")
        shop, bank = make_request("shop", (1, 0, "root", 0, 1)), make_request("bank", (2, 1, "child", 0, 1))
        for request, host in (shop, "a"), (bank, "b c"):
            request.resource_spans[0].resource.attributes.add(key="host.name").value.string_value = host
        for request in shop, bank:
            view.post(request)
        out, _ = view.end()
        self.assertEqual(out.splitlines()[1:4], ["@shop  host.name=a", '@bank  host.name="b c"',
                                                 out.splitlines()[3]])
        self.assertTrue(out.splitlines()[3].startswith("root  @shop "), out)

    def test_all_leaves_nothing_out(self):
        request = make_request("shop", (1, 0, "root", 0, 1))
        for number in range(30):
            for owner in spans_of(request)[0], request.resource_spans[0].resource:
                owner.attributes.add(key=f"key.{number:02}").value.string_value = "long" * 5
            spans_of(request)[0].events.add(name=f"event {number:02}")
        spans_of(request)[0].attributes.add(key="long").value.string_value = "x" * 500
        for options, more in ([], True), (["--all"], False):
            view = Viewer("--count", "1", *options)
            view.post(request)
            out, _ = view.end()
            self.assertEqual("more" in out, more)
            self.assertEqual("x" * 500 in out, not more)
            self.assertEqual(out.count("key.") == 60, not more)
            self.assertEqual(out.count("event ") == 30, not more)

    def test_traces_in_the_order_in_which_they_started(self):
        view = Viewer("--count", "4")
        for trace, start_ms in (b"b", 20), (b"c", 30), (b"a", 10):
            request = make_request("shop", (1, 0, f"root {trace.decode()}", start_ms, 100 - 3 * start_ms))
            spans_of(request)[0].trace_id = trace * 16
            view.post(request)
        view.post(make_request("shop", (2, 0, "last", 90, 1)))
        out, _ = view.end()
        self.assertEqual(re.findall("^(root .|last) ", out, re.M), ["root a", "root b", "root c", "last"])

    def test_a_trace_waits_for_one_that_started_before_it(self):
        view = Viewer()
        view.post(make_request("shop", (2, 1, "child of nobody", 0, 1)))
        later = make_request("shop", (1, 0, "later", 1, 1))
        spans_of(later)[0].trace_id = b"b" * 16
        view.post(later)
        lines = [view.process.stdout.readline().decode() for _ in range(5)]  # after some seconds
        view.end(signal.SIGTERM)
        self.assertTrue(lines[1].startswith("child of nobody"), lines)
        self.assertTrue(lines[4].startswith("trace 6262"), lines)

    def test_a_terminal_is_not_given_escapes_by_names(self):
        view = Viewer("--count", "1")
        view.post(make_request("shop", (1, 0, "\x1b]0;owned\x07\u202e\u009b2J", 0, 1)))
        out, _ = view.end()
        self.assertIn("\\x1b]0;owned\\x07\\u{202e}\\u{9b}2J", out)
        self.assertNotIn("\x1b", out)


class Exporter(unittest.TestCase):
    def test_the_real_exporter_by_both_protocols(self):
        for protocol in "http/protobuf", "grpc":
            for compression in "none", "gzip", "zstd":
                with self.subTest(protocol=protocol, compression=compression):
                    view = Viewer("--count", "1")
                    done = view.send(protocol, OTEL_EXPORTER_OTLP_COMPRESSION=compression)
                    out, err = view.end()
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertIn("delivered 1", done.stdout)
                    self.assertRegex(out, r"\none  @real .*\n  text=value, number=42\n\n")
                    self.assertEqual(err, ["received 1 spans"])

    def test_http_on_the_port_for_grpc_is_told_so(self):
        view = Viewer()
        port = view.endpoint("grpc").rsplit(":", 1)[1]
        done = view.send(OTEL_EXPORTER_OTLP_ENDPOINT=view.grpc)
        out, err = view.end(signal.SIGTERM)
        self.assertEqual(done.returncode, 1)
        self.assertIn("delivered 0", done.stdout)
        self.assertEqual((out, err), ("", [f"otel-view: refused a request: port {port} is for gRPC",
                                           "received 0 spans"]))


class Calls(unittest.TestCase):
    """gRPC's own client."""

    @classmethod
    def setUpClass(cls):
        cls.grpc = harness._grpc()
        cls.view = Viewer("--json")
        cls.channel = cls.grpc.insecure_channel(cls.view.endpoint("grpc")[len("http://"):],
                                                [("grpc.max_send_message_length", -1)])

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        cls.view.end(signal.SIGTERM)

    def call(self, body, method="opentelemetry.proto.collector.trace.v1.TraceService/Export", **options):
        """(The name of the status, the details or the answer.)"""
        try:
            return "OK", self.channel.unary_unary("/" + method)(body, timeout=100, **options)
        except self.grpc.RpcError as bad:
            return bad.code().name, bad.details()

    def test_calls_at_the_same_time(self):
        export = self.channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        numbers = range(1, 200)
        calls = [export.future(make_request("shop", (number, 0, "x" * number, 0, 1)).SerializeToString(),
                               timeout=100) for number in numbers]
        # Before the answers: otel-view waits where stdout takes no more.
        lines = [json.loads(self.view.process.stdout.readline()) for _ in numbers]
        names = {line["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"] for line in lines}
        self.assertEqual(names, {"x" * number for number in numbers})
        self.assertEqual({call.result() for call in calls}, {b""})

    def test_what_is_no_request_is_refused_with_the_reason(self):
        self.assertEqual(self.call(b"hello"), (
            "INVALID_ARGUMENT", "ExportTraceServiceRequest: has a field of an unknown wire type"))

    def test_other_signals_are_not_implemented(self):
        self.assertEqual(self.call(b"", "opentelemetry.proto.collector.metrics.v1.MetricsService/Export"), (
            "UNIMPLEMENTED", "otel-view takes traces only: TraceService.Export"))

    def test_another_compression_is_not_implemented(self):
        self.assertEqual(self.call(b"hello" * 100, compression=self.grpc.Compression.Deflate), (
            "UNIMPLEMENTED", "the grpc-encoding has to be gzip, zstd or identity"))

    def test_more_than_64_mib(self):
        self.assertEqual(self.call(b"\x0a\x00" * (33 << 20)), (
            "RESOURCE_EXHAUSTED", "a request may have 64 MiB at most, also when decompressed"))


class Filters(unittest.TestCase):
    """Three traces: a fast one of the shop, one of two services that failed in the bank, a slow one."""

    def show(self, *options):
        view = Viewer("--count", "4", *options)
        requests = [make_request("shop", (1, 0, "GET /a", 0, 10)), make_request("shop", (2, 0, "GET /b", 100, 40)),
                    make_request("bank", (3, 2, "POST /charge", 110, 20)),
                    make_request("shop-admin", (4, 0, "GET /long", 200, 500))]
        for trace, request in zip((b"a", b"b", b"b", b"c"), requests):
            spans_of(request)[0].trace_id = trace * 16
        spans_of(requests[2])[0].status.code = 2
        spans_of(requests[2])[0].status.message = "card\ndeclined"
        spans_of(requests[2])[0].attributes.add(key="cents").value.int_value = 7
        for request in requests:
            view.post(request)
        out, err = view.end()
        return out, err[-1]

    def test_traces_with_a_span_for_which_all_is_true(self):
        for options, traces in (
                ([], "abc"), (["--service", "bank"], "b"), (["--service", "shop*"], "abc"),
                (["--service", "shop"], "ab"), (["--service", "sho"], ""), (["--error"], "b"),
                (["--error", "--service", "shop"], ""), (["--name", "GET /?"], "ab"), (["--name", "*charge"], "b"),
                (["--longer", "40"], "bc"), (["--longer", "40.001"], "c"), (["--longer", "0.5"], "abc"),
                (["--longer", "20", "--service", "bank"], "b"), (["--longer", "21", "--service", "bank"], "")):
            with self.subTest(options):
                out, last = self.show(*options)
                shown = re.findall("^trace (..)", out, re.M)
                self.assertEqual(shown, [f"{ord(trace):x}" for trace in traces])
                said = f", showed {len(traces)} of 3 traces" if options else ""
                self.assertEqual(last, "received 4 spans" + said)
                self.assertEqual("POST /charge" in out, "b" in traces)

    def test_follow_prints_a_line_for_each_span(self):
        out, last = self.show("--follow")
        self.assertEqual(out.splitlines(), [
            f"2026-08-01 16:00:00.123Z   10.0 ms    @shop GET /a  {'61' * 16}",
            f"2026-08-01 16:00:00.223Z   40.0 ms    @shop GET /b  {'62' * 16}",
            f"2026-08-01 16:00:00.233Z   20.0 ms  ✗ @bank POST /charge  error: card\\ndeclined  {'62' * 16}",
            f"2026-08-01 16:00:00.323Z    500 ms    @shop-admin GET /long  {'63' * 16}"])
        self.assertEqual(last, "received 4 spans")

    def test_follow_with_filters_and_all_attributes(self):
        out, last = self.show("--follow", "--error", "--all")
        self.assertRegex(out, r"^.* @bank POST /charge  error: card\\ndeclined  cents=7  6262\w+\n$")
        self.assertEqual(last, "received 4 spans, showed 1 of 4 spans")

    def test_follow_prints_at_once(self):
        view = Viewer("--follow")
        view.send("http/protobuf")
        line = view.process.stdout.readline().decode()
        view.end(signal.SIGTERM)
        self.assertRegex(line, r" @real one  \w{32}\n$")


class Json(unittest.TestCase):
    def test_one_line_a_request(self):
        view = Viewer("--json", "--count", "2")
        view.post(make_request("shop", (1, 0, "root", 0, 1)))
        view.post(make_request("bank", (2, 1, "child", 0, 1)))
        out, err = view.end()

        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(err, ["received 2 spans"])
        self.assertEqual(len(lines), 2)
        group = lines[1]["resourceSpans"][0]
        self.assertEqual(group["resource"]["attributes"],
                         [{"key": "service.name", "value": {"stringValue": "bank"}}])
        self.assertEqual(group["scopeSpans"][0]["spans"],
                         [{"traceId": TRACE.hex(), "spanId": "0000000000000002",
                           "parentSpanId": "0000000000000001", "name": "child", "kind": 1,
                           "startTimeUnixNano": str(START),
                           "endTimeUnixNano": str(START + 1000000)}])


class Discard(unittest.TestCase):
    def counted(self, out):
        """The sums of the lines: spans, requests, bytes."""
        lines = [re.fullmatch(r"(\d+) spans in (\d+) requests of (\d+) bytes", line) for line in out.splitlines()]
        return tuple(sum(int(line[number]) for line in lines) for number in (1, 2, 3))

    def test_requests_are_answered_and_counted(self):
        view = Viewer("--discard")
        two = make_request("shop", (1, 0, "root", 0, 1), (2, 1, "child", 0, 1))
        two.resource_spans[0].scope_spans.add().spans.add(name="of another scope, without ids")
        two.resource_spans.add().scope_spans.add().spans.add()
        bodies = [two.SerializeToString(), b"", make_request("bank", (1, 0, "x" * 100000, 0, 1)).SerializeToString()]
        for body in bodies:
            answer, content = view.post(body)
            self.assertEqual((answer.status, content), (200, b""))
        self.assertEqual(view.post(gzip.compress(bodies[0]), Content_Encoding="gzip")[0].status, 200)
        out, err = view.end(signal.SIGTERM)
        size = sum(map(len, bodies)) + len(bodies[0])
        self.assertEqual(self.counted(out), (9, 4, size))
        self.assertEqual(err, [f"received 9 spans in 4 requests of {size} bytes"])

    def test_the_real_exporter_by_both_protocols(self):
        for protocol in "http/protobuf", "grpc":
            view = Viewer("--discard", "--count", "1")
            done = view.send(protocol)
            out, err = view.end()
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("delivered 1", done.stdout)
            self.assertEqual(self.counted(out)[:2], (1, 1))
            self.assertRegex(err[0], r"^received 1 spans in 1 requests of \d+ bytes$")

    def test_many_calls_on_a_connection(self):
        """libcurl resets each, which nghttp2 takes for an attack when there are a thousand at once."""
        view = Viewer("--discard")
        done = view.send("grpc", ("roots", "count", "1400"), OTEL_BSP_MAX_EXPORT_BATCH_SIZE="1")
        out, _ = view.end(signal.SIGTERM)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.counted(out)[:2], (1400, 1400))

    def test_a_line_comes_before_the_end(self):
        view = Viewer("--discard")
        view.post(make_request("shop", (1, 0, "root", 0, 1)))
        line = view.process.stdout.readline().decode()
        out, _ = view.end(signal.SIGTERM)
        self.assertEqual((self.counted(line)[:2], out), ((1, 1), ""))

    def test_what_is_cut_or_broken_is_refused_and_not_counted(self):
        view = Viewer("--discard")
        body = make_request("shop", (1, 0, "root", 0, 1)).SerializeToString()
        for bad in b"hello", body[:-1], body[:3]:
            self.assertEqual(view.post(bad)[0].status, 400)
        out, err = view.end(signal.SIGTERM)
        self.assertEqual(out, "")
        self.assertEqual(err, ["otel-view: refused a request: the body is no ExportTraceServiceRequest"] * 3
                         + ["received 0 spans in 0 requests of 0 bytes"])


class Refusing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.view = Viewer("--json")

    @classmethod
    def tearDownClass(cls):
        out, err = cls.view.end(signal.SIGTERM)
        assert out == "", out
        assert err[-1] == "received 0 spans", err

    def test_what_is_no_request_is_refused_with_the_reason(self):
        def changed(field, value):
            request = make_request("shop", (1, 0, "n", 0, 1))
            setattr(spans_of(request)[0], field, value)
            return request

        deep = make_request("shop", (1, 0, "n", 0, 1))
        value = spans_of(deep)[0].attributes.add(key="k").value
        for _ in range(40):
            value = value.array_value.values.add()
        bad_name = make_request("shop", (1, 0, "bad?", 0, 1)).SerializeToString()
        bad_value = make_request("a\0b?", (1, 0, "n", 0, 1)).SerializeToString()
        for body, why in (
                (bad_name.replace(b"bad?", b"bad\xff"), "Span.name: is not valid UTF-8"),
                (bad_value.replace(b"b?", b"b\x80"), "AnyValue.string_value: is not valid UTF-8"),
                (changed("trace_id", b"123"), "Span.trace_id: is not 16 bytes with one that is not zero"),
                (changed("trace_id", bytes(16)), "Span.trace_id: is not 16 bytes with one that is not zero"),
                (changed("span_id", b"123456789"), "Span.span_id: is not 8 bytes with one that is not zero"),
                (changed("parent_span_id", b"1"), "Span.parent_span_id: is neither empty nor 8 bytes"),
                (changed("span_id", b""), "Span: has no trace_id or no span_id"),
                (b"hello", "ExportTraceServiceRequest: has a field of an unknown wire type"),
                (deep, "AnyValue.array_value: is nested too deeply")):
            with self.subTest(why):
                answer, content = self.view.post(body)
                self.assertEqual(answer.status, 400)
                self.assertEqual(answer.getheader("Content-Type"), "application/x-protobuf")
                self.assertEqual(content, b"\x08\x03\x12" + bytes([len(why)]) + why.encode())

    def test_every_cut_of_a_request(self):
        body = make_request("shop", (1, 0, "root", 0, 1)).SerializeToString()
        for length in range(1, len(body)):
            self.assertEqual(self.view.post(body[:length])[0].status, 400, length)

    def test_what_is_broken_is_refused(self):
        whole = gzip.compress(make_request("shop", (1, 0, "root", 0, 1)).SerializeToString())
        for encoding, bodies in (
                ("gzip", (b"", b"\x1f\x8bnonsense", whole[:-1], whole + b"x", whole + whole[:-1])),
                ("zstd", (b"", b"nonsense", zstd_frame(b"\x0a\x00")[:-1], zstd_frame(b"") + b"x"))):
            for body in bodies:
                self.assertIn(self.view.post(body, Content_Encoding=encoding)[0].status, (400, 415))

    def test_other_paths_methods_and_types(self):
        for method, path, headers, status in (
                ("POST", "/v1/metrics", OTLP, 404), ("GET", "/", {}, 404),
                ("GET", "/v1/traces", {}, 405), ("PUT", "/v1/traces", OTLP, 405),
                ("POST", "/v1/traces", {"Content-Type": "application/json"}, 415),
                ("POST", "/v1/traces", {"Content-Type": "text/plain"}, 415),
                ("POST", "/v1/traces", dict(OTLP, **{"Content-Encoding": "br"}), 415)):
            answer, content = self.view.ask(method, path, b"{}", headers)
            self.assertEqual(answer.status, status, path)
            self.assertTrue(content.endswith(b"\n"))
            self.assertEqual(answer.getheader("Allow"), "POST" if status == 405 else None)

    def test_more_than_64_mib(self):
        chunk = b"\x0a\x00" * (1 << 19)
        answer, _ = self.view.ask("POST", "/v1/traces", iter([chunk] * 65), OTLP)
        self.assertEqual(answer.status, 413)


class CommandLine(unittest.TestCase):
    def run_view(self, *options):
        return harness.run("otel-view", *options, env={})

    def test_help_and_version(self):
        for option, start in (("--help", "usage: otel-view"), ("--version", "otel-view 0.")):
            done = self.run_view(option)
            self.assertEqual((done.returncode, done.stdout[:len(start)]), (0, start))

    def test_wrong_options(self):
        for options in (["--port", "x"], ["--grpc-port", "65536"], ["--port", "65536"], ["--count", "-1"],
                        ["--count", "0"], ["--nonsense"], ["argument"],
                        ["--longer", "x"], ["--longer", "-1"], ["--longer", "nan"], ["--json", "--follow"],
                        ["--json", "--error"], ["--all", "--json"],
                        ["--discard", "--json"], ["--follow", "--discard"], ["--discard", "--longer", "1"]):
            done = self.run_view(*options)
            self.assertEqual(done.returncode, 2, options)
            self.assertIn("otel-view", done.stderr)

    def test_a_port_that_is_taken(self):
        view = Viewer()
        done = self.run_view("--port", view.port)
        view.end(signal.SIGTERM)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"cannot listen on 127.0.0.1:{view.port}: Address already in use", done.stderr)

    def test_a_port_for_grpc_that_is_taken(self):
        view = Viewer()
        port = view.endpoint("grpc").rsplit(":", 1)[1]
        done = self.run_view("--port", "0", "--grpc-port", port)
        view.end(signal.SIGTERM)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, f"otel-view: cannot listen on 127.0.0.1:{port}: Address already in use\n")


if __name__ == "__main__":
    harness.main()

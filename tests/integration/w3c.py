#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A service passes W3C's rules of Trace Context, levels 1 and 2, under the names that W3C's own suite has
for them (github.com/w3c/trace-context, test/test.py; its STRICT_LEVEL 2 and SPEC_LEVEL 2).

    w3c.py SERVICE [BUILD]      a program that says "listening on URL" on stderr, and ends on SIGTERM

examples/relay/relay.cpp as SERVICE is compiled first, with the shared libraries of BUILD. The service is asked, by headers as they are on the wire, to call this test back: what its requests say is
what has become of the headers. In the end, what it has exported has to hang together.
"""
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import string
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse

TRACE, PARENT = "12345678901234567890123456789012", "1234567890123456"
ZEROS = "0" * 32


def parent(version="00", trace=TRACE, span=PARENT, flags="00", more=""):
    return ("traceparent", f"{version}-{trace}-{span}-{flags}{more}")


def state(text):
    return ("tracestate", text)


def numbered(first, last):
    return ",".join(f"bar{i:02d}={i:02d}" for i in range(first, last + 1))


class Callback(http.server.BaseHTTPRequestHandler):
    """Keeps the headers of each request under its path."""
    seen = {}

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        Callback.seen[self.path] = self.headers
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


class Context:
    """What the headers of one request say, which has to be well-formed."""

    def __init__(self, headers):
        parents = headers.get_all("traceparent", [])
        assert len(parents) == 1, f"{len(parents)} headers traceparent: {parents}"
        match = re.fullmatch("00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})", parents[0])
        assert match, parents[0]
        self.trace, self.span, self.flags = match[1], match[2], int(match[3], 16)
        assert self.trace != ZEROS and self.span not in (PARENT, "0" * 16), parents[0]
        self.members = [member.partition("=")[::2] for line in headers.get_all("tracestate", [])
                        for member in line.split(",")]
        self.state = dict(self.members)


class Rules(unittest.TestCase):
    url = ""
    harness = ""
    requests = 0
    calls = 0

    def ask(self, *headers, calls=1):
        """Let the service make `calls` requests for one that has these headers."""
        paths = [f"/{Rules.requests}.{i}" for i in range(calls)]
        Rules.requests += 1
        Rules.calls += calls
        body = json.dumps([{"url": Rules.harness + path, "arguments": []} for path in paths])
        target = urllib.parse.urlsplit(Rules.url)
        lines = [f"POST {target.path} HTTP/1.1", f"Host: {target.netloc}", "Content-Type: application/json",
                 f"Content-Length: {len(body)}"] + [f"{name}: {value}" for name, value in headers]
        with socket.create_connection((target.hostname, target.port), timeout=60) as service:
            service.sendall(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
            answer = service.recv(64)
        self.assertRegex(answer, rb"HTTP/1.1 200 ")
        return [Context(Callback.seen[path]) for path in paths]

    def continues(self, *headers):
        context, = self.ask(*headers)
        self.assertEqual(context.trace, TRACE, headers)
        return context

    def starts_anew(self, *headers):
        context, = self.ask(*headers)
        self.assertNotIn(TRACE[1:-1], context.trace)
        self.assertEqual(context.members, [])

    def keeps(self, members, *lines):
        """The tracestate of these lines is passed on as these members, in this order."""
        self.assertEqual(self.continues(parent(), *map(state, lines)).members, members, lines)

    def discards(self, *lines):
        self.keeps([], *lines)


class TraceContextTest(Rules):
    def test_both_traceparent_and_tracestate_missing(self):
        self.starts_anew()

    def test_traceparent_included_tracestate_missing(self):
        self.assertEqual(self.continues(parent(flags="01")).members, [])

    def test_traceparent_duplicated(self):
        self.starts_anew(parent(trace=TRACE[:-1] + "1", flags="01"), parent(flags="01"))

    def test_traceparent_header_name(self):
        for name in ("trace-parent", "trace.parent"):
            self.starts_anew((name, parent()[1]))

    def test_traceparent_header_name_valid_casing(self):
        for name in ("TraceParent", "TrAcEpArEnT", "TRACEPARENT"):
            self.continues((name, parent()[1]))

    def test_traceparent_version_0x00(self):
        for more in (".", "-what-the-future-will-be-like"):
            self.starts_anew(parent(flags="01", more=more))

    def test_traceparent_version_0xcc(self):
        for more in ("", "-what-the-future-will-be-like"):
            self.continues(parent("cc", flags="01", more=more))
        self.starts_anew(parent("cc", flags="01", more=".what-the-future-will-be-like"))

    def test_traceparent_version_0xff(self):
        self.starts_anew(parent("ff"))

    def test_traceparent_version_illegal_characters(self):
        for version in (".0", "0."):
            self.starts_anew(parent(version))

    def test_traceparent_version_too_long(self):
        for version in ("000", "0000"):
            self.starts_anew(parent(version))

    def test_traceparent_version_too_short(self):
        self.starts_anew(parent("0"))

    def test_traceparent_trace_id_all_zero(self):
        self.starts_anew(parent(trace=ZEROS))

    def test_traceparent_trace_id_illegal_characters(self):
        for trace in ("." + TRACE[1:], TRACE[:-1] + "."):
            self.starts_anew(parent(trace=trace))

    def test_traceparent_trace_id_too_long(self):
        self.starts_anew(parent(trace=TRACE + "3"))

    def test_traceparent_trace_id_too_short(self):
        self.starts_anew(parent(trace=TRACE[:-1]))

    def test_traceparent_parent_id_all_zero(self):
        self.starts_anew(parent(span="0" * 16))

    def test_traceparent_parent_id_illegal_characters(self):
        for span in ("." + PARENT[1:], PARENT[:-1] + "."):
            self.starts_anew(parent(span=span))

    def test_traceparent_parent_id_too_long(self):
        self.starts_anew(parent(span=PARENT + "7"))

    def test_traceparent_parent_id_too_short(self):
        self.starts_anew(parent(span=PARENT[:-1]))

    def test_traceparent_trace_flags_illegal_characters(self):
        for flags in (".0", "0."):
            self.starts_anew(parent(flags=flags))

    def test_traceparent_trace_flags_too_long(self):
        self.starts_anew(parent(flags="001"))

    def test_traceparent_trace_flags_too_short(self):
        self.starts_anew(parent(flags="1"))

    def test_traceparent_ows_handling(self):
        for before, after in ((" ", ""), ("\t", ""), ("", " "), ("", "\t"), ("\t ", " \t")):
            self.continues(("traceparent", before + parent()[1] + after))

    def test_tracestate_included_traceparent_missing(self):
        for members in ("foo=1", "foo=1,bar=2"):
            self.starts_anew(state(members))

    def test_tracestate_included_traceparent_included(self):
        self.keeps([("foo", "1"), ("bar", "2")], "foo=1,bar=2")

    def test_tracestate_header_name(self):
        for name in ("trace-state", "trace.state"):
            self.assertEqual(self.continues(parent(), (name, "foo=1")).members, [])

    def test_tracestate_header_name_valid_casing(self):
        for name in ("TraceState", "TrAcEsTaTe", "TRACESTATE"):
            self.assertEqual(self.continues(parent(), (name, "foo=1")).members, [("foo", "1")])

    def test_tracestate_empty_header(self):
        self.discards("")
        self.keeps([("foo", "1")], "foo=1", "")
        self.keeps([("foo", "1")], "", "foo=1")

    def test_tracestate_multiple_headers_different_keys(self):
        self.keeps([("foo", "1"), ("bar", "2"), ("rojo", "1"), ("congo", "2"), ("baz", "3")],
                   "foo=1,bar=2", "rojo=1,congo=2", "baz=3")

    def test_tracestate_duplicated_keys(self):
        for lines in (["foo=1,foo=1"], ["foo=1,foo=2"], ["foo=1", "foo=1"], ["foo=1", "foo=2"]):
            kept = self.continues(parent(), *map(state, lines)).members
            self.assertTrue(kept and set(kept) <= {("foo", "1"), ("foo", "2")}, (lines, kept))

    def test_tracestate_all_allowed_characters(self):
        key = string.ascii_lowercase + string.digits + "_-*/"
        value = "".join(chr(c) for c in range(0x20, 0x7f) if chr(c) not in ",=")
        for name in (key, key + "@a-z0-9_-*/"):
            self.keeps([(name, value)], f"{name}={value}")

    def test_tracestate_ows_handling(self):
        for text in ("foo=1 \t , \t bar=2, \t baz=3", "foo=1\t \t,\t \tbar=2,\t \tbaz=3"):
            self.keeps([("foo", "1"), ("bar", "2"), ("baz", "3")], text)
        for text in (" foo=1", "\tfoo=1", "foo=1 ", "foo=1\t", "\t foo=1 \t"):
            self.keeps([("foo", "1")], text)

    def test_tracestate_key_illegal_characters(self):
        for key in ("foo ", "FOO", "foo.bar"):
            self.discards(f"{key}=1")

    def test_tracestate_key_illegal_vendor_format(self):
        for key in ("foo@", "foo@@bar", "foo@bar@baz"):
            self.keeps([(key, "1"), ("bar", "2")], f"{key}=1,bar=2")
        self.discards("@foo=1,bar=2")

    def test_tracestate_member_count_limit(self):
        lines = [numbered(1, 10), numbered(11, 20), numbered(21, 30)]
        self.keeps([(f"bar{i:02d}", f"{i:02d}") for i in range(1, 33)], *lines, numbered(31, 32))
        self.discards(*lines, numbered(31, 33))

    def test_tracestate_key_length_limit(self):
        for key in ("z" * 256, "t" * 241 + "@" + "v" * 14, "t" * 242 + "@v", "t@" + "v" * 15):
            self.keeps([("foo", "1"), (key, "1")], "foo=1", f"{key}=1")
        self.discards("foo=1", "z" * 257 + "=1")

    def test_tracestate_value_illegal_characters(self):
        for text in ("foo=bar=baz", "foo=,bar=3"):
            self.discards(text)


class AdvancedTest(Rules):
    def test_multiple_requests_with_valid_traceparent(self):
        contexts = self.ask(parent(flags="01"), calls=3)
        self.assertEqual({context.trace for context in contexts}, {TRACE})
        self.assertEqual(len({context.span for context in contexts}), 3)

    def test_multiple_requests_without_traceparent(self):
        self.assertEqual(len({context.span for context in self.ask(calls=3)}), 3)

    def test_multiple_requests_with_illegal_traceparent(self):
        contexts = self.ask(parent(trace=ZEROS, flags="01"), calls=3)
        self.assertEqual(len({context.span for context in contexts}), 3)


class TraceContext2Test(Rules):
    def test_propagates_random_flag(self):
        for flags in ("02", "03"):
            self.assertEqual(self.continues(parent(flags=flags)).flags & 2, 2)


def check_spans(lines):
    """A server span for each sampled request, and below it the client spans of its calls."""
    spans = [span for line in lines for resource in json.loads(line)["resourceSpans"]
             for scope in resource["scopeSpans"] for span in scope["spans"]]
    servers = {span["spanId"]: span for span in spans if span["kind"] == 2}
    clients = [span for span in spans if span["kind"] == 3]
    assert servers and len(servers) + len(clients) == len(spans)
    for client in clients:
        assert client["traceId"] == servers[client["parentSpanId"]]["traceId"], client
        assert client["name"] == "POST", client
    for server in servers.values():
        assert server["name"] == "POST /relay", server
        assert (server.get("parentSpanId") or PARENT) == PARENT, server
    return f"{len(servers)} server spans and {len(clients)} client spans"


def compiled(source, build, out):
    """A program of a C++ source and the C sources beside it."""
    if not shutil.which("g++"):
        print("w3c.py: g++ is not installed", file=sys.stderr)
        sys.exit(1 if os.environ.get("CI") else 77)
    include = pathlib.Path(__file__).resolve().parents[2] / "include"
    flags = ["-Wall", "-Wextra", "-Werror", "-O2", "-pthread", f"-I{include}"]
    subprocess.run(["gcc", *flags, "-c", str(source.with_name("wire.c")), "-o", f"{out}/wire.o"], check=True)
    subprocess.run(["g++", "-std=c++17", *flags, str(source), f"{out}/wire.o", "-o", f"{out}/relay", f"-L{build}",
                    f"-Wl,-rpath,{build}", "-lotel", "-lotel-sdk", "-lotel-api"], check=True)
    return f"{out}/relay"


def main():
    program = sys.argv[1]
    folder = tempfile.TemporaryDirectory()
    if program.endswith(".cpp"):
        program = compiled(pathlib.Path(program), pathlib.Path(sys.argv[2]).resolve(), folder.name)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    environment["OTEL_TRACES_EXPORTER"] = "otlp/stdout"
    callback = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Callback)
    threading.Thread(target=callback.serve_forever, daemon=True).start()
    with folder, tempfile.TemporaryFile("w+") as out:
        service = subprocess.Popen([program], env=environment, stdout=out, stderr=subprocess.PIPE, text=True)
        try:
            Rules.url = re.search(r"listening on (\S+)", service.stderr.readline())[1]
            Rules.harness = f"http://127.0.0.1:{callback.server_port}"
            done = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
        finally:
            service.send_signal(signal.SIGTERM)
            said = service.communicate(timeout=60)[1]
        assert service.returncode == 0 and said == "", (service.returncode, said)
        out.seek(0)
        print(check_spans(out.read().splitlines()), "for", Rules.requests, "requests and", Rules.calls, "calls")
    sys.exit(0 if done.wasSuccessful() and done.testsRun > 40 else 1)


main()

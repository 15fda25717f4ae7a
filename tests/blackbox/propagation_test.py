# SPDX-License-Identifier: Apache-2.0
"""A program in the middle, between a client and a server that speak HTTP by themselves: what comes
out of it, and what its receiver is told, for every case of propagation_cases.py."""
import http.server
import json
import re
import socket
import subprocess
import unittest
import urllib.parse

import harness
import propagation_cases as cases


# --- what headers say ---

def unpack_baggage(text):
    found, metadata = {}, {}
    for member in filter(None, text.split(",")):
        pair, _, more = member.partition(";")
        name, _, value = pair.partition("=")
        found[name] = urllib.parse.unquote(value)
        if more:
            metadata[name] = more
    return found, metadata


def read_ids(form, headers):
    """The trace id, the span id, and whether it is sampled."""
    if form == cases.W3C:
        match = re.fullmatch("00-([0-9a-f]{32})-([0-9a-f]{16})-0([0-3])", headers["traceparent"])
        return match[1], match[2], match[3] in "13"
    if form == "b3":
        match = re.fullmatch("([0-9a-f]{32})-([0-9a-f]{16})-([01])", headers["b3"])
        return match[1], match[2], match[3] == "1"
    if form == "b3multi":
        return headers["x-b3-traceid"], headers["x-b3-spanid"], headers["x-b3-sampled"] == "1"
    match = re.fullmatch("([0-9a-f]{32}):([0-9a-f]{16}):0:([01])", headers["uber-trace-id"])
    return match[1], match[2], match[3] == "1"


def read_headers(form, pairs):
    """What a server downstream sees, without an SDK."""
    names = [name.lower() for name, _ in pairs]
    headers = {name.lower(): value for name, value in pairs}
    assert len(set(names)) == len(names), f"a header is there twice: {names}"
    trace, span, sampled = read_ids(form, headers)
    baggage, metadata = unpack_baggage(headers.get("baggage", ""))
    if form == "jaeger":
        baggage = {name[8:]: urllib.parse.unquote(value) for name, value in headers.items()
                   if name.startswith("uberctx-")}
    return {"trace": trace, "span": span, "sampled": sampled, "baggage": baggage,
            "metadata": metadata, "tracestate": headers.get("tracestate", "")}


class Downstream(harness.Server):
    """A server that answers with what it sees, as `read(form, pairs)` says."""

    def __init__(self, form, read=read_headers):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                try:
                    answer = read(form, self.headers.items())
                except Exception as bad:
                    answer = {"fault": f"{bad!r}: {self.headers.items()}"}
                body = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        super().__init__(Handler)


class Middle:
    """The program, from a downstream's URL and an environment."""

    def __init__(self, url, receiver, **env):
        self.process = subprocess.Popen(
            [harness.program("middle"), url], env=harness.environment(env, receiver), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def ask(self, path, lines):
        """The answer to a request with these header lines, as they stand on the wire."""
        head = [f"GET {path} HTTP/1.1", "Host: middle", "Connection: close"]
        head += [f"{name}: {value}" for name, value in lines]
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(("\r\n".join(head) + "\r\n\r\n").encode("latin-1"))
            reply = b"".join(iter(lambda: connection.recv(65536), b""))
        status, _, body = reply.partition(b"\r\n\r\n")
        assert status.startswith(b"HTTP/1.1 200"), (path, reply)
        return json.loads(body)

    def end(self):
        """What it said on stderr."""
        _, said = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, said
        return said


def check(test, case, seen):
    """Whether what arrived downstream is what the case says."""
    test.assertNotIn("fault", seen)
    if case.trace is cases.NEW:
        test.assertNotEqual(seen["trace"], cases.T)
    else:
        test.assertEqual(seen["trace"], case.trace)
    test.assertNotEqual(seen["span"], cases.S)
    for what in ("sampled", "baggage", "tracestate"):
        test.assertEqual(seen[what], getattr(case, what), what)


def check_spans(test, case, path, seen, spans):
    """What the receiver got of a request: nothing, or both spans of the middle."""
    mine = {span.kind: span for span in spans if harness.attributes(span)["url.path"] == path}
    test.assertEqual(len(mine), 2 if case.sampled else 0)
    if not mine:
        return
    server, client = mine[2], mine[3]
    test.assertEqual(server.trace_id.hex(), seen["trace"])
    test.assertEqual(server.parent_span_id.hex(), "" if case.trace is cases.NEW else cases.S)
    test.assertEqual(client.parent_span_id, server.span_id)
    test.assertEqual(client.span_id.hex(), seen["span"])
    for span in mine.values():
        test.assertEqual(span.trace_state, case.tracestate)


class EveryForm:
    """A test for each form of headers: its cases go through the program."""

    def test_w3c(self):
        self.go_through(cases.W3C)

    def test_b3(self):
        self.go_through("b3")

    def test_b3_multi(self):
        self.go_through("b3multi")

    def test_jaeger(self):
        self.go_through("jaeger")


class Propagation(EveryForm, unittest.TestCase):
    def go_through(self, form):
        chosen = [case for case in cases.CASES if case.form == form]
        self.assertTrue(chosen)
        with harness.Receiver() as receiver, Downstream(form) as downstream:
            middle = Middle(downstream.endpoint, receiver, OTEL_PROPAGATORS=form)
            seen = [middle.ask(f"/{i}", case.lines) for i, case in enumerate(chosen)]
            self.assertEqual(middle.end(), "")
        for i, case in enumerate(chosen):
            with self.subTest(case=case.name):
                check(self, case, seen[i])
                self.assertEqual(seen[i]["metadata"], case.metadata)
                check_spans(self, case, f"/{i}", seen[i], receiver.spans())

    def test_an_open_decision_is_the_sampler_s_of_roots(self):
        with harness.Receiver() as receiver, Downstream("b3") as downstream:
            middle = Middle(downstream.endpoint, receiver, OTEL_PROPAGATORS="b3",
                            OTEL_TRACES_SAMPLER="parentbased_always_off")
            seen = middle.ask("/", [("b3", f"{cases.T}-{cases.S}")])
            middle.end()
        self.assertEqual((seen["trace"], seen["sampled"]), (cases.T, False))

    def test_a_disabled_sdk_passes_everything_on(self):
        lines = [cases.parent(), ("tracestate", "a=1"), ("baggage", "user=alice")]
        with harness.Receiver() as receiver, Downstream(cases.W3C) as downstream:
            middle = Middle(downstream.endpoint, receiver, OTEL_SDK_DISABLED="true")
            seen = middle.ask("/", lines)
            middle.end()
        self.assertEqual((seen["trace"], seen["span"]), (cases.T, cases.S))
        self.assertEqual((seen["tracestate"], seen["baggage"]), ("a=1", {"user": "alice"}))
        self.assertEqual(receiver.spans(), [])


if __name__ == "__main__":
    harness.main()

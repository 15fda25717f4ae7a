# SPDX-License-Identifier: Apache-2.0
"""What the scripts of the black-box suite share: a receiver, and ways to run programs.

    import harness

    with harness.Receiver() as receiver:
        done = harness.run("one_span", receiver=receiver, env={"OTEL_SERVICE_NAME": "shop"})
        for span in receiver.spans(): ...

A script is a unittest module; harness.main() runs it. Programs see only the environment that the
test gives them. Messages are decoded by Google's protobuf, from the pinned .proto files.
"""
import gzip
import http.server
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parents[1]
PREFIX = pathlib.Path(os.environ.get("OTEL_PREFIX", "/usr/local"))
PROGRAMS = pathlib.Path(os.environ.get("BLACKBOX_PROGRAMS", "."))
LIBRARIES = next(iter(sorted(PREFIX.glob("lib*/**/libotel-api.so"))), PREFIX / "lib/x").parent
TOOLS = PREFIX / "bin"
RUN_SECONDS = 120


def _messages():
    """The Python classes of OTLP, made by protoc from the project's .proto files."""
    folder = PROGRAMS / "otlp-python"
    if not (folder / "done").exists():
        made = pathlib.Path(tempfile.mkdtemp(dir=PROGRAMS))
        protos = [str(path.relative_to(SOURCES / "proto"))
                  for path in (SOURCES / "proto").glob("opentelemetry/proto/**/*.proto")]
        subprocess.run(["protoc", f"-I{SOURCES / 'proto'}", f"--python_out={made}", *protos], check=True)
        (made / "done").touch()
        try:
            made.rename(folder)
        except OSError:  # another test was faster
            subprocess.run(["rm", "-rf", str(made)], check=True)
    sys.path.insert(0, str(folder))
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
    return trace_service_pb2


service = _messages()


class Server:
    """An HTTP server on loopback, with a handler of http.server, for as long as its block."""

    def __init__(self, handler, port=0):
        handler.log_message = lambda *_: None
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Receiver(Server):
    """An OTLP/HTTP receiver on loopback, which answers as it is told to.

    `requests` are the decoded messages, `heard` the (path, headers, body) of each request, `faults`
    what could not be decoded. `answer(message)` gives (status, headers, body); without it all is taken.
    """

    def __init__(self, answer=None, port=0):
        self.requests, self.heard, self.faults = [], [], []
        self.answer = answer or (lambda message: (200, {}, b""))
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.heard.append((self.path, self.headers, body))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                message = service.ExportTraceServiceRequest()
                try:
                    message.ParseFromString(body)
                except Exception as bad:
                    outer.faults.append(str(bad))
                    status, headers, answer = 400, {}, b""
                else:
                    status, headers, answer = outer.answer(message)
                    if status == 200:
                        outer.requests.append(message)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        super().__init__(Handler, port)

    def resources(self):
        return [group.resource for request in self.requests for group in request.resource_spans]

    def spans(self):
        return [span for request in self.requests for group in request.resource_spans
                for scope in group.scope_spans for span in scope.spans]


def attributes(owner):
    """The attributes of a span, a resource ... as a dictionary; values as Python has them."""
    return {pair.key: plain(pair.value) for pair in owner.attributes}


def plain(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(element) for element in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: plain(pair.value) for pair in value.kvlist_value.values}
    return getattr(value, kind) if kind else None


def program(name):
    """The path of a program of the suite, or of an installed tool."""
    for folder in (PROGRAMS, TOOLS):
        if (folder / name).exists():
            return str(folder / name)
    raise FileNotFoundError(name)


def environment(env=None, receiver=None):
    made = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LD_LIBRARY_PATH": str(LIBRARIES)}
    if receiver is not None:
        made["OTEL_EXPORTER_OTLP_ENDPOINT"] = receiver.endpoint
    made.update(env or {})
    return made


def run(name, *arguments, env=None, receiver=None, timeout=RUN_SECONDS, **options):
    """Runs a program to its end, with nothing in its environment but `env` and the receiver."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([program(name), *map(str, arguments)], env=environment(env, receiver),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout,
                          check=False, **options)


def compile_c(source, output, *flags, package="otel", compiler="cc"):
    """Compiles a file against what is installed, by pkg-config, as the README says."""
    pkg = dict(os.environ, PKG_CONFIG_LIBDIR=f"{LIBRARIES / 'pkgconfig'}:/usr/lib/x86_64-linux-gnu/pkgconfig:"
                                             "/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig")
    words = subprocess.run(["pkg-config", "--cflags", "--libs", package], env=pkg, check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split()
    subprocess.run([compiler, str(source), "-o", str(output), *flags, *words,
                    f"-Wl,-rpath,{LIBRARIES}"], check=True)
    return str(output)


def main():
    unittest.main(verbosity=2)

# SPDX-License-Identifier: Apache-2.0
"""What the scripts of the black-box suite share: a receiver, and ways to run programs.

    import harness

    with harness.Receiver() as receiver:
        done = harness.run("one_span", receiver=receiver, env={"OTEL_SERVICE_NAME": "shop"})
        for span in receiver.spans(): ...

A script is a unittest module; harness.main() runs it. Programs see only the environment that the
test gives them. Messages are decoded by Google's protobuf, from the pinned .proto files.
"""
import concurrent.futures
import gzip
import http.server
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parents[1]
PREFIX = pathlib.Path(os.environ.get("OTEL_PREFIX", "/usr/local"))
PROGRAMS = pathlib.Path(os.environ.get("BLACKBOX_PROGRAMS", "."))
LIBRARIES = next(iter(sorted(PREFIX.glob("lib*/**/libotel-api.so"))), PREFIX / "lib/x").parent
TOOLS = PREFIX / "bin"
RUN_SECONDS = 120
WAIT_SECONDS = 60  # a limit of what hangs


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


def wait_for(is_true, what):
    end = time.monotonic() + WAIT_SECONDS
    while not is_true():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.02)


class Case(unittest.TestCase):
    def enterContext(self, manager):  # of Python 3.11
        entered = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return entered


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

    def __init__(self, handler, port=0, kind=http.server.ThreadingHTTPServer):
        handler.log_message = lambda *_: None
        self.server = kind(("127.0.0.1", port), handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Received:
    """What a receiver of OTLP was sent, and how it answers.

    `requests` are the decoded messages, `heard` the (path, headers, body) of each request, `faults`
    what could not be decoded. `answer(message)` gives (status, headers, body); without it all is taken.
    `env` is what a program needs beside the endpoint.
    """
    env = {}

    def __init__(self, answer):
        self.requests, self.heard, self.faults = [], [], []
        self.answer = answer or (lambda message: (200, {}, b""))

    def take(self, path, headers, body):
        self.heard.append((path, headers, body))
        if headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        message = service.ExportTraceServiceRequest()
        try:
            message.ParseFromString(body)
        except Exception as bad:
            self.faults.append(str(bad))
            return 400, {}, b""
        status, headers, answer = self.answer(message)
        if status == 200:
            self.requests.append(message)
        return status, headers, answer

    def resources(self):
        return [group.resource for request in self.requests for group in request.resource_spans]

    def spans(self):
        return [span for request in self.requests for group in request.resource_spans
                for scope in group.scope_spans for span in scope.spans]


class Receiver(Received, Server):
    """A receiver of OTLP/HTTP on loopback; `open` are the connections that are open now."""

    def __init__(self, answer=None, port=0):
        self.open = set()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                outer.open.add(self)

            def finish(self):
                outer.open.discard(self)
                super().finish()

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, headers, answer = outer.take(self.path, self.headers, body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        Received.__init__(self, answer)
        Server.__init__(self, Handler, port)


class GrpcReceiver(Received):
    """One of OTLP/gRPC, made of gRPC for Python (scripts/setup.sh --interop). Statuses are HTTP's."""
    env = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}

    def __init__(self, answer=None, port=0):
        super().__init__(answer)
        grpc = _grpc()
        codes = {400: grpc.StatusCode.INVALID_ARGUMENT, 503: grpc.StatusCode.UNAVAILABLE}

        def export(body, context):
            status, _, answer = self.take("", {}, body)
            if status != 200:
                context.abort(codes[status], "refused")
            return answer

        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(), options=[("grpc.so_reuseport", 0)])
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
            "opentelemetry.proto.collector.trace.v1.TraceService",
            {"Export": grpc.unary_unary_rpc_method_handler(export)})])
        self.port = self.server.add_insecure_port(f"127.0.0.1:{port}")
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop(None).wait()


def _grpc():
    """The peers' gRPC; Google's protobuf stays the system's. Skips the test without it, but not in CI."""
    sys.path.append(str(SOURCES / "tests/support"))
    import receiver
    try:
        python = pathlib.Path(receiver.peers_python())
    except SystemExit as bad:
        if "CI" in os.environ:
            raise
        raise unittest.SkipTest("no gRPC for Python: scripts/setup.sh --interop") from bad
    sys.path.extend(map(str, python.parents[1].glob("lib/python*/site-packages")))
    import grpc
    return grpc


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
    return shutil.which(name) or name


def environment(env=None, receiver=None):
    made = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LD_LIBRARY_PATH": str(LIBRARIES)}
    if receiver is not None:
        made.update(receiver.env, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint)
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


def after_mount(test, mount):
    """What begins a command that a mount command precedes, in a name space of its own; without one the test is
    skipped: it needs root, and a root directory that is a mount."""
    before = ["unshare", "--mount", "sh", "-c", f'mount {mount} && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*before, "true"], capture_output=True,
                                                         check=False).returncode != 0:
        test.skipTest("no name space of its own for mounts")
    return before


def certificates(folder):
    """PEM files in a folder: an authority (ca), and of it a server's certificate for loopback, one that has
    expired, one for another host, and a client's; and another authority (stranger) with a client's."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for authority in "ca", "stranger":
        openssl("req", "-x509", *key, "-keyout", f"{authority}.key", "-out", f"{authority}.pem", "-subj",
                f"/CN={authority}", "-days", "9")
    for name, authority, names, days in (
            ("server", "ca", "DNS:localhost,IP:127.0.0.1", "9"), ("client", "ca", "DNS:localhost", "9"),
            ("expired", "ca", "DNS:localhost", "-1"), ("other", "ca", "DNS:elsewhere.example", "9"),
            ("strange-client", "stranger", "DNS:localhost", "9")):
        (pathlib.Path(folder) / "names").write_text(f"subjectAltName={names}\n")
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey",
                f"{authority}.key", "-CAcreateserial", "-out", f"{name}.pem", "-days", days, "-extfile", "names")


def main():
    unittest.main(verbosity=2, failfast="BLACKBOX_FAIL_FAST" in os.environ)

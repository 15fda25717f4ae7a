# SPDX-License-Identifier: Apache-2.0
"""What the test of the nginx module is made of: nginx itself, an upstream, and trees of spans.

    with scene.Nginx(module, receiver, 'location / { return 200; }') as nginx:
        nginx.get("/")
        nginx.quit()
    print(scene.tree(receiver))

All of it listens on loopback, in a folder of its own, as the user who runs the test.
"""
import contextlib
import http.client
import http.server
import os
import pathlib
import re
import shutil
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "blackbox"))
import harness
from harness import free_port, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = shutil.which("nginx") or "/usr/sbin/nginx"
SECONDS = 60  # a limit of what hangs
KINDS = ["?", "internal", "server", "client", "producer", "consumer"]
SUMS = re.compile(r"otel-c: exporter 0: started (\d+), unsampled (\d+), open (\d+), ended (\d+): (.*)")
CONFIGURATION = """
{user}
load_module {module};
worker_processes {workers};
pid nginx.pid;
error_log error.log notice;
{name}
env OTEL_EXPORTER_OTLP_ENDPOINT={endpoint};
{main}
events {{ {events} }}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    otel_trace on;
    {http}
    server {{
        listen 127.0.0.1:{port};
        listen 127.0.0.1:{port2} http2;
        {server}
    }}
}}
"""


def skip_without(*programs):
    """Ends a script, as skipped, where nginx, its headers or a program is not installed."""
    missing = [name for name in programs if not shutil.which(name)]
    if not pathlib.Path(PROGRAM).exists():
        missing.append("nginx")
    if not (pathlib.Path(os.environ.get("NGINX_SOURCE", "/usr/share/nginx/src")) / "configure").exists():
        missing.append("nginx-dev")
    if missing:
        print(f"not installed: {' '.join(missing)}", file=sys.stderr)
        sys.exit(1 if os.environ.get("CI") else 77)


def build_module(build, sanitizers, name):
    """The path of the module, made in a folder of a build, with its shared libraries."""
    folder = build / name
    folder.mkdir(exist_ok=True)
    (folder / "otel.pc").write_text(
        f"includedir={ROOT / 'include'}\nName: otel\nDescription: of a build directory\nVersion: 0\n"
        f"Cflags: -I{ROOT / 'include'}\nLibs: -L{build} -Wl,-rpath,{build} -lotel -lotel-sdk -lotel-api\n")
    subprocess.run([str(ROOT / "integrations/nginx/build.sh"), str(folder),
                    *[f"-fsanitize={sanitizers}"] * bool(sanitizers)], check=True,
                   env=dict(os.environ, PKG_CONFIG_PATH=str(folder)))
    return folder / "ngx_http_otel_module.so"


class Nginx:
    """An nginx with the module; set_module comes before the first one. `preload` is what a sanitizer needs."""
    module = preload = None
    is_under_valgrind = False

    @classmethod
    def set_module(cls, build, sanitizers, name="nginx"):
        cls.module = build_module(build, sanitizers, name)
        if sanitizers:
            cls.preload = subprocess.run(["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True,
                                         text=True).stdout.strip()

    def __init__(self, endpoint, server, http="", main="", workers=1, service="front", environment=None,
                 events="worker_connections 512;"):
        self.folder = tempfile.TemporaryDirectory(prefix="otel-nginx-")
        self.path = pathlib.Path(self.folder.name)
        self.port, self.port2 = free_port(), free_port()
        self.text = CONFIGURATION.format(
            user="user root;" if os.geteuid() == 0 else "", module=self.module, workers=workers,
            name=f"env OTEL_SERVICE_NAME={service};" if service else "", endpoint=endpoint, main=main,
            events=events, http=http, server=server, port=self.port, port2=self.port2)
        self.service = service
        self.environment = environment or {}  # of the command that starts nginx
        self.process = None

    def run(self, *words):
        (self.path / "nginx.conf").write_text(self.text)
        environment = {"PATH": os.environ["PATH"], **self.environment}
        if self.preload:
            log = f"log_path={self.path / 'sanitizer'}"
            environment.update(LD_PRELOAD=self.preload, ASAN_OPTIONS=f"detect_leaks=0:abort_on_error=1:{log}",
                               UBSAN_OPTIONS=f"halt_on_error=1:print_stacktrace=1:{log}")
        before = ["valgrind", f"--log-file={self.path}/valgrind.%p",
                  f"--suppressions={pathlib.Path(__file__).with_name('valgrind.supp')}"] * self.is_under_valgrind
        return subprocess.Popen([*before, PROGRAM, "-p", str(self.path), "-c", "nginx.conf", "-e", "error.log", *words],
                                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def __enter__(self):
        self.process = self.run("-g", "daemon off;")
        wait_for(self.listens, "nginx does not listen")
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            try:
                self.process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.communicate()
        self.folder.cleanup()

    def listens(self):
        if self.process.poll() is not None:
            raise AssertionError(f"nginx has ended: {self.process.stdout.read()} {self.log()}")
        try:
            socket.create_connection(("127.0.0.1", self.port), 5).close()
            return True
        except ConnectionRefusedError:
            return False

    def log(self, name="error.log"):
        return (self.path / name).read_text(errors="replace")

    def workers(self):
        """The processes that nginx has started, with the number of their threads: {pid: (title, number)}."""
        found = {}
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                if int(stat.read_text().rpartition(")")[2].split()[1]) == self.process.pid:
                    title = (stat.parent / "cmdline").read_text().strip("\0 ")
                    found[int(stat.parent.name)] = (title, len(list(stat.parent.glob("task/*"))))
            except (OSError, ValueError):
                pass  # it has ended
        return found

    def request(self, path="/", method="GET", body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            with connection.getresponse() as answer:
                return answer.status, answer.read().decode()

    def say(self, raw, then=lambda: None):
        """The answer to bytes that need not be HTTP, of a client that then says no more."""
        with socket.create_connection(("127.0.0.1", self.port), SECONDS) as connection:
            connection.sendall(raw)
            then()
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def send(self, number):
        self.process.send_signal(number)

    def quit(self, number=signal.SIGQUIT):
        """Ends nginx, and returns the final sums of its workers, as dictionaries."""
        self.send(number)
        self.process.wait(SECONDS)
        if "left in connection" in self.log():
            raise AssertionError(self.log())
        return sums_of(self.log())


def sums_of(log):
    found = []
    for started, unsampled, still_open, ended, rest in SUMS.findall(log):
        sums = dict(re.findall(r"(\w+) ([\d,]+)", rest))
        sums = {name: int(number.replace(",", "")) for name, number in sums.items()}
        sums.update(started=int(started), unsampled=int(unsampled), open=int(still_open), ended=int(ended))
        found.append(sums)
    return found


class Upstream(harness.Server):
    """What nginx proxies to. It remembers the requests, as (path, headers), and answers as their path says:
    /status/500 with that status, /drop not at all, /short with less than it says, /accel with a redirect
    inside nginx; /hang waits for `released`, and /wait too, and then answers."""

    def __init__(self):
        outer = self
        self.heard = []
        self.released = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.heard.append((self.path, self.headers))
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path.startswith(("/hang", "/wait")):
                    outer.released.wait(SECONDS)
                if self.path.startswith(("/drop", "/hang")):
                    self.close_connection = True
                    return
                self.send_response(int(self.path.split("/")[2]) if self.path.startswith("/status/") else 200)
                if self.path.startswith("/accel"):
                    self.send_header("X-Accel-Redirect", "/internal/file")
                is_short = self.path.startswith("/short")
                self.send_header("Content-Length", "9" if is_short else "3")
                self.end_headers()
                self.wfile.write(b"ok\n")
                self.close_connection |= is_short

            do_POST = do_GET

        super().__init__(Handler)

    def __exit__(self, *_):
        self.released.set()
        super().__exit__()

    def of(self, path):
        """The headers of the only request to a path."""
        [headers] = [headers for heard, headers in self.heard if heard == path]
        return headers


class FastCgi(harness.Server):
    """An upstream by FastCGI, for one request a connection; `heard` are their parameters, as dictionaries."""

    def __init__(self):
        outer = self
        self.heard = []

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                kind, held = 0, b""
                while kind != 5:  # FCGI_STDIN
                    _, kind, _, length, padding, _ = struct.unpack(">BBHHBB", self.rfile.read(8))
                    held += self.rfile.read(length) if kind == 4 else b""  # FCGI_PARAMS
                    self.rfile.read(padding)
                outer.heard.append(dict(outer.pairs(held)))
                answer = b"Status: 200 OK\r\n\r\nok\n"
                self.wfile.write(struct.pack(">BBHHBB", 1, 6, 1, len(answer), 0, 0) + answer +  # FCGI_STDOUT
                                 struct.pack(">BBHHBBQ", 1, 3, 1, 8, 0, 0, 0))  # FCGI_END_REQUEST

        super().__init__(Handler, kind=socketserver.ThreadingTCPServer)

    @staticmethod
    def pairs(held):
        while held:
            lengths = []
            for _ in range(2):
                size = 4 if held[0] & 0x80 else 1
                lengths.append(int.from_bytes(held[:size], "big") & 0x7FFFFFFF)
                held = held[size:]
            end = sum(lengths)
            yield held[:lengths[0]].decode(), held[lengths[0]:end].decode()
            held = held[end:]


def spans_of(receiver):
    """(service, span) of all that a receiver has."""
    return [(harness.attributes(group.resource)["service.name"], span) for request in receiver.requests
            for group in request.resource_spans for scope in group.scope_spans for span in scope.spans]


def tree(receiver):
    """The spans as text: each below its parent, in the order of their starts, with status and errors."""
    spans = spans_of(receiver)
    known = {span.span_id for _, span in spans}
    lines = []

    def add(parent, depth):
        for service, span in sorted(spans, key=lambda each: each[1].start_time_unix_nano):
            if (span.parent_span_id if span.parent_span_id in known else b"") == parent:
                held = harness.attributes(span)
                words = [service, KINDS[span.kind], span.name, str(held.get("http.response.status_code", "-"))]
                if "error.type" in held:
                    words.append("error.type=" + held["error.type"])
                if span.status.code == 2:
                    words.append("error")
                lines.append("  " * depth + " ".join(words))
                add(span.span_id, depth + 1)

    add(b"", 0)
    return "\n".join(lines)

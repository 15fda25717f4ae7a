# SPDX-License-Identifier: Apache-2.0
"""What the test of redis's patch is made of: redis itself, a client, and trees of spans.

    with scene.Redis(receiver.endpoint, "appendonly yes") as redis:
        redis.client().say("SET", "k", "v")
        sums = redis.stop()
    print(scene.tree(receiver))

All of it listens on loopback, in a folder of its own, as the user who runs the test.
"""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "blackbox"))
import harness
from harness import free_port, wait_for

SECONDS = 60  # a limit of what hangs
KINDS = ["?", "internal", "server", "client", "producer", "consumer"]
SUMS = re.compile(r"(\d+):(\w) .* otel-c: exporter 0: started (\d+), unsampled (\d+), open (\d+), ended (\d+): (.*)")
SOCKET = "socket" + 60 * "-"  # with its folder longer than what redis keeps of a client's address
CONFIGURATION = """
bind 127.0.0.1
port {port}
unixsocket {path}/{socket}
dir {path}
logfile {path}/log
pidfile {path}/pid
save ""
enable-debug-command yes
{text}
"""


class Client:
    """A connection that speaks RESP2. Replies are str, int, None and lists; errors are "-CODE text"."""

    def __init__(self, family, address):
        self.socket = socket.socket(family)
        self.socket.settimeout(SECONDS)
        self.socket.connect(address)
        self.file = self.socket.makefile("rb")
        self.name = self.socket.getsockname()

    def send(self, *commands):
        """Sends commands, each a tuple of words, in one write: a pipeline."""
        raw = b""
        for words in commands:
            raw += b"*%d\r\n" % len(words)
            for word in map(str, words):
                raw += b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode())
        self.socket.sendall(raw)

    def read(self):
        line = self.file.readline()
        if not line:
            raise ConnectionError("redis has closed the connection")
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"-":
            return "-" + rest
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if rest == "-1":
            return None
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        return self.file.read(int(rest) + 2)[:-2].decode()

    def say(self, *words):
        self.send(words)
        return self.read()

    def close(self):
        self.file.close()
        self.socket.close()


class Redis:
    """A redis with the patch."""
    program = None  # set by the test before its first one

    def __init__(self, endpoint, text="", **environment):
        self.folder = tempfile.TemporaryDirectory(prefix="otel-redis-")
        self.path = pathlib.Path(self.folder.name)
        self.port = free_port()
        self.text = CONFIGURATION.format(port=self.port, path=self.path, socket=SOCKET, text=text)
        self.environment = {"PATH": os.environ["PATH"], **environment}
        if endpoint:
            self.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint
        self.clients = []
        self.is_daemon = "daemonize yes" in text
        self.pid = None

    def __enter__(self):
        (self.path / "redis.conf").write_text(self.text)
        self.process = subprocess.Popen([self.program, self.path / "redis.conf"], env=self.environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        wait_for(self.listens, "redis does not listen")
        self.pid = int((self.path / "pid").read_text())
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.close()
        if self.pid and self.runs():
            os.kill(self.pid, signal.SIGKILL)
        self.process.wait(SECONDS)
        self.folder.cleanup()

    def listens(self):
        if not self.is_daemon and self.process.poll() is not None:
            raise AssertionError(f"redis has ended: {self.log()}")
        return "Ready to accept connections" in self.log()

    def runs(self):
        """Whether redis runs: a daemon is not a child, which could be waited for."""
        if not self.is_daemon:
            return self.process.poll() is None
        with contextlib.suppress(OSError):
            return (pathlib.Path("/proc") / str(self.pid) / "stat").read_text().split(") ")[1][0] != "Z"
        return False

    def log(self):
        with contextlib.suppress(FileNotFoundError):
            return (self.path / "log").read_text(errors="replace")
        return ""

    def client(self, unix=False):
        made = Client(socket.AF_UNIX, str(self.path / SOCKET)) if unix else \
            Client(socket.AF_INET, ("127.0.0.1", self.port))
        self.clients.append(made)
        return made

    def stop(self, number=signal.SIGTERM):
        """Ends redis, and returns the final sums of it and of its children, as dictionaries."""
        if number:
            os.kill(self.pid, number)
        wait_for(lambda: not self.runs(), "redis does not end")
        return self.sums()

    def sums(self):
        """The sums in the log: redis's with the role "M", those of children with "C"."""
        found = []
        for pid, role, started, unsampled, still_open, ended, rest in SUMS.findall(self.log()):
            sums = dict(re.findall(r"(\w+) ([\d,]+)", rest))
            sums = {name: int(count.replace(",", "")) for name, count in sums.items()}
            sums.update(started=int(started), unsampled=int(unsampled), open=int(still_open), ended=int(ended))
            found.append((role, sums))
        return found


def tree(receiver, *keys):
    """The spans as text: each below its parent, in the order of their starts, with these attributes."""
    spans = receiver.spans()
    known = {span.span_id for span in spans}
    lines = []

    def add(parent, depth):
        for span in sorted(spans, key=lambda each: each.start_time_unix_nano):
            if (span.parent_span_id if span.parent_span_id in known else b"") == parent:
                held = harness.attributes(span)
                words = [KINDS[span.kind], span.name, *(str(held[key]) for key in keys if key in held)]
                if span.status.code == 2:
                    words.append("error " + held.get("error.type", span.status.message))
                lines.append("  " * depth + " ".join(words))
                add(span.span_id, depth + 1)

    add(b"", 0)
    return "\n".join(lines)

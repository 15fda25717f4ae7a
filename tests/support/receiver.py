# SPDX-License-Identifier: Apache-2.0
"""Real OTLP receivers for tests: the OpenTelemetry Collector and Rotel on loopback.

    with tempfile.TemporaryDirectory() as folder:
        collector = receiver.Collector(folder)
        collector.start()
        ... post to collector.endpoint ...
        collector.stop()
        for request in collector.requests(): ...

Programs are found where scripts/setup.sh keeps them; a test without them calls skip().
Everything started here is ended by its process id, also when the test fails.
"""
import atexit
import collections
import hashlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
START_SECONDS = STOP_SECONDS = 120
SKIPPED = 77

_running = []


def _end_all():
    for process in _running:
        if process.poll() is None:
            process.kill()
            process.wait()


atexit.register(_end_all)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def skip(why):
    print(f"SKIPPED: {why}", file=sys.stderr)
    sys.exit(SKIPPED)


def _cache():
    path = os.environ.get("OTEL_C_CACHE")
    if path:
        return pathlib.Path(path)
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(cache) / "otel-c"


def find(pattern, option):
    found = sorted(_cache().glob(pattern))
    if not found:
        skip(f"nothing is {_cache() / pattern}; scripts/setup.sh {option} makes it")
    return str(found[-1])


def collector_path():
    return find("otelcol-*/otelcol", "--collector")


def rotel_path():
    return find("rotel-*/rotel-agent", "--rotel")


PEERS = ROOT / "tests/interop/requirements.txt"
KEPT = ("OTEL_TEST_LONG", "OTEL_C_CACHE")  # the peers read other variables


def peers_python():
    """The Python that has OpenTelemetry's own packages (scripts/setup.sh --interop)."""
    version = hashlib.sha256(PEERS.read_bytes()).hexdigest()[:12]
    return find(f"peers-{version}/bin/python", "--interop")


def run_with_peers():
    """Start the script again with that Python, unless it is the one that runs it."""
    if os.environ.pop("OTEL_C_PEERS", None) is None:
        python = peers_python()
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("OTEL_") or name in KEPT}
        os.execve(python, [python] + sys.argv, dict(environment, OTEL_C_PEERS=python))


_ports = []


def free_ports(count):
    """Loopback ports for receivers. They stay bound here, so that nobody else gets one while its
    receiver is away; with SO_REUSEADDR the receiver may have it nevertheless."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", 0))
    _ports.extend(sockets)
    return [one.getsockname()[1] for one in sockets]


def _integer(digits):
    """The collector writes the number -0.0 as -0."""
    return -0.0 if digits == "-0" else int(digits)


class Certificates:
    """In a folder: an authority, a server's certificate for loopback and a client's, made by
    `program` (make_certificates.c); `other_authority` has signed neither."""

    def __init__(self, folder, program):
        folder = pathlib.Path(folder)
        other = folder / "other"
        other.mkdir()
        for place in folder, other:
            subprocess.run([program, str(place)], check=True)
        self.authority, self.other_authority = folder / "ca.pem", other / "ca.pem"
        self.server, self.server_key = folder / "server.pem", folder / "server.key"
        self.client, self.client_key = folder / "client.pem", folder / "client.key"


class Receiver:
    """A process that is ready when all its addresses take connections."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.process = None
        self.starts = 0
        self.http_port, self.grpc_port = free_ports(2)
        self.endpoint = f"http://127.0.0.1:{self.http_port}"
        self.grpc_endpoint = f"http://127.0.0.1:{self.grpc_port}"

    def endpoint_of(self, protocol):
        return self.grpc_endpoint if protocol == "grpc" else self.endpoint

    def command(self):
        raise NotImplementedError

    def start(self):
        command = self.command()
        self.starts += 1
        log = self.folder / f"{type(self).__name__.lower()}-{self.starts}.log"
        with open(log, "wb") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=out, cwd=self.folder)
        _running.append(self.process)
        until = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > until:
                sys.exit(f"{command[0]} does not start:\n{log.read_text(errors='replace')}")
            time.sleep(0.02)

    def listens_at(self):
        """Ports of loopback and paths of sockets."""
        return [self.http_port, self.grpc_port]

    def _is_ready(self):
        """A socket's path is there before anybody listens, so only a connection tells."""
        try:
            for address in self.listens_at():
                is_port = isinstance(address, int)
                with socket.socket(socket.AF_INET if is_port else socket.AF_UNIX) as one:
                    one.settimeout(START_SECONDS)
                    one.connect(("127.0.0.1", address) if is_port else str(address))
            return True
        except OSError:
            return False

    def stop(self):
        """Let it finish what it has."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=STOP_SECONDS)

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.process.wait()


class Collector(Receiver):
    """The OpenTelemetry Collector. Each start writes a file of its own."""

    def __init__(self, folder):
        super().__init__(folder)
        self.program = collector_path()
        self.files = []

    def command(self):
        name = f"{self.starts}-{self.http_port}"
        self.files.append(self.folder / f"received-{name}.json")
        return self.configured("collector.yaml.in", name, {
            "HTTP_PORT": self.http_port, "GRPC_PORT": self.grpc_port, "FILE": self.files[-1]})

    def configured(self, template, name, values):
        text = (ROOT / "tests/support" / template).read_text()
        config = self.folder / f"collector-{name}.yaml"
        config.write_text(re.sub(r"@(\w+)@", lambda match: str(values[match[1]]), text))
        return [self.program, "--config", str(config)]

    def requests(self):
        """Every request that was received, file after file. A line that a kill left
        unfinished is no request: its sender had no answer."""
        for file in self.files:
            yield from requests_in(file)


def requests_in(file):
    if not file.exists():  # it is made by the first request
        return
    with open(file, "rb") as lines:
        for line in _finished(lines):
            yield json.loads(line, parse_int=_integer)


def _finished(lines):
    """The lines of an open file up to the first without its end. The file may grow meanwhile: a
    reader that went on would take the end of that line for a whole one."""
    for line in lines:
        if not line.endswith(b"\n"):
            return
        yield line


class ProfilesCollector(Collector):
    """The collector with its profiles, which are in development, switched on."""

    def command(self):
        name = f"profiles-{self.starts}-{self.http_port}"
        self.files.append(self.folder / f"received-{name}.json")
        return self.configured("collector_profiles.yaml.in", name, {
            "HTTP_PORT": self.http_port, "GRPC_PORT": self.grpc_port,
            "FILE": self.files[-1]}) + ["--feature-gates=service.profilesSupport"]


class EveryWay(Collector):
    """The collector with a receiver for each way to it: `MODES`. Each start writes a file for
    each of them."""

    MODES = ("plain", "tls", "mtls", "unix")

    def __init__(self, folder, certificates):
        super().__init__(folder)
        self.certificates = certificates
        ports = free_ports(6)
        self.addresses = {(mode, kind): ports.pop() for mode in self.MODES[:3]
                          for kind in ("HTTP", "GRPC")}
        self.addresses.update({("unix", kind): self.folder / f"{kind}.sock"
                               for kind in ("HTTP", "GRPC")})
        self.http_port = self.addresses["plain", "HTTP"]
        self.endpoint = self.endpoint_of("http/protobuf")
        self.files_of = {mode: [] for mode in self.MODES}
        self.read = collections.Counter()  # bytes, by file

    def listens_at(self):
        return self.addresses.values()

    def command(self):
        values = {f"{mode.upper()}_{kind}": value
                  for (mode, kind), value in self.addresses.items()}
        for mode, files in self.files_of.items():
            files.append(self.folder / f"received-{mode}-{self.starts}.json")
            values[f"{mode.upper()}_FILE"] = files[-1]
        values.update(SERVER=self.certificates.server, SERVER_KEY=self.certificates.server_key,
                      AUTHORITY=self.certificates.authority)
        return self.configured("collector_every_way.yaml.in", "every-way", values)

    def endpoint_of(self, protocol, mode="plain"):
        return endpoint(mode, self.addresses[mode, "GRPC" if protocol == "grpc" else "HTTP"])

    def take(self, mode):
        """The requests that came this way since the last call."""
        requests = []
        for file in filter(pathlib.Path.exists, self.files_of[mode]):
            with open(file, "rb") as lines:
                lines.seek(self.read[file])
                for line in _finished(lines):
                    requests.append(json.loads(line, parse_int=_integer))
                    self.read[file] += len(line)
        return requests


def endpoint(mode, address):
    if mode == "unix":
        return f"unix://{address}"
    return f"http://127.0.0.1:{address}" if mode == "plain" else f"https://localhost:{address}"


class Rotel(Receiver):
    """Rotel: it refuses strings that are no UTF-8, and hands on what it accepts."""

    def __init__(self, folder, to_endpoint):
        super().__init__(folder)
        self.program = rotel_path()
        self.to_endpoint = to_endpoint

    def command(self):
        return [self.program, "start",
                "--pid-file", str(self.folder / "rotel.pid"),
                "--log-file", str(self.folder / "rotel-own.log"),
                "--otlp-http-endpoint", f"127.0.0.1:{self.http_port}",
                "--otlp-grpc-endpoint", f"127.0.0.1:{self.grpc_port}",
                "--exporter", "otlp",
                "--otlp-exporter-endpoint", self.to_endpoint,
                "--otlp-exporter-protocol", "http",
                "--otlp-exporter-compression", "none",
                # Who loses patience sends again, and the collector has it twice.
                "--otlp-exporter-request-timeout", "120s",
                "--otlp-exporter-retry-max-elapsed-time", "120s",
                "--disable-batching"]  # it forgets the resource when it splits a batch


def spans_of(request):
    """(resource group, scope group, span) of each span of a request."""
    for resource_group in request.get("resourceSpans", []):
        for scope_group in resource_group.get("scopeSpans", []):
            for span in scope_group.get("spans", []):
                yield resource_group, scope_group, span

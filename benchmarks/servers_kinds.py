# SPDX-License-Identifier: Apache-2.0
"""The servers that servers.py measures: how they are built, started, loaded and ended, and what their
threads have used. The server's core is the first one; the client and the sinks are on the others."""
import collections
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import servers_account

ROOT = pathlib.Path(__file__).resolve().parents[1]
CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE, APART_CORE = CORES[0], CORES[1 % len(CORES)]  # of the worker; of an exporter apart
LOAD_CORES = set(CORES[2:] or CORES[-1:])  # of the client and the sinks
CONNECTIONS, BATCH_S = 32, 5.5  # the second is longer than a span waits for its batch

NGINX = """
{load}
worker_processes 1; {user}
pid nginx.pid; error_log error.log notice;
{main}
events {{ worker_connections 512; }}
http {{
    access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; default_type text/plain;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    {http}
    server {{ listen 127.0.0.1:{port}; root .; }}
}}
"""
SUMS = re.compile(r"started \d+, unsampled \d+, open \d+, ended .*")


def pin(pid, cores):
    os.sched_setaffinity(pid, cores)


def start(words, cores, **more):
    return subprocess.Popen([str(word) for word in words], preexec_fn=lambda: pin(0, cores), **more)


def output(*words, **more):
    return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def write_package(folder, build):
    """A folder for pkg-config, with the libraries of a build folder."""
    folder.mkdir(exist_ok=True)
    (folder / "otel.pc").write_text(
        f"includedir={ROOT}/include\nName: otel\nDescription: of a build directory\nVersion: 0\nCflags: "
        f"-I{ROOT}/include\nLibs: -L{build} -Wl,-rpath,{build} -lotel -lotel-sdk -lotel-api\n")


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


def wait_for(find, what):
    end = time.monotonic() + 30
    while not (found := find()):
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.02)
    return found


def listens(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


class Sink:
    """What the spans of one server are sent to."""

    def __init__(self, build):
        self.process = start([build / "benchmarks/bench-servers"], LOAD_CORES, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()

    def end(self):
        requests, size = self.process.communicate("\n")[0].split()[-2:]
        return int(requests), int(size)


class Server:
    """One process that serves, of the case that is called `name`. A slice is a dictionary of its
    requests, its seconds and the nanoseconds that the worker's thread and the others took meanwhile."""

    def __init__(self, name, options, tools):
        self.name, self.options, self.tools = name, options, tools
        self.folder = tempfile.TemporaryDirectory(prefix="otel-bench-")
        self.path, self.port = pathlib.Path(self.folder.name), free_port()
        self.slices, self.profiles, self.served = [], [], []
        self.sink = Sink(options.build)
        environment = {"OTEL_SERVICE_NAME": "bench", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": self.sink.url}
        if name == "disabled":
            environment["OTEL_SDK_DISABLED"] = "true"
        if name == "sampled_1":
            environment.update(OTEL_TRACES_SAMPLER="traceidratio", OTEL_TRACES_SAMPLER_ARG="0.01")
        self.process = self.launch(environment)
        wait_for(lambda: listens(self.port), f"{name} does not listen: {self.path}")
        self.pid = self.worker()

    def cpu_ns(self):
        tasks = pathlib.Path(f"/proc/{self.pid}/task").iterdir()
        return {int(task.name): int((task / "schedstat").read_text().split()[0]) for task in tasks}

    def settle(self):
        """Gives the newest slice, if any, its CPU time until now, and takes the clocks."""
        now = self.cpu_ns()
        if self.slices and "worker" not in self.slices[-1]:
            used = {tid: ns - self.before.get(tid, 0) for tid, ns in now.items()}
            self.slices[-1].update(worker=used[self.pid], exporter=sum(used.values()) - used[self.pid])
        self.before = now
        for tid in now:
            pin(tid, {APART_CORE if self.name.endswith("_apart") and tid != self.pid else SERVER_CORE})

    def load_some(self, seconds):
        while not (loaded := self.load(seconds))[0]:
            pass  # a busy machine may let nothing through in a second
        self.served.append(loaded[0])
        return loaded

    def slice(self, seconds):
        self.settle()
        requests, took = self.load_some(seconds)
        self.slices.append({"requests": requests, "seconds": took})

    def profile(self, seconds):
        self.settle()
        self.profiles.append(servers_account.profile(self, LOAD_CORES, start, seconds))

    def end(self):
        self.settle()
        log = self.quit()
        requests, size = self.sink.end()
        self.folder.cleanup()
        found = SUMS.search(log)
        if found is None:
            if self.name in ("sampled_1", "all", "all_apart"):
                raise SystemExit(f"{self.name}: no sums: {log[-500:]}")
            return {}
        numbers = dict(re.findall(r"(\w+) ([\d,]*\d)", found.group()))
        sums = collections.Counter({name: int(number.replace(",", "")) for name, number in numbers.items()})
        spans = sums["delivered"] + sums["dropped"]
        more = spans - sum(self.served)  # a client breaks off what is under way, and a server may have other spans
        is_whole = self.name == "sampled_1" or 0 <= more <= CONNECTIONS * len(self.served) + spans / 100
        if sums["open"] or sums["ended"] != spans + sums["withheld"] or not requests or not is_whole:
            raise SystemExit(f"{self.name}: {sum(self.served)} requests, but {found.group()}")
        return {"spans": spans, "delivered": sums["delivered"], "dropped": sums["dropped"], "posts": requests,
                "bytes": size}


class Nginx(Server):
    cases = ("bare", "off", "disabled", "sampled_1", "all")  # there is no exporter thread to put apart

    @staticmethod
    def build(options):
        folder = options.build / "benchmarks/nginx"
        write_package(folder, options.build)
        output(ROOT / "integrations/nginx/build.sh", folder, env=dict(os.environ, PKG_CONFIG_PATH=str(folder)))
        return folder / "ngx_http_otel_module.so"

    def launch(self, environment):
        (self.path / "file").write_bytes(b"x" * 1023 + b"\n")
        load, http = f"load_module {self.tools};", "otel_trace on;"
        if self.name.startswith("rival"):
            module, endpoint = self.options.rival
            load = f"load_module {os.path.abspath(module)};"
            http = f"otel_exporter {{ endpoint {endpoint}; }} otel_trace on;"
        elif self.name in ("bare", "off"):
            load, http = (load, "otel_trace off;") if self.name == "off" else ("", "")
        (self.path / "nginx.conf").write_text(NGINX.format(
            load=load, http=http, port=self.port, user="user root;" if os.geteuid() == 0 else "",
            main="\n".join(f'env "{name}={value}";' for name, value in environment.items())))
        return start([shutil.which("nginx") or "/usr/sbin/nginx", "-p", self.path, "-c", "nginx.conf", "-e",
                      "error.log", "-g", "daemon off;"], {SERVER_CORE})

    def worker(self):
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(wait_for(lambda: children.read_text().split(), "nginx has no worker")[0])

    def load(self, seconds):
        text = output("taskset", "-c", ",".join(map(str, LOAD_CORES)), "wrk", "-t1", f"-c{CONNECTIONS}",
                      f"-d{seconds}s", f"http://127.0.0.1:{self.port}/file")
        requests, took, unit = re.search(r"(\d+) requests in ([\d.]+)(m?s)", text).groups()
        if "Non-2xx" in text or "Socket errors" in text:
            raise SystemExit(f"{self.name}: {text}")
        return int(requests), float(took) / (1000 if unit == "ms" else 1)

    def quit(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(30)
        return (self.path / "error.log").read_text()


class Redis(Server):
    cases = ("bare", "disabled", "sampled_1", "all", "all_apart")
    rate = 200_000  # commands a second, of the last slice

    @staticmethod
    def build(options):
        folder = options.build / "benchmarks/redis"
        write_package(folder, options.build)
        for kind, more in (("bare", {"REDIS_BARE": "1"}), ("traced", {})):
            output(ROOT / "integrations/redis/build.sh", folder / kind,
                   env=dict(os.environ, PKG_CONFIG_PATH=str(folder), **more))
        return folder

    def launch(self, environment):
        program = self.tools / ("bare" if self.name == "bare" else "traced") / "redis-server"
        return start([program, "--port", self.port, "--bind", "127.0.0.1", "--dir", self.path, "--save", "",
                      "--logfile", "log"], {SERVER_CORE}, env={"PATH": os.environ["PATH"], **environment})

    def worker(self):
        self.benchmark("set", 16_000)  # so that there is something to get
        self.served.append(16_000)
        return self.process.pid

    def benchmark(self, command, count):
        text = output("taskset", "-c", ",".join(map(str, LOAD_CORES)), self.tools / "bare/redis-benchmark", "-p",
                      self.port, "-c", CONNECTIONS, "-P", 16, "-t", command, "-n", count, "--csv")
        return float(re.search(r'^"%s","([\d.]+)"' % command.upper(), text, re.M).group(1))

    def load(self, seconds):
        count = int(self.rate * seconds) // 16 * 16
        self.rate = self.benchmark("get", count)
        return count, count / self.rate

    def quit(self):
        self.process.terminate()
        self.process.wait(30)
        return (self.path / "log").read_text()


KINDS = {"nginx": Nginx, "redis": Redis}

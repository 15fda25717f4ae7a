#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two nginx in a row under wrk, with reloads, and a receiver that is killed: nothing is lost uncounted.

    storm.py BUILD [--seconds 600] [--asan | --valgrind] [--collector] [--pause-ms 4] [--reload-every 10]
             [--kill-every 30] [--keep FOLDER]

wrk asks the first nginx, which asks the second; both have the module, with the shared libraries of BUILD
(--asan: BUILD is one of the preset asan). All the while both are reloaded, and the receiver (journal.py; or the
OpenTelemetry Collector, which takes a kilobyte of disk for each span) is killed and started again. Each of wrk's connections pauses between its requests: without a pause the machine is
busy, and what the receiver cannot take is dropped all the time. Three witnesses are compared: the access logs, which have the ids of each request's
span; the receiver's journal; and the final sums of the workers in the error logs. It has failed if

  - a worker or master crashed, or a tool has found a fault; or a request was not answered with 200, or was
    broken off, but for those that wrk leaves behind when it ends;
  - the logs have not the requests that wrk has counted;
  - a request has not a span for itself and one for its call, or a worker's sums do not add up;
  - more spans are counted as delivered than the journal has; or fewer, but for those that are counted as lost
    after they were sent: a receiver that is killed, or slow, has batches whose acknowledgment did not arrive;
  - a trace of which all spans have arrived is not one tree over both servers.
"""
import argparse
import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

def options_of(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda name: pathlib.Path(name).resolve())
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--asan", action="store_true")
    parser.add_argument("--valgrind", action="store_true")
    parser.add_argument("--collector", action="store_true")
    parser.add_argument("--pause-ms", type=int, default=4)
    parser.add_argument("--reload-every", type=int, default=10)
    parser.add_argument("--kill-every", type=int, default=30)
    parser.add_argument("--keep", type=pathlib.Path, help="a new folder for the logs and the journal")
    return parser.parse_args(words)


OPTIONS = options_of(sys.argv[1:])
os.environ.setdefault("BLACKBOX_PROGRAMS", str(OPTIONS.build))
import scene  # which finds harness

AWAY_S = 3  # how long there is no receiver
CONNECTIONS = 16


class Receiver:
    """journal.py in a process of its own, which can be killed."""

    def __init__(self, folder):
        port = scene.free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        self.command = [sys.executable, str(pathlib.Path(__file__).with_name("journal.py")), str(port), str(folder)]
        self.kills = 0

    def start(self):
        self.process = subprocess.Popen(self.command)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.kills += 1

    def is_away(self):
        return self.process.poll() is not None

    end = kill


class Collector:
    """The OpenTelemetry Collector (scripts/setup.sh --collector); its files become a journal in the end."""

    def __init__(self, folder):
        sys.path.append(str(scene.ROOT / "tests/support"))
        import receiver
        self.real = receiver.Collector(folder)
        self.spans_of = receiver.spans_of
        self.folder, self.endpoint, self.start, self.kills = folder, self.real.endpoint, self.real.start, 0

    def kill(self):
        self.real.kill()
        self.kills += 1

    def is_away(self):
        return self.real.process.poll() is not None

    def end(self):
        self.real.stop()
        (self.folder / "acknowledged").write_text("collector\n")
        with open(self.folder / "spans", "w") as spans:
            for request in self.real.requests():
                for group, _, span in self.spans_of(request):
                    [service] = [held["value"]["stringValue"] for held in group["resource"]["attributes"]
                                 if held["key"] == "service.name"]
                    kind = {2: "server", 3: "client"}[span["kind"]]
                    spans.write(f"{span['traceId']} J {span['spanId']} {span.get('parentSpanId') or '-'} {kind} "
                                f"{service} collector\n")


def storm(folder):
    """The run itself: (front and back, what wrk says); the logs are then in the folder."""
    receiver = (Collector if OPTIONS.collector else Receiver)(folder)
    receiver.start()
    endpoint = receiver.endpoint
    log = "access_log access.log ids buffer=64k;"
    try:
        with scene.Nginx(endpoint, f"{log} location / {{ return 200 ok; }}", workers=2, service="back",
                         http="log_format ids '$otel_trace_id B $otel_span_id $status';") as back, \
             scene.Nginx(endpoint, f'{log} location / {{ proxy_pass http://back; proxy_http_version 1.1; '
                         'proxy_set_header Connection ""; }', workers=2,
                         http="log_format ids '$otel_trace_id F $otel_span_id $status';"
                         f"upstream back {{ server 127.0.0.1:{back.port}; keepalive 16; }}") as front:
            (folder / "pause.lua").write_text(f"function delay() return {OPTIONS.pause_ms} end")
            wrk = subprocess.Popen(
                ["wrk", "-t", "1", "-c", str(CONNECTIONS), "-d", f"{OPTIONS.seconds}s", "--timeout", "60s",
                 *["-s", str(folder / "pause.lua")] * bool(OPTIONS.pause_ms), f"http://127.0.0.1:{front.port}/"], stdout=subprocess.PIPE, text=True)
            reloads = blow((front, back), receiver, wrk)
            if receiver.is_away():
                receiver.start()
            for nginx in front, back:
                nginx.quit()
                for name in "error.log", "access.log", "sanitizer", "valgrind":
                    for path in nginx.path.glob(f"{name}*"):
                        shutil.copy(path, folder / f"{nginx.service}-{path.name}")
            print(f"reloads of both {reloads}, receiver killed {receiver.kills} times")
            return (front, back), wrk.stdout.read()
    finally:
        receiver.end()


def blow(servers, receiver, wrk):
    """Until wrk ends: reloads, and a receiver that comes and goes. The number of reloads."""
    start = time.monotonic()
    next_reload, next_kill, back_at, reloads = OPTIONS.reload_every, OPTIONS.kill_every, 0, 0
    while wrk.poll() is None:
        time.sleep(0.05)
        now = time.monotonic() - start
        if now >= next_reload:
            for nginx in servers:
                nginx.send(signal.SIGHUP)
            next_reload += OPTIONS.reload_every
            reloads += 1
        if now >= next_kill:
            receiver.kill()
            next_kill += OPTIONS.kill_every
            back_at = now + AWAY_S
        if receiver.is_away() and now >= back_at:
            receiver.start()
    return reloads


class Account:
    """The three witnesses, and what is wrong between them."""

    def __init__(self, folder):
        self.wrong = []
        self.folder = folder
        self.requests = {"F": 0, "B": 0}  # in the access logs
        self.broken_off = 0
        self.received = self.doubly = self.unacknowledged = 0
        self.trees = self.incomplete = self.not_two = 0

    def check(self, is_right, what):
        if not is_right:
            self.wrong.append(what)

    def read(self):
        """Access logs and journal, sorted by trace."""
        acknowledged = set((self.folder / "acknowledged").read_text().split())
        files = [str(self.folder / name) for name in ("front-access.log", "back-access.log", "spans")]
        with subprocess.Popen(["sort", "-S", "300M", *files], stdout=subprocess.PIPE, text=True,
                              env=dict(os.environ, LC_ALL="C", TMPDIR=str(self.folder))) as sort:
            lines = (line.split() for line in sort.stdout)
            for trace, group in itertools.groupby(lines, lambda words: words[0]):
                self.add_trace(trace, group, acknowledged)

    def add_trace(self, trace, group, acknowledged):
        logged = {"F": [], "B": []}
        spans, sure = {}, set()
        for _, kind, span, *rest in group:
            if kind != "J":
                logged[kind].append(span)
                self.requests[kind] += 1
                self.broken_off += rest == ["499"]
                self.check(rest in (["200"], ["499"]), f"trace {trace}: status {rest}")
                continue
            self.doubly += span in spans
            spans[span] = rest[:3]
            if rest[3] in acknowledged:
                sure.add(span)
        self.received += len(spans)
        self.unacknowledged += len(spans) - len(sure)
        self.check_tree(trace, logged["F"], logged["B"], spans)

    def check_tree(self, trace, front, back, spans):
        if len(front) != 1:
            self.wrong.append(f"trace {trace}: {len(front)} requests")
            return
        calls = [span for span, (_, kind, _) in spans.items() if kind == "client"]
        if not set(front + back) <= set(spans) or not calls:
            self.incomplete += 1
            return
        if not back:  # broken off before the second server had it
            self.not_two += 1
        self.trees += 1
        wanted = {front[0]: ["-", "server", "front"], calls[0]: [front[0], "client", "front"]}
        wanted.update({span: [calls[0], "server", "back"] for span in back})
        self.check(spans == wanted, f"trace {trace}: no tree: {spans}")

    def compare(self, wrk):
        """The access logs and the journal with the workers' sums and wrk."""
        completed = int(re.search(r"(\d+) requests in", wrk)[1])
        errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", wrk)
        errors = sum(map(int, errors.groups())) if errors else 0
        self.check(completed <= self.requests["F"] <= completed + CONNECTIONS + errors,
                   f"wrk has {completed} answers and {errors} errors, the log {self.requests['F']} requests")
        self.check(self.broken_off <= 2 * CONNECTIONS, f"{self.broken_off} requests were broken off")
        total = {}
        for name, created in ("front", 2 * self.requests["F"]), ("back", self.requests["B"]):
            sums = scene.sums_of((self.folder / f"{name}-error.log").read_text())
            for each in sums:
                lost = each.get("withheld", 0) + each.get("dropped", 0)
                self.check(each["open"] == each["unsampled"] == 0, f"open or unsampled: {each}")
                self.check(each["started"] == each["ended"] == each["delivered"] + lost, f"no sum: {each}")
                for name, number in each.items():
                    total[name] = total.get(name, 0) + number
            started = sum(each["started"] for each in sums)
            self.check(started == created, f"{started} spans started in {len(sums)} workers, not {created}")
        delivered = total["delivered"]
        sent = sum(total.get(name, 0) for name in ("unconfirmed", "retry_exhausted", "shutdown_timeout"))
        self.check(delivered <= self.received <= delivered + sent,
                   f"{delivered} spans delivered, and {sent} were lost when sent; received {self.received}")
        print(f"requests {completed} by wrk, {self.requests['F']} and {self.requests['B']} by the access logs, "
              f"{self.broken_off} broken off, {errors} errors of connections\n"
              f"spans: started {total['started']}, delivered {delivered}, dropped {total.get('dropped', 0)}, "
              f"withheld {total.get('withheld', 0)}\n"
              f"received {self.received}, and {self.doubly} once more; {self.received - delivered} of them are "
              f"counted as lost; {self.unacknowledged} were not acknowledged\n"
              f"trees checked {self.trees}, of these over one server {self.not_two}; "
              f"traces with spans missing {self.incomplete}")
        print("all sums of the workers:", ", ".join(f"{name} {number}" for name, number in total.items()))

    def look_for_crashes(self, servers):
        for nginx in servers:
            self.check(nginx.process.returncode == 0, f"nginx ended with {nginx.process.returncode}")
        for path in self.folder.glob("*-error.log"):
            for line in re.findall(r".*(?:\[alert\]|\[crit\]|\[emerg\]|on signal).*", path.read_text()):
                self.check(False, line)
        for path in self.folder.glob("*-sanitizer*"):
            self.check(False, path.read_text())
        for path in self.folder.glob("*-valgrind*"):
            text = path.read_text()
            self.check("ERROR SUMMARY: 0 errors" in text, text[:2000])


def main():
    scene.skip_without("wrk", *["valgrind"] * OPTIONS.valgrind)
    scene.Nginx.set_module(OPTIONS.build, "address,undefined" if OPTIONS.asan else "", "nginx-storm")
    scene.Nginx.is_under_valgrind = OPTIONS.valgrind
    if OPTIONS.keep:
        OPTIONS.keep.mkdir()
    with tempfile.TemporaryDirectory(prefix="otel-storm-") as folder:
        account = Account((OPTIONS.keep or pathlib.Path(folder)).resolve())
        servers, wrk = storm(account.folder)
        account.read()
        account.look_for_crashes(servers)
        account.compare(wrk)
    for what in account.wrong[:20]:
        print("wrong:", what)
    print(f"{len(account.wrong)} things are wrong")
    sys.exit(1 if account.wrong else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The collector configurations of examples/collector do what docs/SCALING.md and
docs/PROFILING.md say.

usage: collector_examples.py PATH-OF-FROM_LOG

Always: they are made of components that the collector of scripts/receivers has, and agree with
the document and with otel-c. With OTEL_TEST_LONG, where that collector is: each is valid for it,
and an agent and two gateways, one of which comes late, bring the traces of four programs to two
backends: each whole trace to one of them, all that have to be kept, and what is counted adds up.
"""
import collections
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support")]
import receiver  # noqa: E402

ROOT = HERE.parents[1]
EXAMPLES = ROOT / "examples/collector"
TRACES, PERCENT, PATIENCE_S = 3000, 10, 60
SETS = [["agent.yaml"], ["agent.yaml", "agent_unix.yaml"], ["gateway.yaml"], ["agent_kafka.yaml"],
        ["gateway.yaml", "gateway_kafka.yaml"], ["profiles.yaml"]]
GATES = {"profiles.yaml": ["--feature-gates=service.profilesSupport"]}
DOCUMENTS = {"profiles.yaml": "PROFILING.md"}  # the others: SCALING.md


# --- what can be seen without a collector ---

def components(text):
    """(kind, type) of each component that a configuration or a manifest names."""
    section = None
    for line in text.splitlines():
        top = re.match(r"(\w+):", line)
        section = top[1] if top else section
        used = re.match(r"  (\w+)(/\w+)?:", line)
        if used and section in ("receivers", "processors", "exporters", "extensions"):
            name = used[1].replace("_", "")
            yield section, "otlp" if name == "otlpgrpc" else name  # as its module is called
        module = re.match(r"  - gomod: \S+/(\w+?)(receiver|processor|exporter|extension)? v", line)
        if module and section != "providers":
            yield section, module[1]


def check_texts():
    manifest = (ROOT / "scripts/receivers/otelcol-contrib-builder.yaml").read_text()
    known = set(components(manifest))
    files = sorted(EXAMPLES.glob("*.yaml"))
    assert {file.name for file in files} == {name for names in SETS for name in names}
    for file in files:
        used = list(components(file.read_text()))
        assert used, f"{file} has no components"
        for one in used:
            assert one in known, f"{file.name}: {one} is not in the collector of the tests"
        document = DOCUMENTS.get(file.name, "SCALING.md")
        assert f"collector/{file.name})" in (ROOT / "docs" / document).read_text(), \
            f"{document} does not know {file.name}"
    print(f"{len(files)} configurations, {len(known)} components")


# --- collectors ---

def contrib():
    return receiver.find("contrib-otelcol-*/otelcol", "--collector-contrib")


def with_variables(**variables):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("OTEL_")}
    environment.update({name: str(value) for name, value in variables.items()})
    return environment


def arguments(names):
    return [part for name in names
            for part in ["--config", str(EXAMPLES / name)] + GATES.get(name, [])]


def validate(folder):
    for names in SETS:
        result = subprocess.run([contrib(), "validate", *arguments(names)], capture_output=True,
                                text=True, env=with_variables(GATEWAY_QUEUE=folder / "q"))
        assert result.returncode == 0, f"{names}: {result.stdout}{result.stderr}"
    print(f"{len(SETS)} valid sets of configurations")


class Example:
    """A collector with some of the examples, ready when its metrics can be read."""

    def __init__(self, folder, name, configs, metrics_port, **variables):
        self.metrics_port = metrics_port
        log = folder / f"{name}.log"
        with open(log, "wb") as out:
            self.process = subprocess.Popen([contrib(), *arguments(configs)], stdout=out,
                                            stderr=out, env=with_variables(**variables))
        receiver._running.append(self.process)
        wait_for(lambda: self.is_ready(log), f"{name} to start")

    def is_ready(self, log):
        assert self.process.poll() is None, log.read_text(errors="replace")
        try:
            self.metrics()
            return True
        except OSError:
            return False

    def metrics(self):
        """Sums by name and, of the few that are told apart by it, `sampled`."""
        sums = collections.Counter()
        url = f"http://127.0.0.1:{self.metrics_port}/metrics"
        with urllib.request.urlopen(url, timeout=5) as page:
            for line in page.read().decode().splitlines():
                match = re.match(r"otelcol_(\w+?)(?:_total)?(?:\{(.*)\})? ([0-9.e+]+)$", line)
                if match:
                    sampled = re.search(r'sampled="(\w+)"', match[2] or "")
                    sums[match[1] + (f".{sampled[1]}" if sampled else "")] += float(match[3])
        return sums

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)


def wait_for(condition, what):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, f"waited in vain for {what}"
        time.sleep(0.1)


def gateway(folder, name, grpc_port, metrics_port, backend):
    return Example(folder, name, ["gateway.yaml"], metrics_port,
                   GATEWAY_GRPC=f"127.0.0.1:{grpc_port}", GATEWAY_METRICS_PORT=metrics_port,
                   GATEWAY_QUEUE=folder / f"{name}.queue", GATEWAY_DECISION_WAIT="3s",
                   GATEWAY_PERCENT=PERCENT, BACKEND=backend.endpoint)


# --- traces ---

class Trace:
    """Some lines of access logs, each of another program."""

    def __init__(self, number):
        self.id = f"{(number * 0x9e3779b97f4a7c15 + 1) % 2 ** 128:032x}"
        self.spans = 1 + number % 6
        self.has_error = number % 10 == 0
        self.is_slow = number % 10 == 1
        self.ended_s = time.time()

    def lines(self):
        for i in range(self.spans):
            is_last = i == self.spans - 1
            took_s = 0.9 if self.is_slow and is_last else 0.020
            status = 503 if self.has_error and is_last else 200
            yield (f"{self.ended_s:.3f} {took_s} {status} GET /{i} "
                   f"00-{self.id}-{i + 1:016x}-01\n")


def send(program, traces, ways):
    logs = ["" for _ in ways]
    for number, trace in enumerate(traces):
        for i, line in enumerate(trace.lines()):
            logs[(number + i) % len(logs)] += line
    running = [subprocess.Popen([program], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=with_variables(**way)) for way in ways]
    receiver._running.extend(running)
    spans = sum(trace.spans for trace in traces)
    delivered = 0
    for process, log in zip(running, logs):
        _, said = process.communicate(log, timeout=PATIENCE_S)
        numbers = re.search(r"delivered ([0-9,]+), dropped 0;", said)
        assert process.returncode == 0 and numbers, said
        delivered += int(numbers[1].replace(",", ""))
    assert delivered == spans, f"{delivered} of {spans} were delivered to the agent"
    return spans


def traces_of(backend):
    """How often each span of each trace has arrived."""
    traces = collections.defaultdict(collections.Counter)
    for request in backend.requests():
        for _, _, span in receiver.spans_of(request):
            traces[span["traceId"]][span["parentSpanId"]] += 1
    return traces


def check_arrived(traces, arrived):
    both = set(arrived[0]) & set(arrived[1])
    assert not both, f"{len(both)} traces have gone to both gateways"
    for one in arrived:
        share = len(one) / sum(map(len, arrived))
        assert 0.35 < share < 0.65, f"one gateway has {share:.0%} of the traces"
    kept_others = others = spans = 0
    for trace in traces:
        got = arrived[0].get(trace.id) or arrived[1].get(trace.id)
        must_be_kept = trace.has_error or trace.is_slow
        others += not must_be_kept
        kept_others += got is not None and not must_be_kept
        assert got is not None or not must_be_kept, f"trace {trace.id} is not there"
        if got is not None:
            assert len(got) == trace.spans and set(got.values()) == {1}, f"{trace.id}: {got}"
            spans += trace.spans
    share = 100 * kept_others / others
    assert PERCENT - 4 < share < PERCENT + 4, f"{share:.1f} % of the others were kept"
    print(f"{len(traces)} traces, of the {others} that could be dropped {share:.1f} % were kept")
    return spans


def ways_to(http_port, grpc_port, path):
    """Settings of programs, one for each way to an agent."""
    http = f"http://127.0.0.1:{http_port}"
    return [{"OTEL_EXPORTER_OTLP_ENDPOINT": http},
            {"OTEL_EXPORTER_OTLP_ENDPOINT": http, "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"},
            {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{grpc_port}",
             "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            {"OTEL_EXPORTER_OTLP_ENDPOINT": f"unix://{path}"}]


def run_all(folder, program):
    backends = [receiver.Collector(folder / name) for name in ("one", "two")]
    for backend in backends:
        backend.folder.mkdir()
        backend.start()
    http_port, grpc_port, agent_metrics, *ports = receiver.free_ports(7)
    gateways = [gateway(folder, "gateway-1", ports[0], ports[2], backends[0])]
    agent = Example(folder, "agent", ["agent.yaml", "agent_unix.yaml"], agent_metrics,
                    AGENT_HTTP=f"127.0.0.1:{http_port}", AGENT_GRPC=f"127.0.0.1:{grpc_port}",
                    AGENT_METRICS_PORT=agent_metrics, GATEWAY_INSECURE="true",
                    AGENT_SOCKET=folder / "otlp.sock", GATEWAY_1=f"127.0.0.1:{ports[0]}",
                    GATEWAY_2=f"127.0.0.1:{ports[1]}")
    traces = [Trace(number) for number in range(TRACES)]
    spans = send(program, traces, ways_to(http_port, grpc_port, folder / "otlp.sock"))
    gateways.append(gateway(folder, "gateway-2", ports[1], ports[3], backends[1]))

    def accepted():
        return sum(one.metrics()["receiver_accepted_spans"] for one in gateways)

    wait_for(lambda: accepted() >= spans, "the gateways to have all spans")
    assert accepted() == spans, f"the gateways have {accepted()} of {spans} spans"
    assert agent.metrics()["receiver_accepted_spans"] == spans
    decided = "processor_tail_sampling_global_count_traces_sampled"
    wait_for(lambda: sum(one.metrics()[f"{decided}.{answer}"] for one in gateways
                         for answer in ("true", "false")) >= TRACES, "all decisions")
    kept = sum(one.metrics()[f"{decided}.true"] for one in gateways)

    def sent():
        return sum(one.metrics()["exporter_sent_spans"] for one in gateways)

    arrived = []

    def is_all_there():
        arrived[:] = [traces_of(backend) for backend in backends]
        return sum(map(len, arrived)) >= kept

    wait_for(is_all_there, "the backends to have all traces that are kept")
    there = check_arrived(traces, arrived)
    assert sum(map(len, arrived)) == kept, f"{sum(map(len, arrived))} traces, {kept} were kept"
    wait_for(lambda: sent() >= there, "the gateways to have counted all")
    assert sent() == there, f"{there} spans at the backends, {sent()} were sent"
    for one in [agent, *gateways, *backends]:
        one.stop()
    print(f"{spans} spans: {spans} at the agent, {spans} at the gateways, {there} at the backends")


def main():
    check_texts()
    if not os.environ.get("OTEL_TEST_LONG"):
        return
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        validate(folder)
        run_all(folder, sys.argv[1])


if __name__ == "__main__":
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What programs that trace cost the one collector that all of them send to.

usage: scaling.py PATH-OF-LOAD COLLECTOR [--seconds N] [--case PROGRAMSxSPANS_PER_SECOND]...

Starts examples/collector/agent.yaml; examples/collector/gateway.yaml, once for both gateways;
behind it a backend that takes everything and keeps nothing; and then the programs of each case.
Measured is the CPU time of agent and gateway, each for itself, so that it does not matter much
that all share the machine. OTEL_EXPORTER_OTLP_* reach the programs.

Prints a table and, last, what a plane through the cases says of the agent: CPU time for each span
and for each request.
"""
import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DECISION_WAIT_S = 5
CASES = ["0x0", "2x10000", "20x500", "100x20"]
BACKEND = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{debug: {{verbosity: basic, sampling_initial: 1, sampling_thereafter: 1000000}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [debug]}}}}
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def start(collector, config, port, log, **variables):
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    with open(log, "wb") as out:
        process = subprocess.Popen([collector, "--config", str(config)], env=environment,
                                   stdout=out, stderr=out)
    for _ in range(200):
        time.sleep(0.1)
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return process
        except OSError:
            if process.poll() is not None:
                break
    process.kill()
    sys.exit(f"the collector does not start:\n{log.read_text(errors='replace')}")


def cpu_s(pid):
    """CPU time of a process so far, by its clock (clock_getcpuclockid)."""
    return time.clock_gettime((~pid << 3) | 2)


def memory_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0


def run(load, agent, gateway, endpoint, case, seconds):
    """One case: CPU seconds of agent and gateway, and the spans and requests that they took."""
    count, rate = (int(part) for part in case.split("x"))
    environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
                   "OTEL_BSP_MAX_QUEUE_SIZE": "20000"}
    before, gateway_before = cpu_s(agent), cpu_s(gateway)
    began = time.monotonic()
    programs = [subprocess.Popen([load, str(seconds), str(rate)], env=environment, text=True,
                                 stdout=subprocess.PIPE) for _ in range(count)]
    if not programs:
        time.sleep(seconds)
    reports = [json.loads(program.communicate()[0]) for program in programs]
    took = time.monotonic() - began
    gateway_memory = memory_mib(gateway)
    time.sleep(DECISION_WAIT_S + 2)  # for what is not decided and sent yet
    spans = sum(report["delivered"] for report in reports)
    lost = sum(report["ended"] for report in reports) - spans
    requests = sum(report["batches"] for report in reports)
    return {"programs": count, "rate": rate, "spans": spans, "lost": lost, "requests": requests,
            "took": took, "all": time.monotonic() - began, "cpu": cpu_s(agent) - before,
            "memory": memory_mib(agent), "gateway": cpu_s(gateway) - gateway_before,
            "gateway_memory": gateway_memory}


def print_table(rows):
    print(f"{'programs':>8} {'spans/s':>8} {'spans/request':>13} {'agent µs/span':>13} {'MiB':>5} "
          f"{'gateway µs/span':>15} {'MiB':>5} {'lost':>5}")
    for row in rows:
        agent, gateway = (f"{row[who] * 1e6 / row['spans']:.2f}" if row["spans"] else "-"
                          for who in ("cpu", "gateway"))
        print(f"{row['programs']:>8} {row['spans'] / row['took']:>8.0f} "
              f"{row['spans'] / max(row['requests'], 1):>13.0f} {agent:>13} {row['memory']:>5.0f} "
              f"{gateway:>15} {row['gateway_memory']:>5.0f} {row['lost']:>5}")


def fit(rows):
    """CPU time of a span and of a request, least squares, without what the agent takes idle."""
    idle = next((row["cpu"] / row["all"] for row in rows if row["programs"] == 0), 0)
    points = [(row["spans"], row["requests"], row["cpu"] - idle * row["all"])
              for row in rows if row["spans"]]
    ss = sum(s * s for s, _, _ in points)
    sr = sum(s * r for s, r, _ in points)
    rr = sum(r * r for _, r, _ in points)
    sc = sum(s * c for s, _, c in points)
    rc = sum(r * c for _, r, c in points)
    determinant = ss * rr - sr * sr
    if len(points) < 2 or determinant == 0:
        return
    span, request = (sc * rr - rc * sr) / determinant, (rc * ss - sc * sr) / determinant
    print(f"agent: idle {idle:.4f} cores; {span * 1e6:.2f} µs a span and {request * 1e6:.0f} µs a request")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("load")
    parser.add_argument("collector")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--case", action="append")
    options = parser.parse_args()
    backend_port, gateway_port, http_port, grpc_port, *metrics_ports = free_ports(6)
    examples = ROOT / "examples/collector"
    running = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "backend.yaml").write_text(BACKEND.format(port=backend_port))
        try:
            running.append(start(options.collector, folder / "backend.yaml", backend_port,
                                 folder / "backend.log"))
            gateway = f"127.0.0.1:{gateway_port}"
            running.append(start(options.collector, examples / "gateway.yaml", gateway_port,
                                 folder / "gateway.log", GATEWAY_GRPC=gateway,
                                 GATEWAY_QUEUE=folder / "queue",
                                 GATEWAY_DECISION_WAIT=f"{DECISION_WAIT_S}s",
                                 GATEWAY_METRICS_PORT=metrics_ports[0],
                                 BACKEND=f"http://127.0.0.1:{backend_port}"))
            running.append(start(options.collector, examples / "agent.yaml", http_port,
                                 folder / "agent.log", GATEWAY_1=gateway,
                                 GATEWAY_2=f"localhost:{gateway_port}", GATEWAY_INSECURE="true",
                                 AGENT_HTTP=f"127.0.0.1:{http_port}",
                                 AGENT_GRPC=f"127.0.0.1:{grpc_port}",
                                 AGENT_METRICS_PORT=metrics_ports[1]))
            grpc = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc"
            endpoint = f"http://127.0.0.1:{grpc_port if grpc else http_port}"
            rows = [run(options.load, running[2].pid, running[1].pid, endpoint, case,
                        options.seconds) for case in options.case or CASES]
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait(timeout=60)
    print_table(rows)
    fit(rows)


if __name__ == "__main__":
    main()

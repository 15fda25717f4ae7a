#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What programs that trace cost the one collector that all of them send to.

usage: scaling.py PATH-OF-LOAD COLLECTOR [--seconds N] [--case PROGRAMSxSPANS_PER_SECOND]...

Starts examples/collector/agent.yaml, with a second collector in the place of both gateways that
takes everything and keeps nothing, and then programs of each case. Measured is the CPU time of
the agent alone, so it does not matter much that all share the machine; it is given by span, and
by request. OTEL_EXPORTER_OTLP_* reach the programs.

Prints a table and, last, what a line through the cases says: CPU time for each span and each request.
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
CASES = ["0x0", "2x10000", "20x500", "100x20"]
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
GATEWAY = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:{port}", max_recv_msg_size_mib: 64}}}}}}}}
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
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def memory_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0


def run(load, agent, endpoint, case, seconds):
    """One case: CPU seconds of the agent, spans and requests that it took."""
    count, rate = (int(part) for part in case.split("x"))
    environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
                   "OTEL_BSP_MAX_QUEUE_SIZE": "20000"}
    before = cpu_s(agent)
    began = time.monotonic()
    programs = [subprocess.Popen([load, str(seconds), str(rate)], env=environment, text=True,
                                 stdout=subprocess.PIPE) for _ in range(count)]
    if not programs:
        time.sleep(seconds)
    reports = [json.loads(program.communicate()[0]) for program in programs]
    time.sleep(1)  # for what the agent still has to send
    took = time.monotonic() - began
    spans = sum(report["delivered"] for report in reports)
    lost = sum(report["ended"] for report in reports) - spans
    requests = sum(report["batches"] for report in reports)
    return {"programs": count, "rate": rate, "spans": spans, "lost": lost, "requests": requests,
            "took": took, "cpu": cpu_s(agent) - before, "memory": memory_mib(agent),
            "sender": sum(report["cpu_us"] for report in reports)}


def print_table(rows):
    print(f"{'programs':>8} {'spans/s':>8} {'spans/request':>13} {'agent µs/span':>13} "
          f"{'cores':>6} {'MiB':>5} {'program µs/span':>15} {'lost':>5}")
    for row in rows:
        spans = max(row["spans"], 1)
        print(f"{row['programs']:>8} {row['spans'] / row['took']:>8.0f} "
              f"{row['spans'] / max(row['requests'], 1):>13.0f} {row['cpu'] * 1e6 / spans:>13.2f} "
              f"{row['cpu'] / row['took']:>6.3f} {row['memory']:>5.0f} "
              f"{row['sender'] / spans:>15.2f} {row['lost']:>5}")


def fit(rows):
    """CPU time of a span and of a request, least squares, without what the agent takes idle."""
    idle = next((row["cpu"] / row["took"] for row in rows if row["programs"] == 0), 0)
    points = [(row["spans"], row["requests"], row["cpu"] - idle * row["took"])
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
    print(f"idle {idle:.4f} cores; {span * 1e6:.2f} µs a span and {request * 1e6:.0f} µs a request")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("load")
    parser.add_argument("collector")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--case", action="append")
    options = parser.parse_args()
    gateway_port, http_port, grpc_port, metrics_port = free_ports(4)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "gateway.yaml").write_text(GATEWAY.format(port=gateway_port))
        gateway = start(options.collector, folder / "gateway.yaml", gateway_port,
                        folder / "gateway.log")
        agent = None
        try:
            to = f"127.0.0.1:{gateway_port}"
            agent = start(options.collector, ROOT / "examples/collector/agent.yaml", http_port,
                          folder / "agent.log", GATEWAY_1=to, GATEWAY_2=f"localhost:{gateway_port}",
                          GATEWAY_INSECURE="true", AGENT_HTTP=f"127.0.0.1:{http_port}",
                          AGENT_GRPC=f"127.0.0.1:{grpc_port}", AGENT_METRICS_PORT=metrics_port)
            grpc = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc"
            endpoint = f"http://127.0.0.1:{grpc_port if grpc else http_port}"
            rows = [run(options.load, agent.pid, endpoint, case, options.seconds)
                    for case in options.case or CASES]
        finally:
            for process in (agent, gateway):
                if process is not None:
                    process.terminate()
                    process.wait(timeout=30)
    print_table(rows)
    fit(rows)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs end while they trace, in every way there is.

    exit_paths.py CHILD MAKE_CERTIFICATES [WAY SHUTDOWN PEER]

Runs exit_paths_child.c in all combinations of how it ends, when it calls otel_shutdown and what its
exporter has to do with; or in one of them. Checked of each: its exit status or signal; that it ends at
all; that nothing is on stderr that is not a line of our log, no report of a sanitizer or of the C library
above all. With OTEL_TEST_LONG=1 each way and each shutdown meets each peer, 55 times.
"""
import concurrent.futures
import itertools
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "blackbox"), str(HERE.parent / "support")]
import receiver  # noqa: E402
import servers  # noqa: E402

LONG = 55  # times all combinations: over 10,000 programs
HANGS_SECONDS = 120  # whoever takes so long hangs; it has no meaning as a speed
STATUS = 7
# Of each way the status; whether it runs handlers of atexit or at_quick_exit, and destructors.
WAYS = {
    "return": (STATUS, True, True), "exit": (STATUS, True, True), "quick_exit": (STATUS, True, False),
    "_exit": (STATUS, False, False), "pthread_exit": (0, True, True),
    "abort": (-signal.SIGABRT, False, False), "terminated": (-signal.SIGTERM, False, False),
    "exit_traced": (STATUS, True, True), "exit_in_exporter": (STATUS, True, True),
}
SHUTDOWNS = ("never", "before", "concurrent", "atexit_early", "atexit_late", "destructor")


def peers(certificates):
    """Endpoints by name."""
    takes, context = servers.says(200), servers.tls(certificates.server.parent, "server")
    silent, plain = servers.listen(servers.never_answers), servers.http_server(takes)
    return {"answers": f"http://127.0.0.1:{plain}",
            "answers_tls": f"https://127.0.0.1:{servers.http_server(takes, context)}",
            "never_answers": f"http://127.0.0.1:{silent}", "refuses": f"http://127.0.0.1:{servers.unused_port()}",
            "silent_tls": f"https://127.0.0.1:{silent}", "plain": f"https://127.0.0.1:{plain}"}


def cases(peer_names, is_long):
    """Without combinations that are the same as another one."""
    for (way, name), shutdown, peer in itertools.product(enumerate(WAYS), SHUTDOWNS, peer_names):
        _, runs_handlers, runs_destructors = WAYS[name]
        if not runs_handlers and shutdown.startswith("atexit"):
            continue
        if not runs_destructors and shutdown == "destructor":
            continue
        # A program that leaves main has to shut the SDK down itself.
        if name == "pthread_exit" and shutdown not in ("before", "concurrent"):
            continue
        if name == "exit_in_exporter":  # its own; one whose turn does not come any more would not end it
            if peer == peer_names[0] and shutdown not in ("before", "concurrent"):
                yield name, shutdown, "-"
            continue
        # Not at length, each way and each shutdown meets each peer, but not both at once.
        if is_long or (way + SHUTDOWNS.index(shutdown) + peer_names.index(peer)) % len(peer_names) in (0, 2):
            yield name, shutdown, peer


def fault_of(child, endpoints, authority, case):
    way, shutdown, peer = case
    endpoint, environment = endpoints.get(peer, "-"), dict(os.environ)
    if endpoint.startswith("https"):
        # OpenSSL loses what it keeps for threads that live when it takes itself apart: the leak checker
        # would report that.
        environment.update(OTEL_EXPORTER_OTLP_CERTIFICATE=str(authority),
                           ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
    with subprocess.Popen([child, way, shutdown, endpoint], env=environment, stdin=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as process:
        try:
            _, said = process.communicate(timeout=HANGS_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return f"{way}, shutdown {shutdown}, peer {peer}: hangs"
    is_ours = all(line.startswith(b"otel-c: ") for line in said.splitlines())
    if process.returncode == WAYS[way][0] and is_ours:
        return None
    return f"{way}, shutdown {shutdown}, peer {peer}: {process.returncode}, stderr:\n{said.decode(errors='replace')}"


def main():
    child, make_certificates, *only = sys.argv[1:]
    is_long = os.environ.get("OTEL_TEST_LONG") == "1"
    with tempfile.TemporaryDirectory(prefix="exit_paths.") as folder:
        certificates = receiver.Certificates(folder, make_certificates)
        endpoints = peers(certificates)
        chosen = [tuple(only)] if only else list(cases(list(endpoints), is_long)) * (LONG if is_long else 1)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            faults = [fault for fault in pool.map(
                lambda case: fault_of(child, endpoints, certificates.authority, case), chosen) if fault is not None]
    print(*faults, f"{len(chosen)} programs ended, {len(faults)} of them wrongly", sep="\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()

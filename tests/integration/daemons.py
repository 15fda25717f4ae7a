#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/DAEMONS.md, and its unit for systemd.

    daemons.py EXAMPLES [TEST...]     the directory in which examples/daemons were built

Each runs as it would on a server, and ends by the signals and in the ways that its section is about. What
arrives at a receiver is looked at, and what the programs say of their sums.
"""
import contextlib
import os
import pathlib
import pwd
import queue
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "blackbox")]
SOURCES = HERE.parents[1] / "examples/daemons"
EXAMPLES = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None
os.environ["BLACKBOX_PROGRAMS"] = str(EXAMPLES)
import harness  # noqa: E402
import servers  # noqa: E402

HANGS_SECONDS = 120
NEVER = "3600000"  # ms: no batch is exported but by a flush or the shutdown
ERROR = 2  # of a status


def environment(**settings):
    """That of this test, for the sanitizers, and no settings but these."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return {**env, **settings}


def to(receiver, **settings):
    return environment(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint, **settings)


def dead():
    return f"http://127.0.0.1:{servers.unused_port()}"


class Program:
    """One that runs, in a session of its own; its stderr is read line by line."""

    def __init__(self, *command, env, before=()):
        path = str(EXAMPLES / command[0])
        self.process = subprocess.Popen([*before, path, *map(str, command[1:])], env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
                                        start_new_session=True)
        self.said, self.news = [], queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.news.put(line)

    def wait_for(self, pattern):
        """The first line of its stderr, from where the last call ended, that has this."""
        while True:
            line = self.news.get(timeout=HANGS_SECONDS)
            self.said.append(line)
            if re.search(pattern, line):
                return line

    def ask(self, line):
        """A request on stdin; it is answered when this returns."""
        self.process.stdin.write(line + "\n")
        assert self.process.stdout.readline() == "done\n", self.said

    def send(self, number):
        self.process.send_signal(number)

    def end(self):
        """Closes its stdin, and waits until it has ended. Its status, and all of its stderr."""
        self.process.stdin.close()
        try:
            status = self.process.wait(HANGS_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise
        self.reader.join(HANGS_SECONDS)
        self.process.stdout.close()
        self.process.stderr.close()
        while not self.news.empty():
            self.said.append(self.news.get())
        return status, "".join(self.said)


def run(*command, env, before=()):
    return Program(*command, env=env, before=before).end()


class Client:
    """A connection of connection_process."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(HANGS_SECONDS)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rw")

    def ask(self, query):
        self.file.write(query + "\n")
        self.file.flush()
        return self.file.readline()

    def close(self):
        self.file.close()
        self.socket.close()


def names(spans):
    return sorted(span.name for span in spans)


def by_instance(receiver):
    """The spans of each service.instance.id."""
    found = {}
    for request in receiver.requests:
        for group in request.resource_spans:
            instance = harness.attributes(group.resource).get("service.instance.id")
            found.setdefault(instance, []).extend(s for scope in group.scope_spans for s in scope.spans)
    return found


class Daemons(harness.Case):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="daemons-", dir="/tmp")))

    def receiver(self, answer=None):
        return self.enterContext(harness.Receiver(answer))

    def busy_receiver(self):
        """One that takes nothing while it is busy."""
        receiver = self.receiver(lambda _: (503 if receiver.is_busy else 200, {}, b""))
        receiver.is_busy = True
        return receiver

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path


class ConnectionProcess(Daemons):
    def start(self, env):
        program = Program("connection_process", self.folder / "socket", env=env)
        while not stat.S_ISSOCK(self.mode()):
            self.assertIsNone(program.process.poll(), program.said)
        self.addCleanup(lambda: program.process.poll() is None and program.process.kill())
        return program

    def mode(self):
        with contextlib.suppress(OSError):
            return os.stat(self.folder / "socket").st_mode
        return 0

    def connect(self):
        """Once it listens; a socket that is bound does not yet."""
        while True:
            try:
                return Client(self.folder / "socket")
            except ConnectionRefusedError:
                continue

    def end(self, program):
        program.send(signal.SIGTERM)
        status, said = program.end()
        self.assertEqual(status, 0, said)
        return said

    def test_each_backend_is_an_instance_and_errors_leave_no_span_open(self):
        receiver = self.receiver()
        program = self.start(to(receiver))
        first, second = self.connect(), self.connect()
        self.assertEqual([first.ask("select"), first.ask("error"), first.ask("again")], ["OK\n", "ERROR\n", "OK\n"])
        self.assertEqual(second.ask("select"), "OK\n")
        for client, sums in (first, "delivered 6, dropped 0"), (second, "delivered 2, dropped 0"):
            client.close()
            self.assertIn(sums, program.wait_for("^backend "))
        self.end(program)

        instances = by_instance(receiver)
        self.assertEqual(sorted(map(len, instances.values())), [2, 6])
        for spans in instances.values():
            queries = {span.span_id: span for span in spans if span.name == "query"}
            self.assertEqual([span.parent_span_id for span in queries.values()], [b""] * len(queries))
            self.assertEqual(len({span.trace_id for span in queries.values()}), len(queries))
            for span in spans:
                if span.name == "execute":
                    query = queries.pop(span.parent_span_id)
                    jumps = harness.attributes(query)["db.query.text"] == "error"
                    self.assertEqual(span.status.code, ERROR if jumps else 0)
                    self.assertLessEqual(span.end_time_unix_nano, query.end_time_unix_nano)
            self.assertEqual(queries, {})

    def test_a_backend_that_calls_only_exit_loses_its_spans_and_no_other_does(self):
        receiver = self.receiver()
        program = self.start(to(receiver, OTEL_BSP_SCHEDULE_DELAY=NEVER))
        crashes, lives = self.connect(), self.connect()
        self.assertEqual([crashes.ask("before"), lives.ask("other")], ["OK\n", "OK\n"])
        self.assertEqual(crashes.ask("crash"), "")
        self.assertEqual(lives.ask("other"), "OK\n")
        lives.close()
        self.assertIn("delivered 4", program.wait_for("^backend "))
        crashes.close()
        self.end(program)
        texts = {harness.attributes(span).get("db.query.text") for span in receiver.spans()}
        self.assertEqual(texts, {"other", None})

    def test_the_end_of_the_server_is_one_of_its_backends(self):
        receiver = self.receiver()
        program = self.start(to(receiver, OTEL_BSP_SCHEDULE_DELAY=NEVER))
        clients = [self.connect() for _ in range(3)]
        for client in clients:
            self.assertEqual(client.ask("select"), "OK\n")
        said = self.end(program)
        self.assertEqual(len(re.findall("backend [0-9]+: ok: delivered 2, dropped 0", said)), 3, said)
        self.assertEqual(names(receiver.spans()), ["execute"] * 3 + ["query"] * 3)
        for client in clients:
            self.assertEqual(client.file.readline(), "")
            client.close()

    def test_a_backend_without_a_receiver_counts_what_it_loses(self):
        program = self.start(environment(OTEL_EXPORTER_OTLP_ENDPOINT=dead()))
        client = self.connect()
        client.ask("select")
        client.close()
        self.assertIn("dropped 2 (retry_exhausted 2)", program.wait_for("^backend "))
        self.end(program)


class ShortProgram(Daemons):
    CALLER = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"

    def test_its_span_is_below_the_callers(self):
        receiver = self.receiver()
        self.assertEqual(run("short_program", 7, env=to(receiver, TRACEPARENT=self.CALLER)), (0, ""))
        span, = receiver.spans()
        self.assertEqual((span.trace_id.hex(), span.parent_span_id.hex()), (self.CALLER[3:35], self.CALLER[36:52]))
        self.assertEqual(harness.attributes(receiver.resources()[0])["service.name"], "short")

    def test_what_it_leaves_on_disk_a_program_with_a_thread_sends(self):
        spool, receiver = self.folder / "spool", self.busy_receiver()
        spool.mkdir()
        env = to(receiver, OTEL_C_SPOOL_DIR=str(spool))
        status, said = run("short_program", env=env)
        self.assertEqual(status, 0)
        self.assertNotIn("not delivered", said)
        receiver.is_busy = False
        self.assertEqual(run("sums", env=env)[0], 0)
        self.assertEqual(names(receiver.spans()), ["sum up"])

    def test_a_wiped_environment_is_noticed(self):
        """Its default may be somebody's receiver: where that can be, it runs without a network."""
        alone = next((before for before in (["unshare", "-n"], ["unshare", "-rn"]) if shutil.which("unshare") and
                      subprocess.run([*before, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0), None)
        if alone is None:
            self.skipTest("no name space of its own for the network")
        libraries = {k: v for k, v in environment().items() if k.endswith("SAN_OPTIONS")}
        status, said = run("short_program", env=libraries, before=alone)
        self.assertEqual(status, 0)
        self.assertRegex(said, r"spans go to http://localhost:4318/v1/traces \(default\)")
        self.assertIn("its span was not delivered", said)


class Reload(Daemons):
    def start(self, *lines):
        settings = self.write("settings", " ".join(lines))
        return Program("reload", settings, env=environment(OTEL_BSP_SCHEDULE_DELAY=NEVER))

    def reload(self, program, *lines):
        self.write("settings", " ".join(lines))
        program.send(signal.SIGHUP)

    def test_a_reload_takes_new_settings_and_loses_nothing(self):
        former, new = self.receiver(), self.receiver()
        program = self.start(former.endpoint)
        program.ask("begin one")
        program.ask("end")
        self.reload(program, new.endpoint)
        self.assertIn("ok: started 1, delivered 1, dropped 0", program.wait_for("^before the reload"))
        program.ask("begin two")
        program.ask("end")
        self.reload(program, new.endpoint, "0")
        self.assertIn("ok: started 1, delivered 1, dropped 0", program.wait_for("^before the reload"))
        program.ask("begin three")
        program.ask("end")
        status, said = program.end()
        self.assertEqual(status, 0)
        self.assertRegex(said, "at the end: ok: started 1, .*unsampled 1")
        self.assertEqual((names(former.spans()), names(new.spans())), (["one"], ["two"]))

    def test_it_waits_for_an_open_request(self):
        former, new = self.receiver(), self.receiver()
        program = self.start(former.endpoint)
        program.ask("begin one")
        self.reload(program, new.endpoint)
        program.wait_for("the reload waits")
        program.ask("end")
        self.assertIn("ok: started 1, delivered 1, dropped 0", program.wait_for("^before the reload"))
        self.assertEqual(program.end()[0], 0)
        self.assertEqual((names(former.spans()), names(new.spans())), (["one"], []))

    def test_at_once_what_is_open_is_counted(self):
        receiver = self.receiver()
        program = self.start(receiver.endpoint)
        program.ask("begin one")
        self.reload(program, receiver.endpoint)
        program.wait_for("the reload waits")
        program.send(signal.SIGHUP)
        self.assertIn("ok: started 1, delivered 0, open 1, dropped 0", program.wait_for("^before the reload"))
        program.ask("end")
        program.ask("begin two")
        program.send(signal.SIGTERM)
        status, said = program.end()
        self.assertEqual(status, 0)
        self.assertIn("at the end: ok: started 1, delivered 0, open 1, dropped 0", said)
        self.assertEqual(receiver.spans(), [])

    def test_bad_settings_leave_the_server_without_telemetry_until_there_are_good_ones(self):
        receiver = self.receiver()
        program = self.start(receiver.endpoint, "0.5x")
        program.wait_for("telemetry is off")
        program.ask("begin one")
        program.ask("end")
        self.reload(program, receiver.endpoint)
        program.ask("neither")  # a turn of the loop, after which the signal has been obeyed
        program.ask("begin two")
        program.ask("end")
        status, said = program.end()
        self.assertEqual(status, 0)
        self.assertIn("at the end: ok: started 1, delivered 1, dropped 0", said)
        self.assertEqual(names(receiver.spans()), ["two"])


class Sums(Daemons):
    def test_a_signal_shows_them_and_the_end_too(self):
        receiver = self.receiver()
        program = Program("sums", env=to(receiver, OTEL_BSP_SCHEDULE_DELAY=NEVER))
        for _ in range(3):
            program.ask("work")
        program.send(signal.SIGUSR1)
        self.assertIn("started 3, ended 3: delivered 0, queued 3, dropped 0", program.wait_for("^sums"))
        program.send(signal.SIGTERM)
        status, said = program.end()
        self.assertEqual(status, 0)
        self.assertIn("at the end: started 3, ended 3: delivered 3, dropped 0", said)
        self.assertEqual(len(receiver.spans()), 3)

    def test_losses_are_an_alarm_once(self):
        receiver = self.receiver(lambda _: (400, {}, b""))
        program = Program("sums", env=to(receiver, OTEL_BSP_SCHEDULE_DELAY="1"))
        program.ask("work")
        self.assertIn("dropped 1 (permanent_error 1)", program.wait_for("^ALARM"))
        status, said = program.end()
        self.assertEqual((status, said.count("ALARM")), (1, 1))

    def test_a_crash_says_which_trace_it_was_in(self):
        receiver = self.receiver()
        program = Program("sums", env=to(receiver, OTEL_BSP_SCHEDULE_DELAY=NEVER))
        program.ask("work")
        program.process.stdin.write("crash\n")
        status, said = program.end()
        self.assertEqual(status, -signal.SIGABRT)
        self.assertRegex(said, "crashed in trace (?!0{32})[0-9a-f]{32}\n")
        self.assertEqual(receiver.spans(), [])


class HelperProcess(Daemons):
    def test_helpers_are_in_the_trace_of_the_request(self):
        receiver = self.receiver()
        self.assertEqual(run("helper_process", EXAMPLES / "short_program", env=to(receiver)), (0, ""))
        request, = [span for span in receiver.spans() if span.name == "request"]
        below = [span for span in receiver.spans() if span is not request]
        self.assertEqual(names(below), ["sum up", "write file", "write file"])
        self.assertEqual({span.parent_span_id for span in below}, {request.span_id})
        self.assertEqual({span.trace_id for span in below}, {request.trace_id})
        files = sorted(harness.attributes(span)["file"] for span in below if span.name == "write file")
        self.assertEqual(files, ["log", "snapshot"])
        self.assertEqual(len(by_instance(receiver)), 3)  # server and saver; the program does without


class DropPrivileges(Daemons):
    USER = "nobody"

    def setUp(self):
        super().setUp()
        self.is_root = os.geteuid() == 0
        if not self.is_root:
            print("not root: the user stays, and what root alone can show is left out", file=sys.stderr)

    def settings(self, endpoint, *lines):
        path = self.write("settings", "\n".join([f"OTEL_EXPORTER_OTLP_ENDPOINT={endpoint}", *lines, ""]))
        path.chmod(0o600)
        return path

    def test_its_file_counts_and_its_environment_does_not(self):
        receiver = self.receiver()
        settings = self.settings(receiver.endpoint, "# whose spans", "OTEL_RESOURCE_ATTRIBUTES=a=file")
        env = environment(OTEL_SERVICE_NAME="environment", OTEL_EXPORTER_OTLP_ENDPOINT=dead())
        status, said = run("drop_privileges", self.USER, settings, env=env)
        self.assertEqual((status, said), (0, "delivered 1, dropped 0\n"))
        resource = harness.attributes(receiver.resources()[0])
        self.assertEqual((resource["service.name"], resource["a"]), ("dropped", "file"))
        user = pwd.getpwnam(self.USER) if self.is_root else pwd.getpwuid(os.geteuid())
        self.assertEqual(resource["process.owner"], user.pw_name)
        self.assertEqual(harness.attributes(receiver.spans()[0])["user.id"], user.pw_uid)

    def test_the_spool_is_the_users(self):
        spool, receiver = self.folder / "spool", self.busy_receiver()
        spool.mkdir()
        user = pwd.getpwnam(self.USER).pw_uid if self.is_root else os.geteuid()
        self.folder.chmod(0o711)
        os.chown(spool, user, -1)
        settings = self.settings(receiver.endpoint, f"OTEL_C_SPOOL_DIR={spool}")
        status, said = run("drop_privileges", self.USER, settings, env=environment())
        self.assertEqual(status, 0)
        self.assertIn("delivered 0, spooled 1, dropped 0\n", said)
        entries = [*spool.iterdir(), *spool.glob("*/*")]
        self.assertGreaterEqual(len(entries), 2)
        for entry in entries:
            status = entry.stat()
            mode = 0o700 if entry.is_dir() else 0o600
            self.assertEqual((status.st_uid, stat.S_IMODE(status.st_mode)), (user, mode), entry)
        receiver.is_busy = False
        self.assertEqual(run("drop_privileges", self.USER, settings, env=environment())[0], 0)
        self.assertEqual(len(receiver.spans()), 2)

    def test_a_certificate_that_only_root_may_read_is_named(self):
        if not self.is_root:
            self.skipTest("needs root")
        harness.certificates(self.folder)
        self.folder.chmod(0o711)
        (self.folder / "ca.pem").chmod(0o600)
        settings = self.settings("https://127.0.0.1:9", f"OTEL_EXPORTER_OTLP_CERTIFICATE={self.folder}/ca.pem")
        status, said = run("drop_privileges", self.USER, settings, env=environment())
        self.assertEqual(status, 1)
        self.assertIn(f"{self.folder}/ca.pem", said)


class Unit(Daemons):
    """The recipe for systemd: its own checker, and that the lines fit together and to the programs."""
    TEXT = (SOURCES / "otel-example.service").read_text()

    def values(self, name):
        return re.findall(f"^{name}=(.*)$", self.TEXT, re.M)

    def test_systemd_knows_all_of_it(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("no systemd-analyze")
        unit = self.write("otel-example.service", re.sub("^ExecStart=.*", "ExecStart=/bin/true", self.TEXT, flags=re.M))
        done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_its_lines_fit_together(self):
        environment_lines = dict(line.split("=", 1) for line in self.values("Environment"))
        directories = [f"/var/lib/{name}" for name in self.values("StateDirectory")[0].split()]
        self.assertIn(environment_lines["OTEL_C_SPOOL_DIR"], directories)
        budget = int(re.search("SHUTDOWN_MS = ([0-9]+)", (SOURCES / "reload.c").read_text())[1])
        self.assertGreater(1000 * int(self.values("TimeoutStopSec")[0]), 2 * budget)
        self.assertLess(self.TEXT.index("OTEL_SERVICE_NAME"), self.TEXT.index("EnvironmentFile"))

    def test_its_filters_let_the_programs_work(self):
        """Every system call of a program, and of its exporter with a spool, and each family of sockets."""
        tools = ("systemd-analyze", "strace")
        if not all(map(shutil.which, tools)) or "SAN" in subprocess.run(
                ["nm", "-D", EXAMPLES / "sums"], capture_output=True, text=True, check=False).stdout.upper():
            self.skipTest("needs systemd-analyze and strace, and a program without sanitizers")
        spool = self.folder / "spool"
        spool.mkdir()
        receiver, trace = self.receiver(), self.folder / "trace"
        for endpoint in (receiver.endpoint, receiver.endpoint.replace("127.0.0.1", "localhost"), dead()):
            program = Program("sums", before=["strace", "-f", "-qq", "-A", "-o", str(trace)],
                              env=environment(OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, OTEL_C_SPOOL_DIR=str(spool)))
            program.ask("work")
            self.assertEqual(program.end()[0], 0)
        text = trace.read_text()
        calls = set(re.findall(r"^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed)", text, re.M))
        self.assertIn("execve", calls)
        families = set(re.findall(r" socket\((AF_\w+)", text))
        self.assertIn("AF_INET", families)
        self.assertLessEqual(families, set(self.values("RestrictAddressFamilies")[0].split()))
        self.assertEqual(calls - self.allowed(self.values("SystemCallFilter")[0]), set())
        self.assertIsNone(re.search(r"m(map|protect)\([^)]*PROT_WRITE\|PROT_EXEC", text))

    def allowed(self, group):
        listed = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True,
                                check=True).stdout
        words = {line.strip() for line in listed.splitlines()[1:] if not line.strip().startswith("#")}
        for word in [word for word in words if word.startswith("@")]:
            words |= self.allowed(word)
        return words


if __name__ == "__main__":
    unittest.main(verbosity=2)

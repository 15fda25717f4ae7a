# SPDX-License-Identifier: Apache-2.0
"""otel-doctor goes the way that the exporter goes, and shows nothing that a terminal would obey.

Each set-up is one in which another client than the exporter's would come to another result.
"""
import json
import os
import pathlib
import select
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

import harness

FOLDER = tempfile.TemporaryDirectory(prefix="doctor_test.")
FILES = pathlib.Path(FOLDER.name)
CA = "OTEL_EXPORTER_OTLP_CERTIFICATE"


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], cwd=FILES, check=True, capture_output=True)


def setUpModule():
    for name in ("known", "named"):  # two authorities, and a server's certificate of the first
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", f"{name}.key",
                "-out", f"{name}.pem", "-subj", f"/CN={name} authority")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr",
            "-subj", "/CN=localhost")
    (FILES / "server.ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "known.pem", "-CAkey", "known.key", "-days", "2",
            "-CAcreateserial", "-extfile", "server.ext", "-out", "server.pem")
    (FILES / "system").mkdir()
    for name in ("known.pem", "ca-certificates.crt"):
        (FILES / "system" / name).write_bytes((FILES / "known.pem").read_bytes())
    openssl("rehash", "system")


def tearDownModule():
    FOLDER.cleanup()


def secure(receiver, **settings):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(FILES / "server.pem", FILES / "server.key")
    for name, value in settings.items():
        setattr(context, name, value)
    receiver.server.handle_error = lambda *_: None  # clients hang up
    receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"https://localhost:{receiver.port}"}


def diagnose(env, *options, before=()):
    """The report of otel-doctor, started by the words `before`."""
    done = subprocess.run([*before, harness.program("otel-doctor"), "--json", *options],
                          env=harness.environment(env), stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=harness.RUN_SECONDS, check=False)
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["healthy"] else 1), done
    return report


# ---- a receiver of gRPC, and a proxy that knows nothing but CONNECT ----------------------------


def listen(talk):
    """A port where `talk(connection)` is called for every connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    threading.Thread(target=run, daemon=True).start()
    return listener.getsockname()[1]


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def field(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def grpc_receiver(connection):
    """Answers each stream with an empty message and the status 0."""
    data, ends = 0, 1
    stream = connection.makefile("rb")
    try:
        if not stream.read(24).startswith(b"PRI * HTTP/2.0"):
            return
        connection.sendall(frame(4, 0, 0))
        while len(head := stream.read(9)) == 9:
            stream.read(int.from_bytes(head[:3], "big"))
            number = int.from_bytes(head[5:], "big")
            if head[3] == 4 and not head[4] & 1:
                connection.sendall(frame(4, 1, 0))
            if head[3] == data and head[4] & ends:
                connection.sendall(
                    frame(1, 4, number, b"\x88" + field(b"content-type", b"application/grpc")) +
                    frame(0, 0, number, bytes(5)) +
                    frame(1, 5, number, field(b"grpc-status", b"0")))
    except OSError:
        pass
    finally:
        connection.close()


def proxy_of_tunnels(asked):
    def talk(connection):
        request = b""
        while b"\r\n\r\n" not in request and (more := connection.recv(4096)):
            request += more
        line = request.split(b"\r\n")[0].decode("latin-1")
        asked.append(line)
        if not line.startswith("CONNECT "):
            connection.sendall(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            connection.close()
            return
        host, port = line.split()[1].rsplit(":", 1)
        with socket.create_connection((host, int(port))) as other, connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            sides = {connection: other, other: connection}
            while True:
                for source in select.select(list(sides), [], [])[0]:
                    try:
                        if not (more := source.recv(65536)):
                            return
                        sides[source].sendall(more)
                    except OSError:
                        return

    return listen(talk)


class Trust(unittest.TestCase):
    def test_only_the_authority_that_is_named_counts(self):
        system = f"mount --bind {FILES}/system /etc/ssl/certs && exec \"$@\""
        before = ["unshare", "--mount", "sh", "-c", system, "sh"]
        if subprocess.run([*before, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no name space of its own for mounts")
        with harness.Receiver() as receiver:
            env = secure(receiver)
            self.assertEqual(diagnose(env, before=before)["rule"], "healthy")

            report = diagnose({**env, CA: FILES / "named.pem"}, before=before)

        self.assertEqual(report["rule"], "tls.unknown_ca", report)
        self.assertIn("known authority", report["diagnosis"])
        self.assertEqual(report["span"]["result"], "failed")

    def test_grpc_goes_through_a_proxy_in_a_tunnel(self):
        asked = []
        port = listen(grpc_receiver)

        report = diagnose({"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
                           "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                           "http_proxy": f"http://127.0.0.1:{proxy_of_tunnels(asked)}"})

        self.assertEqual(report["rule"], "healthy", report)
        self.assertEqual((report["http"]["status"], report["otlp"]["result"]), (200, "fine"))
        self.assertEqual(set(asked) - {""}, {f"CONNECT 127.0.0.1:{port} HTTP/1.1"})

    def test_a_fifo_in_the_place_of_a_file_is_no_file(self):
        pipe = FILES / "pipe"
        os.mkfifo(pipe)
        names = (CA, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_KEY")
        for name in names:
            env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://127.0.0.1:9", name: pipe}
            with self.subTest(name):
                report = diagnose(env)
                self.assertEqual(report["diagnosis"], "A file that TLS needs cannot be used: "
                                 f"{pipe}, which {name} names, is no regular file.")

    def test_a_setting_that_allows_no_version_of_the_server_is_the_cause(self):
        with harness.Receiver() as receiver:
            env = secure(receiver, maximum_version=ssl.TLSVersion.TLSv1_2)
            env[CA] = FILES / "known.pem"
            self.assertEqual(diagnose(env)["rule"], "healthy")

            report = diagnose({**env, "OTEL_C_OTLP_TLS_MIN": "1.3"})

        self.assertEqual(report["rule"], "tls.version_setting", report)
        self.assertRegex(report["diagnosis"], "^OTEL_C_OTLP_TLS_MIN=1.3 keeps TLS from coming about "
                         r"\(.*\), because the server offers nothing newer than TLS 1.2: take that away, "
                         "or let the server offer TLS 1.3.$")


class Settings(unittest.TestCase):
    def test_a_ratio_that_is_none_is_said(self):
        with harness.Receiver() as receiver:
            for given in ("10", "1/10", "10%", "-1"):
                with self.subTest(given):
                    report = diagnose({"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
                                       "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
                                       "OTEL_TRACES_SAMPLER_ARG": given})
                    self.assertEqual(report["diagnosis"],
                                     "Spans arrive, but a setting does not count: OTEL_TRACES_SAMPLER_ARG="
                                     f'"{given}" is no number from 0 to 1; using 1.0.')
            report = diagnose({"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
                               "OTEL_TRACES_SAMPLER": "traceidratio"})
        (ratio,) = [one for one in report["settings"] if one["name"] == "OTEL_TRACES_SAMPLER_ARG"]
        self.assertEqual((ratio["value"], ratio["from"]), ("1.0", "default: every trace"))
        self.assertEqual(report["rule"], "healthy")


    def test_a_path_that_is_put_behind_once_more_is_said(self):
        line = "OTEL_EXPORTER_OTLP_ENDPOINT ends in /v1/traces"
        with harness.Receiver() as receiver:
            for name, is_said in (("OTEL_EXPORTER_OTLP_ENDPOINT", True), ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", False)):
                done = harness.run("otel-doctor", env={name: f"{receiver.endpoint}/v1/traces"})
                self.assertEqual(f"  ! {line}" in done.stdout, is_said, done.stdout)


class Output(unittest.TestCase):
    """What the environment, a server and a file say is shown, and no terminal obeys it."""

    SECRET = b"\x1b]0;title\x07 \x9b31m \xc2\x9b2J \xe2\x80\xae\nAll is well: forged\r\x7f"
    SHOWN = r"\x1b]0;title\x07 \x9b31m \xc2\x9b2J \xe2\x80\xae\x0aAll is well: forged\x0d\x7f"

    def run_doctor(self, *options, **env):
        return subprocess.run([harness.program("otel-doctor"), *options], capture_output=True,
                              env=harness.environment(env), timeout=harness.RUN_SECONDS, check=False)

    def assert_harmless(self, printed):
        text = printed.decode()  # it is UTF-8
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
        self.assertNotRegex(text, "(?m)^All is well")

    def test_no_byte_is_obeyed(self):
        env = {name: self.SECRET for name in (
            "OTEL_SERVICE_NAME", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_CERTIFICATE",
            "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_EXPORTER", "OTEL_C_SPOOL_DIR",
            "http_proxy", "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_RESOURCE_ATTRIBUTES")}
        env["OTEL_SERVICE_NAMES\x1b[2J"] = "a slip of the pen"
        done = self.run_doctor(**env)
        self.assert_harmless(done.stdout + done.stderr)
        self.assertIn(self.SHOWN, done.stdout.decode())
        for options in (["--json"], ["--brief"], ["--config", self.SECRET]):
            done = self.run_doctor(*options, **env)
            self.assert_harmless(done.stdout + done.stderr)
        done = self.run_doctor("--endpoint", b"http://\x1b[31m", self.SECRET)
        self.assert_harmless(done.stdout + done.stderr)

    def test_brief_is_the_sentence_alone(self):
        with harness.Receiver() as receiver:
            endpoint = receiver.endpoint
            done = self.run_doctor("--brief", OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
            self.assertEqual((done.returncode, done.stdout.decode()), (
                0, f"All is well: the test span was accepted by {endpoint}/v1/traces.\n"))
        done = self.run_doctor("--brief", OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout.decode(), r"\ANobody listens on port .*[.]\n\Z")


if __name__ == "__main__":
    harness.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""otel-doctor from the outside: set-ups that are broken, each in one way, and what it says.

usage: doctor_test.py PATH-OF-OTEL-DOCTOR PATH-OF-OTEL-VIEW PATH-OF-MAKE-CERTIFICATES

Each set-up is real and on loopback (doctor_servers.py). What is compared is the whole last
line, because that is what people act on.
"""
import json
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest

import doctor_servers as servers

DOCTOR, VIEW, MAKE_CERTIFICATES = sys.argv[1:4]
FOLDER = tempfile.TemporaryDirectory(prefix="doctor_test.")
CERTIFICATES = pathlib.Path(FOLDER.name)
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


def setUpModule():
    subprocess.run([MAKE_CERTIFICATES, CERTIFICATES, "server", "client", "expired!",
                    "other=DNS:elsewhere.example"], check=True)
    stranger = CERTIFICATES / "stranger"
    stranger.mkdir()
    subprocess.run([MAKE_CERTIFICATES, stranger], check=True)


def tearDownModule():
    FOLDER.cleanup()


def run(*options, **variables):
    """otel-doctor in an environment that has nothing but these variables."""
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "RES_OPTIONS": "timeout:1 attempts:1"}
    environment.update({name: str(value) for name, value in variables.items() if value is not None})
    environment.update({name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS")
                        if name in os.environ})
    return subprocess.run([DOCTOR, *options], env=environment, capture_output=True, text=True,
                          timeout=200, check=False)


class SetUp(unittest.TestCase):
    maxDiff = None

    def diagnose(self, rule, sentence, *options, **variables):
        """The report, as JSON; its rule and its sentence are these."""
        done = run("--json", *options, **variables)
        self.assertEqual(done.stderr, "")
        report = json.loads(done.stdout)
        self.assertEqual((report["rule"], report["diagnosis"]), (rule, sentence), done.stdout)
        self.assertEqual(report["healthy"], rule.startswith("healthy"))
        self.assertEqual(done.returncode, 0 if report["healthy"] else 1)
        return report


def local(port, path="", scheme="http", host="localhost"):
    return f"{scheme}://{host}:{port}{path}"


class Settings(SetUp):
    def test_disabled(self):
        self.diagnose("settings.disabled", "Nothing is recorded because of OTEL_SDK_DISABLED=true: "
                      "take that away to send spans.", OTEL_SDK_DISABLED="true")

    def test_no_exporter(self):
        self.diagnose("settings.exporter_none", "No span leaves the program because of "
                      "OTEL_TRACES_EXPORTER=none: take that away, or set it to otlp.",
                      OTEL_TRACES_EXPORTER="none")

    def test_another_exporter(self):
        self.diagnose("settings.exporter_other", "No span is sent to a receiver because "
                      "OTEL_TRACES_EXPORTER=console does not name otlp: add it there.",
                      OTEL_TRACES_EXPORTER="console")

    def test_sampler_off(self):
        port = servers.http_server(servers.accepts())
        report = self.diagnose("settings.sampler_off", "No span is recorded because of "
                               "OTEL_TRACES_SAMPLER=parentbased_always_off, which drops every "
                               "trace: take that away.",
                               OTEL_TRACES_SAMPLER="parentbased_always_off",
                               **{ENDPOINT: local(port)})
        self.assertEqual(report["span"]["result"], "fine")  # the way itself is open

    def test_ratio_zero(self):
        self.diagnose("settings.sampler_off", "No span is recorded because of "
                      "OTEL_TRACES_SAMPLER=traceidratio with OTEL_TRACES_SAMPLER_ARG=0.0, which "
                      "drops every trace: take that away.",
                      OTEL_TRACES_SAMPLER="traceidratio", OTEL_TRACES_SAMPLER_ARG="0.0")

    def test_bad_protocol(self):
        self.diagnose("settings.export", "A setting does not count: "
                      "OTEL_EXPORTER_OTLP_PROTOCOL=\"http\" has the unknown word \"http\" (it may be "
                      "http/protobuf, http/json, grpc); using http/protobuf.",
                      OTEL_EXPORTER_OTLP_PROTOCOL="http")

    def test_url_without_scheme(self):
        self.diagnose("settings.url", "OTEL_EXPORTER_OTLP_ENDPOINT=\"localhost:4318\" is no URL "
                      "that can be used, and the default stands in for it: write "
                      "http://localhost:4318 or https://localhost:4318.",
                      **{ENDPOINT: "localhost:4318"})

    def test_slip_of_the_pen(self):
        self.diagnose("settings.slip_export", "Nobody reads the variable "
                      "OTEL_EXPORTER_OTLP_ENPOINT, which is probably meant to be "
                      "OTEL_EXPORTER_OTLP_ENDPOINT: rename it.",
                      OTEL_EXPORTER_OTLP_ENPOINT="http://collector:4318",
                      **{ENDPOINT: local(servers.unused_port())})

    def test_slip_that_does_no_harm(self):
        port = servers.http_server(servers.accepts())
        self.diagnose("settings.slip", "Spans arrive, but nobody reads the variable "
                      "OTEL_SERVICE_NAMES, which is probably meant to be OTEL_SERVICE_NAME: rename "
                      "it.", OTEL_SERVICE_NAMES="shop", **{ENDPOINT: local(port)})

    def test_headers_malformed(self):
        port = servers.http_server(servers.says(401, b"who are you"))
        self.diagnose("settings.header", "A header is not sent: OTEL_EXPORTER_OTLP_HEADERS: entry "
                      "2 is not name=value; it is left out.",
                      OTEL_EXPORTER_OTLP_HEADERS="team=a,Bearer SECRET", **{ENDPOINT: local(port)})

    def test_a_number_that_is_none(self):
        port = servers.http_server(servers.accepts())
        self.diagnose("settings.value", "Spans arrive, but a setting does not count: "
                      "OTEL_BSP_SCHEDULE_DELAY=\"5s\" is not a whole number of milliseconds from 0 "
                      "to 2147483647; using 5000.", OTEL_BSP_SCHEDULE_DELAY="5s",
                      **{ENDPOINT: local(port)})

    def test_a_spool_that_is_not_there(self):
        port = servers.http_server(servers.accepts())
        self.diagnose("settings.value", "Spans arrive, but a setting does not count: "
                      "OTEL_C_SPOOL_DIR=\"/no/spool\" cannot be used (No such file or directory).",
                      OTEL_C_SPOOL_DIR="/no/spool", **{ENDPOINT: local(port)})

    def test_configuration_file_with_a_fault(self):
        file = CERTIFICATES / "bad.yaml"
        file.write_text("file_format: \"1.0\"\ntracer_provider:\n  processors:\n  - bach: 1\n")
        report = self.diagnose_file(file)
        self.assertEqual(report["rule"], "config.file")
        self.assertIn(f"{file}:4:5: ", report["diagnosis"])

    def test_a_profiler_is_left_alone(self):
        url = local(servers.unused_port())
        file = CERTIFICATES / "profiler.yaml"
        file.write_text("file_format: \"1.0\"\ntracer_provider:\n  processors:\n"
                        f"  - batch: {{exporter: {{otlp_http: {{endpoint: {url}}}}}}}\n"
                        "distribution: {otel-c: {profiler: {source: auto}}}\n")
        variables = {"OTEL_C_PROFILER": "on", ENDPOINT: url}
        for done in (run("--json", **variables), run("--json", "--config", str(file))):
            self.assertNotIn("profiler", " ".join(json.loads(done.stdout)["log"]))

    def diagnose_file(self, file):
        return json.loads(run("--json", "--config", str(file)).stdout)


class Connection(SetUp):
    def test_nobody_listens(self):
        port = servers.unused_port()
        self.diagnose("connect.refused", f"Nobody listens on port {port} of localhost (connection "
                      "refused): start the receiver there, or correct "
                      "OTEL_EXPORTER_OTLP_ENDPOINT.", **{ENDPOINT: local(port)})

    def test_nobody_listens_where_the_command_line_says(self):
        port = servers.unused_port()
        self.diagnose("connect.refused", f"Nobody listens on port {port} of 127.0.0.1 (connection "
                      "refused): start the receiver there, or correct --endpoint.", "--endpoint",
                      local(port, host="127.0.0.1"), **{TRACES_ENDPOINT: "http://nobody:1"})

    def test_name_that_does_not_resolve(self):
        report = json.loads(run("--json", **{ENDPOINT: "http://receiver.invalid:4318"}).stdout)
        # Where there is no name server at all, nobody can say that there is no such name.
        self.assertIn(report["rule"], ("name.unknown", "name.server"))
        self.assertRegex(report["diagnosis"], "^(There is no host with the name receiver.invalid |"
                         "The name receiver.invalid could not be looked up because )")

    def test_socket_that_is_not_there(self):
        path = CERTIFICATES / "no.sock"
        self.diagnose("connect.socket_missing", f"There is no socket {path}: start the receiver, "
                      "or correct OTEL_EXPORTER_OTLP_ENDPOINT.", **{ENDPOINT: f"unix://{path}"})

    def test_socket_that_nobody_listens_on(self):
        path = CERTIFICATES / "dead.sock"
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
        self.diagnose("connect.socket_dead", f"Nobody listens on the socket {path} (Connection "
                      "refused): start the receiver, or correct OTEL_EXPORTER_OTLP_ENDPOINT.",
                      **{ENDPOINT: f"unix://{path}"})

    def test_socket_with_a_receiver(self):
        path = CERTIFICATES / "good.sock"
        servers.unix_server(path, servers.accepts())
        self.diagnose("healthy", "All is well: the test span was accepted by "
                      f"unix://{path}.", **{ENDPOINT: f"unix://{path}"})

    def test_the_other_port_of_otlp(self):
        # An address of loopback that nobody else is likely to use.
        address = f"127.83.{os.getpid() % 250 + 1}.{os.getpid() // 250 % 250 + 1}"
        servers.listens(address, 4317)
        self.diagnose("connect.other_port", f"Nobody listens on port 4318 of {address}, but "
                      "somebody does on port 4317: use that one with the protocol that belongs to "
                      "it (4318 is http/protobuf, 4317 is grpc).",
                      **{ENDPOINT: local(4318, host=address)})

    def test_dead_proxy(self):
        port = servers.unused_port()
        self.diagnose("proxy.connect", f"The proxy http://127.0.0.1:{port}, which http_proxy "
                      "names, cannot be reached (Connection refused): start it, or put "
                      "collector.example into no_proxy.", http_proxy=f"http://127.0.0.1:{port}",
                      **{ENDPOINT: "http://collector.example:4318"})

    def test_a_proxy_that_does_not_count(self):
        port = servers.http_server(servers.accepts())
        self.diagnose("healthy", "All is well: the test span was accepted by "
                      f"http://localhost:{port}/v1/traces.", no_proxy="localhost",
                      http_proxy=f"http://127.0.0.1:{servers.unused_port()}",
                      **{ENDPOINT: local(port)})

    def test_a_proxy_that_wants_a_password(self):
        port = servers.http_server(servers.accepts())
        proxy = servers.raw_server(lambda connection: (connection.recv(4096), connection.sendall(
            b"HTTP/1.1 407 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
            connection.close()))
        self.diagnose("proxy.password", f"The proxy http://127.0.0.1:{proxy} wants a user and a "
                      "password (status 407): put them into https_proxy as "
                      "http://user:password@host:port.", https_proxy=f"http://127.0.0.1:{proxy}",
                      **{ENDPOINT: local(port, scheme="https", host="collector.example")})

    def test_receiver_that_never_answers(self):
        port = servers.raw_server(servers.never_answers)
        self.diagnose("http.silent", f"The server at http://localhost:{port}/v1/traces takes the "
                      "connection and does not answer within 2000 ms: look at its log, it hangs or "
                      "is something else than a receiver of OTLP.",
                      OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=2000, **{ENDPOINT: local(port)})

    def test_server_that_hangs_up(self):
        port = servers.raw_server(servers.hangs_up)
        self.diagnose("http.none", f"What listens at http://localhost:{port}/v1/traces is no "
                      "receiver of OTLP, or it breaks off (Empty reply from server): correct "
                      "OTEL_EXPORTER_OTLP_ENDPOINT.", **{ENDPOINT: local(port)})


class Tls(SetUp):
    def serve(self, name, **settings):
        context = servers.tls(CERTIFICATES, name, **settings)
        return servers.http_server(servers.accepts(), context)

    def ask(self, rule, sentence, port, ca=CERTIFICATES / "ca.pem", **variables):
        return self.diagnose(rule, sentence, OTEL_EXPORTER_OTLP_CERTIFICATE=ca,
                             **{ENDPOINT: local(port, scheme="https")}, **variables)

    def test_fine(self):
        port = self.serve("server")
        report = self.ask("healthy", "All is well: the test span was accepted by "
                          f"https://localhost:{port}/v1/traces.", port)
        self.assertEqual(report["tls"]["version"], "TLSv1.3")

    def test_https_url_on_a_plain_port(self):
        port = servers.http_server(servers.accepts())
        self.ask("tls.plain", f"The server at https://localhost:{port}/v1/traces speaks plain HTTP "
                 "and not TLS: write http:// instead of https:// in OTEL_EXPORTER_OTLP_ENDPOINT, "
                 "or use its port for TLS.", port)

    def test_http_url_on_a_port_for_tls(self):
        port = self.serve("server")
        self.diagnose("speech.wants_tls", f"The server at http://localhost:{port}/v1/traces speaks "
                      "TLS: write https:// instead of http:// in OTEL_EXPORTER_OTLP_ENDPOINT.",
                      **{ENDPOINT: local(port)})

    def test_unknown_authority(self):
        self.ask("tls.unknown_ca", "The server's certificate is from a CA that is not trusted here "
                 "(/CN=otel-c tests): name that CA's file in OTEL_EXPORTER_OTLP_CERTIFICATE.",
                 self.serve("server"), ca=None)

    def test_signed_by_itself(self):
        self.ask("tls.self_signed", "The server's certificate is signed by itself and not trusted "
                 "here: name a copy of it in OTEL_EXPORTER_OTLP_CERTIFICATE, or give the server "
                 "one of a CA.", self.serve("ca"), ca=None)

    def test_expired(self):
        report = run("--json", OTEL_EXPORTER_OTLP_CERTIFICATE=CERTIFICATES / "ca.pem",
                     **{ENDPOINT: local(self.serve("expired"), scheme="https")})
        report = json.loads(report.stdout)
        self.assertEqual(report["rule"], "tls.expired")
        self.assertEqual(report["diagnosis"], "The server's certificate expired on "
                         f"{report['tls']['not_after']}: renew it there (and look at the clock "
                         "here).")
        self.assertRegex(report["tls"]["not_after"], r"^\d{4}-\d\d-\d\d$")

    def test_wrong_host(self):
        self.ask("tls.wrong_host", "The server's certificate is for elsewhere.example and not for "
                 "localhost: use that name in OTEL_EXPORTER_OTLP_ENDPOINT, or give the server a "
                 "certificate for localhost.", self.serve("other"))

    def test_client_certificate_demanded(self):
        port = servers.http_server(servers.accepts(), servers.demanding_tls(CERTIFICATES))
        self.ask("tls.wants_certificate", "The server wants a certificate from its clients, and "
                 "there is none: name it in OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and its key in "
                 "OTEL_EXPORTER_OTLP_CLIENT_KEY.", port)

    def test_client_certificate_given(self):
        port = servers.http_server(servers.accepts(), servers.demanding_tls(CERTIFICATES))
        self.ask("healthy", "All is well: the test span was accepted by "
                 f"https://localhost:{port}/v1/traces.", port,
                 OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=CERTIFICATES / "client.pem",
                 OTEL_EXPORTER_OTLP_CLIENT_KEY=CERTIFICATES / "client.key")

    def test_client_certificate_of_somebody_else(self):
        port = servers.http_server(servers.accepts(), servers.demanding_tls(CERTIFICATES))
        stranger = CERTIFICATES / "stranger"
        done = run("--json", OTEL_EXPORTER_OTLP_CERTIFICATE=CERTIFICATES / "ca.pem",
                   OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=stranger / "client.pem",
                   OTEL_EXPORTER_OTLP_CLIENT_KEY=stranger / "client.key",
                   **{ENDPOINT: local(port, scheme="https")})
        report = json.loads(done.stdout)
        self.assertEqual(report["rule"], "tls.refuses_certificate", done.stdout)
        self.assertTrue(report["diagnosis"].startswith(
            "The server does not accept the client's certificate ("), report["diagnosis"])

    def test_no_version_in_common(self):
        port = self.serve("server", maximum_version=ssl.TLSVersion.TLSv1_2)
        done = run("--json", OTEL_C_OTLP_TLS_MIN="1.3",
                   OTEL_EXPORTER_OTLP_CERTIFICATE=CERTIFICATES / "ca.pem",
                   **{ENDPOINT: local(port, scheme="https")})
        report = json.loads(done.stdout)
        self.assertEqual(report["rule"], "tls.version_setting", done.stdout)

    def test_files(self):
        port = self.serve("server")
        client = CERTIFICATES / "client.pem"
        for variables, state in (
                ({"OTEL_EXPORTER_OTLP_CERTIFICATE": "/no/such.pem"},
                 "/no/such.pem, which OTEL_EXPORTER_OTLP_CERTIFICATE names, is not there"),
                ({"OTEL_EXPORTER_OTLP_CERTIFICATE": CERTIFICATES},
                 f"{CERTIFICATES}, which OTEL_EXPORTER_OTLP_CERTIFICATE names, is a directory"),
                ({"OTEL_EXPORTER_OTLP_CERTIFICATE": CERTIFICATES / "ca.key"},
                 f"{CERTIFICATES}/ca.key, which OTEL_EXPORTER_OTLP_CERTIFICATE names, has no "
                 "certificate in it (PEM is wanted)"),
                ({"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": client},
                 "there is a client's certificate, but no key to it"),
                ({"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": client,
                  "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY": CERTIFICATES / "server.key"},
                 f"{CERTIFICATES}/server.key, which OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY names, is "
                 "not the key of the client's certificate")):
            with self.subTest(state):
                self.diagnose("tls.file", f"A file that TLS needs cannot be used: {state}.",
                              **{ENDPOINT: local(port, scheme="https")}, **variables)


class Http(SetUp):
    def ask(self, rule, sentence, answer, **variables):
        port = servers.http_server(answer)
        place = f"localhost port {port}"
        return self.diagnose(rule, sentence.format(port=port, place=place),
                             **{ENDPOINT: local(port)}, **variables)

    def test_401(self):
        self.ask("http.unauthorized", "The receiver wants to know who sends (status 401), saying "
                 "\"no token\": put the credentials into OTEL_EXPORTER_OTLP_HEADERS, for example "
                 "authorization=Bearer%20TOKEN.",
                 servers.says(401, b"no token\n", Content_Type="text/plain"))

    def test_403(self):
        self.ask("http.forbidden", "The receiver knows who sends and does not allow it (status "
                 "403): look at the credentials in OTEL_EXPORTER_OTLP_HEADERS and at what they "
                 "permit.", servers.says(403))

    def test_a_plain_web_server(self):
        self.ask("http.not_found", "The server at {place} has no /v1/traces (status 404): it is no "
                 "receiver of OTLP, or the path in OTEL_EXPORTER_OTLP_ENDPOINT is wrong.",
                 servers.says(404, b"<html>not found</html>", Content_Type="text/html"))

    def test_path_twice(self):
        port = servers.http_server(servers.accepts())
        self.diagnose("http.path_twice", "The path is /v1/traces/v1/traces because v1/traces is "
                      "put behind OTEL_EXPORTER_OTLP_ENDPOINT: take it away there.",
                      **{ENDPOINT: local(port, "/v1/traces")})

    def test_path_missing(self):
        port = servers.http_server(servers.accepts())
        self.diagnose("http.path_elsewhere", "The receiver has no / (status 404) but takes traces "
                      "at /v1/traces: correct the path in OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, "
                      "which is used as it is.", **{TRACES_ENDPOINT: local(port)})

    def test_redirection(self):
        self.ask("http.redirect", "The server answers with a redirection (status 301) to "
                 "https://new.example/v1/traces?***, which an exporter does not follow: put the "
                 "right URL into OTEL_EXPORTER_OTLP_ENDPOINT.",
                 servers.says(301, Location="https://new.example/v1/traces?key=SECRET"))

    def test_405(self):
        self.ask("http.method", "The server does not take POST at /v1/traces (status 405): it is "
                 "no receiver of OTLP, or the path in OTEL_EXPORTER_OTLP_ENDPOINT is wrong.",
                 servers.says(405))

    def test_415(self):
        self.ask("http.media_type", "The receiver does not take http/protobuf (status 415), saying "
                 "\"only JSON\": set OTEL_EXPORTER_OTLP_PROTOCOL to another protocol, or leave out "
                 "the compression.", servers.says(415, b"only JSON"))

    def test_503_for_ever(self):
        status = b"\x08\x0e\x12\x09disk full"
        self.ask("http.unavailable", "The receiver is there but takes nothing now (status 503), "
                 "saying \"disk full\": look at its log and at where it sends spans itself.",
                 servers.says(503, status, Content_Type=servers.OTLP))

    def test_a_gateway_without_a_receiver(self):
        self.ask("http.bad_gateway", "A gateway at localhost answers instead of the receiver, "
                 "which it cannot reach (status 502): start the receiver behind it.",
                 servers.says(502, b"<html>Bad Gateway</html>", Content_Type="text/html"))

    def test_a_web_page(self):
        self.ask("http.page", "The server at http://localhost:{port}/v1/traces answers with a web "
                 "page: it is no receiver of OTLP, so correct OTEL_EXPORTER_OTLP_ENDPOINT.",
                 servers.says(200, b"<!doctype html><html></html>", Content_Type="text/html"))

    def test_partial_success_that_rejects(self):
        port = servers.http_server(servers.rejects("quota used up"))
        done = run("--json", **{ENDPOINT: local(port)})
        report = json.loads(done.stdout)
        self.assertEqual((report["rule"], done.returncode), ("otlp.rejected", 1), done.stdout)
        self.assertRegex(report["diagnosis"], "^The receiver takes requests but rejected the test "
                         "span, saying \".*: quota used up\": look at its log and its limits[.]$")

    def test_grpc_port(self):
        port = servers.raw_server(servers.speaks_http2)
        self.diagnose("speech.grpc_port", f"Port {port} of localhost is one for gRPC, and "
                      "http/protobuf is spoken to it: use the port for HTTP, usually 4318, or set "
                      "OTEL_EXPORTER_OTLP_PROTOCOL to grpc.", **{ENDPOINT: local(port)})

    def test_http_port_with_grpc(self):
        self.ask("speech.http_port", "Port {port} of localhost is one for HTTP and not for gRPC: "
                 "use the port for gRPC, usually 4317, or set OTEL_EXPORTER_OTLP_PROTOCOL to "
                 "http/protobuf.", servers.accepts(), OTEL_EXPORTER_OTLP_PROTOCOL="grpc")


class Healthy(SetUp):
    @classmethod
    def setUpClass(cls):
        cls.view = subprocess.Popen([VIEW, "--port", "0", "--json"], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)
        cls.port = int(cls.view.stderr.readline().rsplit(":", 1)[1])

    @classmethod
    def tearDownClass(cls):
        cls.view.terminate()
        cls.view.communicate(timeout=100)

    def test_the_span_arrives(self):
        report = self.diagnose("healthy", "All is well: the test span was accepted by "
                               f"http://localhost:{self.port}/v1/traces.", OTEL_SERVICE_NAME="shop",
                               **{ENDPOINT: local(self.port)})
        self.view.stdout.readline()  # the request that has no spans
        group = json.loads(self.view.stdout.readline())["resourceSpans"][0]
        span = group["scopeSpans"][0]["spans"][0]
        self.assertEqual(span["name"], "otel-doctor test span")
        self.assertEqual(span["traceId"], report["span"]["trace_id"])
        self.assertIn({"key": "service.name", "value": {"stringValue": "shop"}},
                      group["resource"]["attributes"])

    def test_without_sending(self):
        report = self.diagnose("healthy.unsent", "All is well as far as can be seen without "
                               f"sending a span: http://localhost:{self.port}/v1/traces answers as "
                               "a receiver of OTLP does.", "--no-send",
                               **{ENDPOINT: local(self.port)})
        self.view.stdout.readline()
        self.assertEqual(report["span"], {"result": "not_tried", "why": "--no-send"})

    def test_a_configuration_file(self):
        port = servers.http_server(servers.accepts())
        file = CERTIFICATES / "good.yaml"
        file.write_text(f"""\
file_format: "1.0"
tracer_provider:
  processors:
  - batch:
      exporter:
        otlp_http:
          endpoint: {local(port, "/v1/traces")}
          headers:
          - name: authorization
            value: SECRET
  sampler:
    parent_based:
      root:
        always_off:
""")
        report = self.diagnose("healthy", "All is well: the test span was accepted by "
                               f"http://localhost:{port}/v1/traces.", "--config", str(file))
        values = {setting["name"]: setting for setting in report["settings"]}
        exporter = "tracer_provider.processors[0].batch.exporter.otlp_http."
        self.assertEqual(values[exporter + "endpoint"]["from"], "line 7")
        self.assertEqual(values[exporter + "headers[0].value"]["value"], "***")
        self.assertNotIn("SECRET", json.dumps(report))


class Report(SetUp):
    def test_where_values_come_from(self):
        port = servers.http_server(servers.accepts())
        report = json.loads(run(
            "--json", "--endpoint", local(port), OTEL_SERVICE_NAME="shop",
            OTEL_BSP_MAX_QUEUE_SIZE="many", OTEL_EXPORTER_OTLP_TIMEOUT="7000",
            OTEL_EXPORTER_OTLP_HEADERS="authorization=SECRET",
            OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="http://nobody:1").stdout)
        values = {setting["name"]: setting for setting in report["settings"]}
        self.assertEqual(values["OTEL_SERVICE_NAME"],
                         {"name": "OTEL_SERVICE_NAME", "value": "shop", "from": "environment"})
        self.assertEqual(values["OTEL_EXPORTER_OTLP_ENDPOINT"]["from"], "--endpoint")
        self.assertNotIn("value", values["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
        self.assertEqual(values["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"],
                         {"name": "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "value": "7000 ms",
                          "from": "OTEL_EXPORTER_OTLP_TIMEOUT"})
        self.assertEqual(values["OTEL_EXPORTER_OTLP_TRACES_HEADERS"]["value"], "authorization=***")
        self.assertEqual(values["OTEL_BSP_MAX_QUEUE_SIZE"]["from"], "default")
        self.assertIn("OTEL_BSP_MAX_QUEUE_SIZE=\"many\" is not a whole number",
                      values["OTEL_BSP_MAX_QUEUE_SIZE"]["problem"])

    def test_nothing_secret_is_shown(self):
        port = servers.unused_port()
        for options in ((), ("--json",)):
            done = run(*options, OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20SECRET,SECRET",
                       http_proxy=f"http://user:SECRET@127.0.0.1:{port}",
                       OTEL_TRACES_SAMPLER="jaeger_remote", OTEL_TRACES_SAMPLER_ARG="endpoint="
                       f"http://u:SECRET@127.0.0.1:{port}",
                       **{ENDPOINT: f"http://user:SECRET@127.0.0.1:{port}/base?key=SECRET"})
            self.assertNotIn("SECRET", done.stdout + done.stderr)

    def test_for_people(self):
        port = servers.http_server(servers.accepts())
        done = run(**{ENDPOINT: local(port)})
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"(?m)^  OTEL_EXPORTER_OTLP_ENDPOINT +http://localhost:\d+  "
                         r"\(environment\)$")
        self.assertRegex(done.stdout, r"(?m)^  connect  fine +.*127\.0\.0\.1:\d+: connected \(\d+ ms\)")
        self.assertRegex(done.stdout, r"(?m)^  HTTP     fine +status 200 \(HTTP/1\.1\)")
        self.assertRegex(done.stdout, r'(?m)^  "otel-doctor test span" in trace [0-9a-f]{32}$')
        self.assertRegex(done.stdout, r"(?m)^  accepted: delivered 1, dropped 0$")
        self.assertTrue(done.stdout.splitlines()[-1].startswith("All is well: "))


class CommandLine(unittest.TestCase):
    def test_help_and_version(self):
        for option, start in (("--help", "usage: otel-doctor"), ("--version", "otel-doctor 0.")):
            done = run(option)
            self.assertEqual(done.returncode, 0)
            self.assertTrue(done.stdout.startswith(start), done.stdout)

    def test_wrong_options(self):
        for options in (["--nonsense"], ["argument"], ["--endpoint"],
                        ["--config", "f.yaml", "--endpoint", "http://h"]):
            done = run(*options)
            self.assertEqual(done.returncode, 2, options)
            self.assertIn("otel-doctor", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)

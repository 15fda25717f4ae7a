# SPDX-License-Identifier: Apache-2.0
"""otel-doctor from the outside: set-ups that are broken, each in one way, and what it says.

Each set-up is real and on loopback (servers.py). What is compared is the whole last line, because that
is what people act on. It goes the way that the exporter goes, and shows nothing that a terminal would obey.
"""
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import tempfile
import unittest

import harness
import servers
from servers import OTLP, accepts, http_server, listen, says, unused_port

FOLDER = tempfile.TemporaryDirectory(prefix="doctor_test.")
FILES = pathlib.Path(FOLDER.name)
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
CA = "OTEL_EXPORTER_OTLP_CERTIFICATE"
CLIENT, CLIENT_KEY = "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_KEY"


def setUpModule():
    harness.certificates(FILES)
    (FILES / "system").mkdir()
    for name in ("ca.pem", "ca-certificates.crt"):
        (FILES / "system" / name).write_bytes((FILES / "ca.pem").read_bytes())
    subprocess.run(["openssl", "rehash", "system"], cwd=FILES, check=True)
    (FILES / "bad.yaml").write_text('file_format: "1.0"\ntracer_provider:\n  processors:\n  - bach: 1\n')
    os.mkfifo(FILES / "pipe")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(FILES / "dead.sock"))


def tearDownModule():
    FOLDER.cleanup()


def run(*options, before=(), **env):
    """otel-doctor, started by the words `before`, in an environment of nothing but this."""
    made = harness.environment({"LC_ALL": "C", "RES_OPTIONS": "timeout:1 attempts:1", **env})
    return subprocess.run([*before, harness.program("otel-doctor"), *options], env=made,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=harness.RUN_SECONDS, check=False)


def diagnose(*options, **env):
    """The report, as JSON."""
    done = run("--json", *options, **env)
    assert done.stderr == "", done
    report = json.loads(done.stdout)
    assert report["healthy"] == report["rule"].startswith("healthy"), report
    assert done.returncode == (0 if report["healthy"] else 1), done
    return report


# --- the set-ups ---

def row(rule, sentence, server=None, *options, endpoint="http://localhost:{port}", **env):
    """In sentence, options and environment {port} is the server's, {files} the folder with the
    certificates, and {unused} a port without a server. A sentence that begins with ^ is a regular expression."""
    if server is not None and ENDPOINT not in env and TRACES_ENDPOINT not in env and not options:
        env[ENDPOINT] = endpoint
    return rule, sentence, server, options, env


def web(answer):
    return lambda: http_server(answer)


def raw(talk):
    return lambda: listen(talk)


def secure(name, *arguments, **settings):
    return lambda: http_server(accepts, servers.tls(FILES, name, *arguments, **settings))


def over_tls(rule, sentence, server, ca="{files}/ca.pem", **env):
    return row(rule, sentence, server, endpoint="https://localhost:{port}", **({CA: ca} if ca else {}), **env)


NO_PEM = "there is no whole certificate in PEM form in it"


def file_for_tls(problem, **env):
    return row("tls.file", f"A file that TLS needs cannot be used: {problem}.", secure("server"),
               endpoint="https://localhost:{port}", **env)


def tunnel_refused(connection):
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    connection.close()


# An address of loopback that nobody else is likely to use.
ELSEWHERE = f"127.83.{os.getpid() % 250 + 1}.{os.getpid() // 250 % 250 + 1}"
taker = web(accepts)
ALL_IS_WELL = "All is well: the test span was accepted by "
grpc_denies = functools.partial(servers.grpc_receiver, status=b"16")
SILENT_404 = says(404, b"<html>not found</html>", Content_Type="text/html")

ROWS = [
    # settings
    row("settings.disabled", "Nothing is recorded because of OTEL_SDK_DISABLED=true: take that away to send "
        "spans.", OTEL_SDK_DISABLED="true"),
    *[row("settings.exporter", f"No span is sent to a receiver because OTEL_TRACES_EXPORTER={name} does not name "
          "otlp: add it there.", OTEL_TRACES_EXPORTER=name) for name in ("none", "console")],
    row("settings.sampler_off", "No span is recorded because of OTEL_TRACES_SAMPLER=parentbased_always_off, which "
        "drops every trace: take that away.", taker, OTEL_TRACES_SAMPLER="parentbased_always_off"),
    row("settings.sampler_off", "No span is recorded because of OTEL_TRACES_SAMPLER=traceidratio with "
        "OTEL_TRACES_SAMPLER_ARG=0.0, which drops every trace: take that away.",
        OTEL_TRACES_SAMPLER="traceidratio", OTEL_TRACES_SAMPLER_ARG="0.0"),
    row("settings.export", 'A setting does not count: OTEL_EXPORTER_OTLP_PROTOCOL="http" has the unknown word '
        '"http" (it may be http/protobuf, http/json, grpc); using http/protobuf.',
        OTEL_EXPORTER_OTLP_PROTOCOL="http"),
    row("settings.export", 'A setting does not count: OTEL_EXPORTER_OTLP_ENDPOINT is "localhost:4318", which is no '
        "http or https URL; using http://localhost:4318/v1/traces.", **{ENDPOINT: "localhost:4318"}),
    row("settings.typo_export", "No program reads the variable OTEL_EXPORTER_OTLP_ENPOINT, which is probably meant to "
        "be OTEL_EXPORTER_OTLP_ENDPOINT: rename it.", OTEL_EXPORTER_OTLP_ENPOINT="http://collector:4318",
        **{ENDPOINT: "http://localhost:{unused}"}),
    row("settings.typo", "Spans arrive, but no program reads the variable OTEL_SERVICE_NAMES, which is probably meant "
        "to be OTEL_SERVICE_NAME: rename it.", taker, OTEL_SERVICE_NAMES="shop"),
    row("settings.header", "A header is not sent: OTEL_EXPORTER_OTLP_HEADERS: entry 2 is not name=value; 1 "
        "entry is left out.", web(says(401, b"who are you")), OTEL_EXPORTER_OTLP_HEADERS="team=a,Bearer SECRET"),
    row("settings.value", 'Spans arrive, but otel-c warns of a setting: OTEL_BSP_SCHEDULE_DELAY="5s" is not a whole '
        "number of milliseconds from 0 to 2147483647; using 5000.", taker, OTEL_BSP_SCHEDULE_DELAY="5s"),
    row("settings.value", 'Spans arrive, but otel-c warns of a setting: OTEL_C_SPOOL_DIR="/no/spool" cannot be used '
        "(No such file or directory).", taker, OTEL_C_SPOOL_DIR="/no/spool"),
    *[row("settings.value", "Spans arrive, but otel-c warns of a setting: OTEL_TRACES_SAMPLER_ARG="
          f'"{ratio}" is no number from 0 to 1; using 1.0.', taker, OTEL_TRACES_SAMPLER_ARG=ratio,
          OTEL_TRACES_SAMPLER="parentbased_traceidratio") for ratio in ("10", "1/10", "10%", "-1")],
    row("settings.value", "Spans arrive, but otel-c warns of a setting: OTEL_TRACES_SAMPLER_ARG counts only with "
        "OTEL_TRACES_SAMPLER.", taker, OTEL_TRACES_SAMPLER_ARG="0.5"),
    row("config.file", "^.*{files}/bad.yaml:4:5: ", None, "--config", "{files}/bad.yaml"),
    # the connection
    row("connect.refused", "Nobody listens on port {unused} of localhost (connection refused): start the receiver "
        "there, or correct OTEL_EXPORTER_OTLP_ENDPOINT.", **{ENDPOINT: "http://localhost:{unused}"}),
    row("connect.refused", "Nobody listens on port {unused} of 127.0.0.1 (connection refused): start the receiver "
        "there, or correct --endpoint.", None, "--endpoint", "http://127.0.0.1:{unused}",
        **{TRACES_ENDPOINT: "http://nobody:1"}),
    row("name.unknown", "There is no host with the name receiver.invalid, or no name server answers: correct "
        "OTEL_EXPORTER_OTLP_ENDPOINT, or look at the network and at resolv.conf.",
        **{ENDPOINT: "http://receiver.invalid:4318"}),
    *[row("connect.socket", f"The socket {{files}}/{name}.sock takes no connection ({why}): start the receiver, or "
          "correct OTEL_EXPORTER_OTLP_ENDPOINT.", **{ENDPOINT: f"unix://{{files}}/{name}.sock"})
      for name, why in (("no", "No such file or directory"), ("dead", "Connection refused"))],
    row("healthy", ALL_IS_WELL + "unix://{files}/good.sock.", lambda: http_server(accepts, path=FILES / "good.sock"),
        **{ENDPOINT: "unix://{files}/good.sock"}),
    row("connect.other_port", f"Nobody listens on port 4318 of {ELSEWHERE}, but somebody does on port 4317: use that "
        "one with the protocol that belongs to it (4318 is http/protobuf, 4317 is grpc).",
        lambda: listen(servers.never_answers, (ELSEWHERE, 4317)), **{ENDPOINT: f"http://{ELSEWHERE}:4318"}),
    row("proxy.connect", "The proxy http://127.0.0.1:{unused}, which http_proxy names, cannot be reached (Connection "
        "refused): start it, or put collector.example into no_proxy.", http_proxy="http://127.0.0.1:{unused}",
        **{ENDPOINT: "http://collector.example:4318"}),
    row("healthy", ALL_IS_WELL + "http://localhost:{port}/v1/traces.", taker, no_proxy="localhost",
        http_proxy="http://127.0.0.1:{unused}"),
    row("proxy.password", "The proxy http://127.0.0.1:{port} wants a user and a password (status 407): put them into "
        "https_proxy as http://user:password@host:port.", raw(tunnel_refused),
        https_proxy="http://127.0.0.1:{port}", **{ENDPOINT: "https://collector.example"}),
    row("http.silent", "The server at http://localhost:{port}/v1/traces takes the connection and does not answer "
        "within 2000 ms: look at its log, it hangs or is something else than a receiver of OTLP.",
        raw(servers.never_answers), OTEL_EXPORTER_OTLP_TRACES_TIMEOUT="2000"),
    row("http.none", "What listens at http://localhost:{port}/v1/traces is no receiver of OTLP, or it breaks off "
        "(Empty reply from server): correct OTEL_EXPORTER_OTLP_ENDPOINT.", raw(servers.hangs_up)),
    # TLS
    over_tls("healthy", ALL_IS_WELL + "https://localhost:{port}/v1/traces.", secure("server")),
    over_tls("tls.plain", "The server at https://localhost:{port}/v1/traces speaks plain HTTP and not TLS: write "
             "http:// instead of https:// in OTEL_EXPORTER_OTLP_ENDPOINT, or use its port for TLS.", taker),
    row("speech.wants_tls", "The server at http://localhost:{port}/v1/traces speaks TLS: write https:// instead of "
        "http:// in OTEL_EXPORTER_OTLP_ENDPOINT.", secure("server")),
    over_tls("tls.unknown_ca", r"^The server's certificate is not trusted here \(.*unable to get local issuer "
             r"certificate\): name the file of its CA in OTEL_EXPORTER_OTLP_CERTIFICATE[.]$", secure("server"), ca=None),
    over_tls("tls.self_signed", r"^The server's certificate is not trusted here \(.*self.signed certificate\): name a "
             "copy of it in OTEL_EXPORTER_OTLP_CERTIFICATE, or give the server one of a CA[.]$", secure("ca"), ca=None),
    over_tls("tls.expired", r"^The server's certificate is not trusted here \(.*certificate has expired\): renew it "
             r"there \(and look at the clock here\)\.$", secure("expired")),
    over_tls("tls.wrong_host", r"^The server's certificate is not for localhost \(.*\): use a name that it is for in "
             "OTEL_EXPORTER_OTLP_ENDPOINT, or give the server a certificate for localhost[.]$", secure("other")),
    over_tls("tls.wants_certificate", "The server wants a certificate from its clients, and there is none: name it in "
             "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and its key in OTEL_EXPORTER_OTLP_CLIENT_KEY.",
             secure("server", True)),
    over_tls("healthy", ALL_IS_WELL + "https://localhost:{port}/v1/traces.", secure("server", True),
             **{CLIENT: "{files}/client.pem", CLIENT_KEY: "{files}/client.key"}),
    over_tls("tls.refuses_certificate", r"^The server does not accept the client's certificate \(",
             secure("server", True),
             **{CLIENT: "{files}/strange-client.pem", CLIENT_KEY: "{files}/strange-client.key"}),
    over_tls("tls.version_setting", "^OTEL_C_OTLP_TLS_MIN=1.3 keeps TLS from coming about "
             r"\(.*\), because the server offers nothing newer than TLS 1.2: take that away, or let the server offer "
             "TLS 1.3[.]$", secure("server", maximum_version=ssl.TLSVersion.TLSv1_2), OTEL_C_OTLP_TLS_MIN="1.3"),
    over_tls("healthy", "^All is well", secure("server", maximum_version=ssl.TLSVersion.TLSv1_2)),
    *[file_for_tls(f"the CA file {file} cannot be used: {why}", **{CA: file}) for file, why in (
        ("/no/such.pem", "No such file or directory"), ("{files}", "Is a directory"), ("{files}/pipe", NO_PEM),
        ("{files}/ca.key", NO_PEM))],
    file_for_tls("the client key {files}/pipe cannot be used: there is no whole key in PEM form in it",
                 **{CLIENT: "{files}/client.pem", CLIENT_KEY: "{files}/pipe"}),
    row("tls.key", r"^The client's key cannot be used \(.*\): it has a pass phrase, or belongs to another "
        "certificate[.]$", secure("server", True),
        endpoint="https://localhost:{port}", OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY="{files}/server.key",
        **{CLIENT: "{files}/client.pem", CA: "{files}/ca.pem"}),
    row("settings.export", f"A setting does not count: {CLIENT} is given without {CLIENT_KEY}; it counts as unset.",
        secure("server"), endpoint="https://localhost:{port}", **{CLIENT: "{files}/client.pem"}),
    # HTTP
    row("http.unauthorized", 'The receiver wants to know who sends (status 401), saying "no token": put the '
        "credentials into OTEL_EXPORTER_OTLP_HEADERS, for example authorization=Bearer%20TOKEN.",
        web(says(401, b"no token\n", Content_Type="text/plain"))),
    row("http.unauthorized", "The receiver does not accept the credentials that it gets (status 401): correct them; the "
        "headers of OTEL_EXPORTER_OTLP_HEADERS are sent (authorization, x-team).", web(says(401)),
        OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20SECRET,x-team=a"),
    row("grpc.denied", "The receiver does not let us in (gRPC status 16): put the credentials into "
        "OTEL_EXPORTER_OTLP_HEADERS.", raw(grpc_denies), OTEL_EXPORTER_OTLP_PROTOCOL="grpc"),
    row("grpc.denied", "The receiver does not accept the credentials that it gets (gRPC status 16): correct them; the "
        "headers of OTEL_EXPORTER_OTLP_HEADERS are sent (authorization).", raw(grpc_denies),
        OTEL_EXPORTER_OTLP_PROTOCOL="grpc", OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20SECRET"),
    row("http.forbidden", "The receiver knows who sends and does not allow it (status 403): look at the credentials in "
        "OTEL_EXPORTER_OTLP_HEADERS and at what they permit.", web(says(403))),
    row("http.not_found", "The server at localhost port {port} has no /v1/traces (status 404): it is no receiver of "
        "OTLP, or the path in OTEL_EXPORTER_OTLP_ENDPOINT is wrong.", web(SILENT_404)),
    row("http.path_twice", "The path is /v1/traces/v1/traces because v1/traces is put behind "
        "OTEL_EXPORTER_OTLP_ENDPOINT: take it away there.", taker, endpoint="http://localhost:{port}/v1/traces"),
    row("http.path_elsewhere", "The receiver has no / (status 404) but takes traces at /v1/traces: correct the path in "
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, which is used as it is.", taker,
        **{TRACES_ENDPOINT: "http://localhost:{port}"}),
    row("http.redirect", "The server answers with a redirection (status 301) to https://new.example/v1/traces?***, "
        "which an exporter does not follow: put the right URL into OTEL_EXPORTER_OTLP_ENDPOINT.",
        web(says(301, Location="https://new.example/v1/traces?key=SECRET"))),
    row("http.method", "The server does not take POST at /v1/traces (status 405): it is no receiver of OTLP, or the "
        "path in OTEL_EXPORTER_OTLP_ENDPOINT is wrong.", web(says(405))),
    row("http.media_type", 'The receiver does not take http/protobuf (status 415), saying "only JSON": set '
        "OTEL_EXPORTER_OTLP_PROTOCOL to another protocol, or leave out the compression.",
        web(says(415, b"only JSON"))),
    row("http.unavailable", 'The receiver is there but takes nothing now (status 503), saying "disk full": look at its '
        "log and at where it sends spans itself.", web(says(503, b"\x08\x0e\x12\x09disk full", Content_Type=OTLP))),
    row("http.bad_gateway", "A gateway at localhost answers instead of the receiver, which it cannot reach (status "
        "502): start the receiver behind it.", web(says(502, b"<html>Bad Gateway</html>", Content_Type="text/html"))),
    row("http.page", "The server at http://localhost:{port}/v1/traces answers with a web page: it is no receiver of "
        "OTLP, so correct OTEL_EXPORTER_OTLP_ENDPOINT.",
        web(says(200, b"<!doctype html><html></html>", Content_Type="text/html"))),
    row("otlp.rejected", '^The receiver takes requests but rejected the test span, saying ".*: quota used up": look at '
        "its log and its limits[.]$", web(servers.rejects("quota used up"))),
    row("speech.grpc_port", "Port {port} of localhost is one for gRPC, and http/protobuf is spoken to it: use the port "
        "for HTTP, usually 4318, or set OTEL_EXPORTER_OTLP_PROTOCOL to grpc.", raw(servers.grpc_receiver)),
    row("speech.http_port", "Port {port} of localhost is one for HTTP and not for gRPC: use the port for gRPC, usually "
        "4317, or set OTEL_EXPORTER_OTLP_PROTOCOL to http/protobuf.", taker, OTEL_EXPORTER_OTLP_PROTOCOL="grpc"),
]


def fault_of(case):
    """What is wrong with what it says of a set-up; None: nothing."""
    rule, sentence, server, options, env = case
    values = {"port": server() if server is not None else None, "files": FILES, "unused": unused_port()}

    def filled(text):
        return re.sub("{(port|files|unused)}", lambda match: str(values[match[1]]), text)

    def fits(seen, wanted):
        return re.search(wanted, seen) is not None if wanted[0] == "^" else seen == wanted
    try:
        report = diagnose(*map(filled, options), **{name: filled(text) for name, text in env.items()})
    except Exception as bad:
        return f"{rule}: {bad!r}"
    is_right = fits(report["rule"], rule) and fits(report["diagnosis"], filled(sentence))
    return None if is_right else f"{rule}: {filled(sentence)}\n  and not {report['rule']}: {report['diagnosis']}"


class SetUps(unittest.TestCase):
    def test_the_sentence_is_what_helps(self):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            faults = [fault for fault in pool.map(fault_of, ROWS) if fault is not None]
        self.assertEqual(faults, [], "\n" + "\n".join(faults))

    def test_localhost_needs_no_resolver(self):
        before = harness.after_mount(self, "--bind /dev/null /etc/hosts")
        self.assertEqual(diagnose(before=before, **{ENDPOINT: f"http://localhost:{taker()}"})["rule"], "healthy")

    def test_only_the_authority_that_is_named_counts(self):
        before = harness.after_mount(self, f"--bind {FILES}/system /etc/ssl/certs")
        env = {ENDPOINT: f"https://localhost:{secure('server')()}"}
        self.assertEqual(diagnose(before=before, **env)["rule"], "healthy")

        report = diagnose(before=before, **env, **{CA: str(FILES / "stranger.pem")})

        self.assertEqual(report["rule"], "tls.unknown_ca", report)
        self.assertEqual(report["span"]["result"], "failed")

    def test_grpc_goes_through_a_proxy_in_a_tunnel(self):
        asked = []
        port = listen(servers.grpc_receiver)

        report = diagnose(OTEL_EXPORTER_OTLP_PROTOCOL="grpc", **{
            ENDPOINT: f"http://127.0.0.1:{port}", "http_proxy": f"http://127.0.0.1:{servers.proxy_of_tunnels(asked)}"})

        self.assertEqual(report["rule"], "healthy", report)
        self.assertEqual((report["http"]["status"], report["otlp"]["result"]), (200, "fine"))
        self.assertEqual(set(asked) - {""}, {f"CONNECT 127.0.0.1:{port} HTTP/1.1"})

    def test_all_bytes_of_an_answer_have_one_deadline(self):
        # If each byte had the time for itself, all 256 that fit would be waited for.
        drips = servers.Drips()
        run(OTEL_EXPORTER_OTLP_TRACES_TIMEOUT="200", **{ENDPOINT: f"http://localhost:{listen(drips)}"})
        self.assertIn(drips.most, range(1, 256))

    def test_a_profiler_is_left_alone(self):
        url = f"http://localhost:{unused_port()}"
        file = FILES / "profiler.yaml"
        file.write_text('file_format: "1.0"\ntracer_provider:\n  processors:\n'
                        f"  - batch: {{exporter: {{otlp_http: {{endpoint: {url}}}}}}}\n"
                        "distribution: {otel-c: {profiler: {source: auto}}}\n")
        for report in (diagnose(OTEL_C_PROFILER="on", **{ENDPOINT: url}), diagnose("--config", str(file))):
            self.assertNotIn("profiler", " ".join(report["log"]))


class Report(unittest.TestCase):
    def test_the_span_arrives_at_otel_view(self):
        with subprocess.Popen([harness.program("otel-view"), "--port", "0", "--json"], env=harness.environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as view:
            url = view.stderr.readline().split()[3].rstrip(",")
            report = diagnose(OTEL_SERVICE_NAME="shop", **{ENDPOINT: url})
            view.stdout.readline()  # the request that has no spans
            group = json.loads(view.stdout.readline())["resourceSpans"][0]
            unsent = diagnose("--no-send", **{ENDPOINT: url})
            view.terminate()
        span = group["scopeSpans"][0]["spans"][0]
        self.assertEqual((span["name"], span["traceId"]), ("otel-doctor test span", report["span"]["trace_id"]))
        self.assertIn({"key": "service.name", "value": {"stringValue": "shop"}}, group["resource"]["attributes"])
        self.assertEqual((unsent["rule"], unsent["diagnosis"]), (
            "healthy.unsent", f"All is well as far as can be seen without sending a span: {url}/v1/traces answers as a "
            "receiver of OTLP does."))
        self.assertEqual(unsent["span"], {"result": "not_tried", "why": "--no-send"})

    def test_what_was_found_on_the_way(self):
        report = diagnose(OTEL_TRACES_SAMPLER="always_off", **{ENDPOINT: f"http://localhost:{taker()}"})
        self.assertEqual(report["span"]["result"], "fine")  # the way itself is open
        env = {CA: str(FILES / "ca.pem"), ENDPOINT: f"https://localhost:{secure('server')()}"}
        self.assertEqual(diagnose(**env)["tls"]["version"], "TLSv1.3")

    def test_a_configuration_file(self):
        file = FILES / "good.yaml"
        file.write_text(f"""\
file_format: "1.0"
tracer_provider:
  processors:
  - batch:
      exporter:
        otlp_http:
          endpoint: http://localhost:{taker()}/v1/traces
          headers: [{{name: authorization, value: SECRET}}]
  sampler: {{parent_based: {{root: {{always_off: }}}}}}
""")
        report = diagnose("--config", str(file))
        self.assertEqual(report["rule"], "healthy", report)
        self.assertNotIn("SECRET", json.dumps(report))

    def test_where_values_come_from(self):
        report = diagnose("--endpoint", f"http://localhost:{taker()}", **{
            "OTEL_SERVICE_NAME": "shop", "OTEL_BSP_MAX_QUEUE_SIZE": "many", "OTEL_EXPORTER_OTLP_TIMEOUT": "7000",
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=SECRET", TRACES_ENDPOINT: "http://nobody:1",
            "OTEL_TRACES_SAMPLER": "traceidratio"})
        self.assertEqual({one["name"]: (one["value"], one["from"]) for one in report["settings"]}, {
            "OTEL_SERVICE_NAME": ("shop", "environment"), ENDPOINT: (report["url"][:-len("/v1/traces")], "--endpoint"),
            "OTEL_EXPORTER_OTLP_TIMEOUT": ("7000 ms", "environment"),
            "OTEL_EXPORTER_OTLP_HEADERS": ("authorization=***", "environment"),
            "OTEL_TRACES_SAMPLER": ("traceidratio", "environment")})
        self.assertIn('OTEL_BSP_MAX_QUEUE_SIZE="many" is not a whole number', report["log"][0])

    def test_nothing_secret_is_shown(self):
        host = f"127.0.0.1:{unused_port()}"
        for options in ((), ("--json",)):
            done = run(*options, OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20SECRET,SECRET",
                       OTEL_TRACES_SAMPLER="jaeger_remote", OTEL_TRACES_SAMPLER_ARG=f"endpoint=http://u:SECRET@{host}",
                       http_proxy=f"http://user:SECRET@{host}",
                       **{ENDPOINT: f"http://user:SECRET@{host}/base?key=SECRET"})
            self.assertNotIn("SECRET", done.stdout + done.stderr)

    def test_for_people(self):
        done = run(**{ENDPOINT: f"http://localhost:{taker()}"})
        self.assertEqual(done.returncode, 0)
        for line in (r"  OTEL_EXPORTER_OTLP_ENDPOINT +http://localhost:\d+  \(environment\)",
                     r"  connect  fine +tried: .*127\.0\.0\.1:\d+.*",
                     r"  http     fine +status: 200; version: 1\.1.*",
                     r"  span     fine +trace_id: [0-9a-f]{32}; counters: delivered 1, dropped 0"):
            self.assertRegex(done.stdout, f"(?m)^{line}$")
        self.assertTrue(done.stdout.splitlines()[-1].startswith("All is well: "))

    def test_brief_is_the_sentence_alone(self):
        url = f"http://localhost:{taker()}"
        done = run("--brief", **{ENDPOINT: url})
        self.assertEqual((done.returncode, done.stdout), (0, f"{ALL_IS_WELL}{url}/v1/traces.\n"))
        done = run("--brief", **{ENDPOINT: f"http://localhost:{unused_port()}"})
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"\ANobody listens on port .*[.]\n\Z")

    def test_help_version_and_wrong_options(self):
        for option, start in (("--help", "usage: otel-doctor"), ("--version", "otel-doctor 0.")):
            done = run(option)
            self.assertEqual(done.returncode, 0)
            self.assertTrue(done.stdout.startswith(start), done.stdout)
        for options in (["--nonsense"], ["argument"], ["--endpoint"],
                        ["--config", "f.yaml", "--endpoint", "http://h"]):
            done = run(*options)
            self.assertEqual(done.returncode, 2, options)
            self.assertIn("otel-doctor", done.stderr)


class Terminal(unittest.TestCase):
    """What the environment, a server and a file say is shown, and no terminal obeys it."""

    SECRET = b"\x1b]0;title\x07 \x9b31m \xc2\x9b2J \xe2\x80\xae\nAll is well: forged\r\x7f"
    SHOWN = r"\x1b]0;title\x07 \x9b31m \u{9b}2J \u{202e}\nAll is well: forged\r\x7f"

    def run_doctor(self, *options, **env):
        """What it printed, which a terminal obeys in nothing."""
        done = subprocess.run([harness.program("otel-doctor"), *options], capture_output=True,
                              env=harness.environment(env), timeout=harness.RUN_SECONDS, check=False)
        text = (done.stdout + done.stderr).decode()  # it is UTF-8
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
        self.assertNotRegex(text, "(?m)^All is well")
        return text

    def test_no_byte_is_obeyed(self):
        env = {name: self.SECRET for name in (
            "OTEL_SERVICE_NAME", ENDPOINT, CA, "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_TRACES_SAMPLER",
            "OTEL_TRACES_EXPORTER", "OTEL_C_SPOOL_DIR", "http_proxy", "OTEL_BSP_MAX_QUEUE_SIZE",
            "OTEL_RESOURCE_ATTRIBUTES")}
        env["OTEL_SERVICE_NAMES\x1b[2J"] = "a typing error"
        self.assertIn(self.SHOWN, self.run_doctor(**env))
        for options in (["--json"], ["--brief"], ["--config", self.SECRET]):
            self.run_doctor(*options, **env)
        self.run_doctor("--endpoint", b"http://\x1b[31m", self.SECRET)


if __name__ == "__main__":
    harness.main()

# SPDX-License-Identifier: Apache-2.0
"""Every variable of the table in docs/CONFIGURATION.md, and what it does as seen from outside.

The document decides which variables there are: one without a row here fails, and so does a row
without a variable. What is broken, or just outside its range, is taken from the table: it is one
warning that names the variable, and the program goes on. The rows of ROWS have ordinary values, and
the smallest and the largest where their effects can be told apart."""
import concurrent.futures
import gzip
import http.server
import pathlib
import re
import ssl
import subprocess
import tempfile
import time
import unittest

import harness

http.server.ThreadingHTTPServer.handle_error = lambda *_: None  # peers break connections off

MOST = "2147483647"
FOLDER = tempfile.TemporaryDirectory()
HERE = pathlib.Path(FOLDER.name)
GONE = "http://127.0.0.1:9"  # nothing listens there


def document():
    places = [*harness.PREFIX.glob("share/doc/**/CONFIGURATION.md"),
              harness.SOURCES / "docs/CONFIGURATION.md"]
    found = re.findall(r"^\| `(OTEL_[A-Z_]+)` \| [^|]* \| (\w+) \| ([^|]*) \| ([^|]*) \|",
                       places[0].read_text(), re.M)
    return {name: (kind, default.strip("` "), allowed) for name, kind, default, allowed in found}


class Run:
    """A program with one setting, and all that can be seen of it."""

    def __init__(self, name, value, mode="rich", program="settings", away=False, receiver=None, **env):
        with receiver or harness.Receiver() as self.receiver:
            base = {"OTEL_EXPORTER_OTLP_ENDPOINT": GONE if away else self.receiver.endpoint,
                    "OTEL_EXPORTER_OTLP_TIMEOUT": "300" if away else "10000"}
            base.update(env)
            base[name] = value.replace("RECEIVER", self.receiver.endpoint)
            done = harness.run(program, *([mode] if program == "settings" else []), env=base)
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.spans = self.receiver.spans()
        self.span = self.spans[0] if self.spans else None

    @property
    def resource(self):
        return harness.attributes(self.receiver.resources()[0])

    @property
    def paths(self):
        return [path for path, _, _ in self.receiver.heard]

    def headers(self, name):
        return {headers.get(name) for _, headers, _ in self.receiver.heard}

    def count(self, word):
        found = re.search(rf"\b{word} ([0-9,]+)", self.out)
        return int(found.group(1).replace(",", "")) if found else 0

    def depth(self):
        value = next(pair.value for pair in self.span.attributes if pair.key == "deep")
        depth = 0
        while value.WhichOneof("value") == "array_value" and value.array_value.values:
            value, depth = value.array_value.values[0], depth + 1
        return depth


# --- what is looked at: each is a function of a Run that gives True where all is well ---

def same(what, wanted):
    def check(run):
        seen = what(run)
        return True if seen == wanted else f"{seen!r}, and not {wanted!r}"
    return check


def resource(key, wanted):
    return same(lambda run: run.resource.get(key), wanted)


def said(text):
    return lambda run: True if text in run.out + run.err else f"no {text!r}: {run.out}{run.err}"


def silent(run):
    return True if run.err == "" else run.err


def all_of(*checks):
    return lambda run: next((seen for seen in (check(run) for check in checks) if seen is not True), True)


def kept(what, wanted):
    return same(lambda run: len(what(run)), wanted)


def attributes(run):
    return run.span.attributes


def event_attributes(run):
    return run.span.events[0].attributes


def link_attributes(run):
    return run.span.links[0].attributes


def text_length(wanted):
    return same(lambda run: len(harness.attributes(run.span).get("k1", "")), wanted)


def limits(what, **env):
    """Of a number of parts: 200 are there."""
    return [("0", kept(what, 0), env), ("1", kept(what, 1), env), (MOST, kept(what, 200), env)]


def injects(*names):
    return same(lambda run: sorted(re.findall("header (.*)", run.out.lower())), sorted(names))


arrived = same(lambda run: len(run.spans), 1)
nothing = same(lambda run: len(run.spans), 0)
NOISY = {"OTEL_LOG_LEVEL": "debug"}


def goes(text):
    """What the message of the start says; the endpoint need not be there."""
    return said(text)


def with_detector(*wanted):
    keys = {"process.pid": "process", "process.command_args": "process_command",
            "process.owner": "process_owner", "host.name": "host", "os.type": "os",
            "service.instance.id": "service"}
    return same(lambda run: {keys[key] for key in keys if key in run.resource}, set(wanted))


def names_of(run):
    return {span.name for span in run.spans}


# --- TLS ---

def certificates():
    """An authority, a server and a client, as PEM files."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=HERE, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    (HERE / "san").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca", "-days", "9")
    for name in ("server", "client"):
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-CAcreateserial", "-out", f"{name}.pem", "-days", "9", "-extfile", "san")


def tls_receiver(newest=ssl.TLSVersion.TLSv1_3, wants_client=False):
    receiver = harness.Receiver()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = newest
    context.load_cert_chain(HERE / "server.pem", HERE / "server.key")
    if wants_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(HERE / "ca.pem")
    receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
    receiver.endpoint = receiver.endpoint.replace("http:", "https:")
    return receiver


CA = {"OTEL_EXPORTER_OTLP_CERTIFICATE": f"{HERE}/ca.pem"}
PAIR = {**CA, "OTEL_EXPORTER_OTLP_CLIENT_KEY": f"{HERE}/client.key",
        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": f"{HERE}/client.pem"}


def tls(value, check, wants_client=False, newest=ssl.TLSVersion.TLSv1_3, **env):
    return (value, check, {"receiver": lambda: tls_receiver(newest, wants_client),
                           "OTEL_EXPORTER_OTLP_TIMEOUT": "2000", **env})


def slow(message):
    time.sleep(0.3)
    return 200, {}, b""


def small():
    """Refuses requests of more than 30 spans."""
    return harness.Receiver(lambda message: (
        413 if len(message.resource_spans[0].scope_spans[0].spans) > 30 else 200, {}, b""))


# --- profiles ---

BURN = {"mode": "burn", "OTEL_C_PROFILER": "signal", "OTEL_C_PROFILER_HZ": "500"}


def profiles(run):
    return True if "/v1development/profiles" in run.paths else run.paths


def has_names(run):
    return any(b"burn" in body for path, _, body in run.receiver.heard if "profiles" in path)


def pprof(folder, check):
    def look(run):
        files = [*(HERE / folder).glob("*")]
        return check(b"".join(gzip.decompress(file.read_bytes()) for file in files)) or (
            files, run.out, run.err)
    return look


def to_pprof(folder):
    (HERE / folder).mkdir(exist_ok=True)
    return {**BURN, "OTEL_C_PROFILER_OUT": f"{HERE / folder}"}


def has_period(hertz):
    """The field `period` of profile.proto, number 12."""
    nanoseconds, varint = round(1e9 / hertz), bytearray([12 << 3])
    while nanoseconds > 127:
        varint.append(nanoseconds & 127 | 128)
        nanoseconds >>= 7
    return lambda data: bytes(varint) + bytes([nanoseconds]) in data


def spool(name):
    """A receiver that is away, and a directory."""
    (HERE / name).mkdir()
    return {"away": True, "OTEL_C_SPOOL_DIR": str(HERE / name)}


def has_files(name):
    return lambda run: any((HERE / name).glob("**/*")) or run.out


def yaml(name):
    (HERE / name).write_text("""file_format: "1.0"
resource: {attributes: [{name: service.name, value: from a file}]}
tracer_provider:
  processors: [{batch: {exporter: {otlp_http: {endpoint: "${OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces"}}}}]
""")
    return str(HERE / name)


FUNCTIONS = {"program": "functions", "OTEL_C_FUNCTIONS_MIN_DURATION": "0"}
MANY = {"mode": "many"}
TAIL = {"mode": "tail"}
BAD_SAMPLER = {"OTEL_TRACES_SAMPLER": "nonsense"}


def rows_of_otlp(name, cases):
    """The same for the general variable and the one for traces."""
    return {f"OTEL_EXPORTER_OTLP_{name}": cases, f"OTEL_EXPORTER_OTLP_TRACES_{name}": cases}


ROWS = {
    "OTEL_LOG_LEVEL": [("none", same(lambda run: run.err, ""), BAD_SAMPLER),
                       ("error", same(lambda run: run.err, ""), BAD_SAMPLER),
                       ("WARN", said("otel-c: warning: OTEL_TRACES_SAMPLER"), BAD_SAMPLER),
                       ("debug", said("otel-c: info: spans go to"), {})],
    "OTEL_CONFIG_FILE": [(yaml("a.yaml"), resource("service.name", "from a file"), {}),
                         ("/nowhere.yaml", said('OTEL_CONFIG_FILE="/nowhere.yaml"'), {})],
    "OTEL_EXPERIMENTAL_CONFIG_FILE": [
        (yaml("a.yaml"), resource("service.name", "from a file"), {}),
        ("/nowhere.yaml", said('OTEL_EXPERIMENTAL_CONFIG_FILE="/nowhere.yaml"'), {})],
    "OTEL_SDK_DISABLED": [("true", nothing, {}), ("TRUE", nothing, {}), ("false", arrived, {})],
    "OTEL_SERVICE_NAME": [("shop", resource("service.name", "shop"), {}),
                          ("é" * 500, resource("service.name", "é" * 500), {}),
                          ("", resource("service.name", "unknown_service:settings"), {})],
    "OTEL_RESOURCE_ATTRIBUTES": [("a=b,c=%20d", all_of(resource("a", "b"), resource("c", " d")), {}),
                                 ("a=b,nothing", all_of(resource("a", None), said(
                                     "OTEL_RESOURCE_ATTRIBUTES is malformed")), {})],
    "OTEL_PROPAGATORS": [("none", injects(), {"mode": "inject"}),
                         ("b3", injects("b3"), {"mode": "inject"}),
                         ("jaeger", injects("uber-trace-id", "uberctx-k"), {"mode": "inject"}),
                         ("tracecontext,baggage", injects("traceparent", "baggage"),
                          {"mode": "inject"}),
                         ("b3multi", injects("x-b3-traceid", "x-b3-spanid", "x-b3-sampled"),
                          {"mode": "inject"})],
    "OTEL_C_CLOCK": [(word, same(lambda run: abs(run.span.start_time_unix_nano / 1e9 - time.time())
                                 < 3600, True), {})
                     for word in ("auto", "tsc", "monotonic", "coarse")],
    "OTEL_C_THREAD_CONTEXT": [("on", said("threadlocal.schema_version"), {"mode": "context"}),
                              ("off", lambda run: "threadlocal" not in run.out or run.out,
                               {"mode": "context"})],
    "OTEL_C_THREAD_CONTEXT_SCHEMA": [("my_schema", said("my_schema"), {"mode": "context"}),
                                     ("", said("tlsdesc_v1_dev"), {"mode": "context"}),
                                     ("s" * 63, said("s" * 63), {"mode": "context"})],
    "OTEL_ENTITIES": [("thing{thing.id=7}", resource("thing.id", "7"), {}),
                      ("thing{", said("OTEL_ENTITIES:"), {})],
    "OTEL_C_RESOURCE_DETECTORS": [
        ("none", with_detector(), {}), ("process", with_detector("process"), {}),
        ("process_command", with_detector("process_command"), {}),
        ("process_owner", with_detector("process_owner"), {}), ("os", with_detector("os"), {}),
        ("host", with_detector("host", "os"), {}), ("service", with_detector("service"), {})],
    "OTEL_TRACES_SAMPLER": [
        ("always_on", arrived, {}), ("always_off", nothing, {}),
        ("parentbased_always_on", arrived, {}), ("parentbased_always_off", nothing, {}),
        ("traceidratio", nothing, {"OTEL_TRACES_SAMPLER_ARG": "0"}),
        ("parentbased_traceidratio", nothing, {"OTEL_TRACES_SAMPLER_ARG": "0"}),
        ("jaeger_remote", goes("sampler jaeger_remote"), NOISY),
        ("parentbased_jaeger_remote", goes("sampler parentbased_jaeger_remote"), NOISY)],
    "OTEL_TRACES_SAMPLER_ARG": [
        ("0", nothing, {"OTEL_TRACES_SAMPLER": "traceidratio"}),
        ("1", arrived, {"OTEL_TRACES_SAMPLER": "traceidratio"}),
        ("most", all_of(arrived, said("OTEL_TRACES_SAMPLER_ARG is \"most\"")),
         {"OTEL_TRACES_SAMPLER": "traceidratio"})],
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": [("0", text_length(0), {}), ("5", text_length(5), {}),
                                          (MOST, text_length(21), {})],
    "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": [
        ("0", text_length(0), {}), (MOST, text_length(21), {"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "5"})],
    "OTEL_ATTRIBUTE_COUNT_LIMIT": limits(attributes),
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": limits(attributes, OTEL_ATTRIBUTE_COUNT_LIMIT="7"),
    "OTEL_SPAN_EVENT_COUNT_LIMIT": limits(lambda run: run.span.events),
    "OTEL_SPAN_LINK_COUNT_LIMIT": limits(lambda run: run.span.links),
    "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT": limits(event_attributes),
    "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT": limits(link_attributes),
    "OTEL_C_ATTRIBUTE_VALUE_DEPTH_LIMIT": [("1", same(Run.depth, 1), {}), ("31", same(Run.depth, 31), {})],
    "OTEL_BSP_SCHEDULE_DELAY": [("0", said("came by itself"), {"mode": "waiting"}),
                                ("20", said("came by itself"), {"mode": "waiting"}),
                                (MOST, same(lambda run: run.count("batches"), 1), {})],
    "OTEL_BSP_EXPORT_TIMEOUT": [
        ("1", same(lambda run: run.count("delivered"), 0), {"receiver": lambda: harness.Receiver(slow)}),
        ("0", same(lambda run: run.count("delivered"), 1), {"receiver": lambda: harness.Receiver(slow)})],
    "OTEL_BSP_MAX_QUEUE_SIZE": [("1", same(lambda run: run.count("queue_full"), 49), MANY),
                                ("50", same(lambda run: run.count("delivered"), 50), MANY)],
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": [("1", same(lambda run: run.count("batches"), 50), MANY),
                                       ("20", same(lambda run: run.count("batches"), 3), MANY),
                                       (MOST, said("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"), MANY)],
    "OTEL_C_QUEUE_MAX_BYTES": [
        ("1048576", lambda run: run.count("byte_limit") > 0 or run.out, {"mode": "large"}),
        ("1099511627776", same(lambda run: run.count("delivered"), 1500), {"mode": "large"})],
    "OTEL_C_TAIL_KEEP_SLOWER_THAN": [("0", kept(lambda run: run.spans, 4), TAIL),
                                     (MOST, all_of(nothing, said("not_kept 4")), TAIL)],
    "OTEL_C_TAIL_KEEP_ERRORS": [("true", same(names_of, {"failed", "child"}), TAIL),
                                ("false", same(names_of, {"fine", "failed", "child"}), TAIL)],
    "OTEL_C_HELD_MAX_BYTES": [
        ("0", said("held_limit 2"), {**TAIL, "OTEL_C_TAIL_KEEP_SLOWER_THAN": "0"}),
        ("1099511627776", kept(lambda run: run.spans, 4),
         {**TAIL, "OTEL_C_TAIL_KEEP_SLOWER_THAN": "0"})],
    "OTEL_TRACES_EXPORTER": [("otlp", arrived, {}), ("none", nothing, {}),
                             ("console", all_of(nothing, said("one of many")), {"mode": "waiting"}),
                             ("otlp/stdout", all_of(nothing, said('"resourceSpans"')), {}),
                             ("console,otlp", all_of(arrived, said("one of many")),
                              {"mode": "waiting", "OTEL_BSP_SCHEDULE_DELAY": "0"})],
    "OTEL_EXPORTER_OTLP_ENDPOINT": [("RECEIVER/base", same(lambda run: run.paths, ["/base/v1/traces"]), {}),
                                    ("nonsense", said("OTEL_EXPORTER_OTLP_ENDPOINT is"),
                                     {"OTEL_EXPORTER_OTLP_TIMEOUT": "1"})],
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": [
        ("RECEIVER/whole", same(lambda run: run.paths, ["/whole"]), {}),
        ("nonsense", all_of(arrived, said("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is")), {})],
    **rows_of_otlp("HEADERS", [("x-one=a%20b,x-two=2", same(lambda run: (
        run.headers("x-one"), run.headers("x-two")), ({"a b"}, {"2"})), {}),
        ("nonsense", all_of(arrived, said("entry 1 is not name=value")), {})]),
    **rows_of_otlp("TIMEOUT", [
        ("1", same(lambda run: run.count("delivered"), 0), {"receiver": lambda: harness.Receiver(slow)}),
        ("0", same(lambda run: run.count("delivered"), 1), {"receiver": lambda: harness.Receiver(slow)})]),
    **rows_of_otlp("PROTOCOL", [
        ("http/protobuf", arrived, {}),
        ("http/json", same(lambda run: run.headers("content-type"), {"application/json"}), {}),
        ("grpc", goes("otlp_grpc_span_exporter"), {**NOISY, "away": True})]),
    **rows_of_otlp("COMPRESSION", [
        (word, same(lambda run, wanted=wanted: run.headers("content-encoding"), {wanted}), {})
        for word, wanted in (("none", None), ("gzip", "gzip"), ("zstd", "zstd"))]),
    **rows_of_otlp("CERTIFICATE", [tls(f"{HERE}/ca.pem", arrived), tls(f"{HERE}/client.pem", nothing),
                                   tls("/nowhere.pem", nothing)]),
    "OTEL_EXPORTER_OTLP_CLIENT_KEY": [tls(f"{HERE}/client.key", arrived, True, **PAIR),
                                      tls("", all_of(nothing, said("CLIENT_CERTIFICATE is given without")),
                                          True, **PAIR)],
    "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": [tls(f"{HERE}/client.pem", arrived, True, **PAIR),
                                              tls("", all_of(nothing, said("CLIENT_KEY is given without")),
                                                  True, **PAIR)],
    "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY": [
        tls(f"{HERE}/client.key", arrived, True, **{**PAIR, "OTEL_EXPORTER_OTLP_CLIENT_KEY": "/no"})],
    "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE": [
        tls(f"{HERE}/client.pem", arrived, True,
            **{**PAIR, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "/no"})],
    **rows_of_otlp("INSECURE", [
        (word, goes(f"spans go to {scheme}://127.0.0.1:9"),
         {**NOISY, "away": True, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "127.0.0.1:9",
          "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}) for word, scheme in (("true", "http"),
                                                                      ("false", "https"))]),
    "OTEL_C_OTLP_TLS_MIN": [tls("1.2", arrived, newest=ssl.TLSVersion.TLSv1_2, **CA),
                            tls("1.3", nothing, newest=ssl.TLSVersion.TLSv1_2, **CA),
                            tls("1.3", arrived, **CA)],
    "OTEL_C_OTLP_CONCURRENCY": [
        # How many are there at once shows only above 64 MiB: unit.otlp_sending has that.
        (concurrency, kept(lambda run: run.spans, 50), {**MANY, "receiver": small})
        for concurrency in ("1", "16")],
    "OTEL_C_PROFILER": [("off", same(lambda run: run.paths, ["/v1/traces"]), {"mode": "burn"}),
                        ("signal", profiles, BURN), ("on", profiles, BURN)],
    "OTEL_C_PROFILER_HZ": [("1000", pprof("hz", has_period(1000)), to_pprof("hz")),
                           ("100", pprof("hz2", has_period(100)), to_pprof("hz2"))],
    "OTEL_C_PROFILER_SIGNAL": [
        *[(number, all_of(said(f"handles signal {number}"), profiles), BURN) for number in ("27", "12")],
        ("9", all_of(said("cannot take this signal"), same(lambda run: run.paths, ["/v1/traces"])), BURN)],
    "OTEL_C_PROFILER_OUT": [("otlp", profiles, BURN),
                            (f"{HERE}/out", pprof("out", lambda data: b"cpu" in data), to_pprof("out"))],
    "OTEL_C_PROFILER_ENDPOINT": [
        ("RECEIVER/mine", lambda run: "/mine" in run.paths or run.paths, BURN)],
    "OTEL_C_PROFILER_NAMES": [
        (word, same(has_names, wanted), BURN) for word, wanted in (("on", True), ("off", False))],
    "OTEL_C_PPROF_LABEL_STYLE": [
        ("otel", pprof("l1", lambda data: b"trace_id" in data), to_pprof("l1")),
        ("datadog", pprof("l2", lambda data: b"span id" in data), to_pprof("l2")),
        ("pyroscope", pprof("l3", lambda data: b"trace_id" not in data), to_pprof("l3"))],
    "OTEL_C_SPOOL_DIR": [(f"{HERE}/spool", all_of(has_files("spool"), said("spooled 1")), spool("spool"))],
    "OTEL_C_SPOOL_MAX_BYTES": [
        ("65536", lambda run: run.count("evicted") > 0 or run.count("dropped") > 0 or run.out,
         {**spool("small"), "mode": "large"}),
        ("1099511627776", said("spooled 1,500"),
         {**spool("large"), "mode": "large"})],
    "OTEL_C_SPOOL_MAX_AGE": [("0", said("waiting 1"), spool("old")),
                             ("1", said("stored 1"), spool("young"))],
    "OTEL_C_FUNCTIONS_MIN_DURATION": [
        ("0", same(names_of, {"outermost", "middle", "innermost"}), FUNCTIONS),
        (MOST, nothing, FUNCTIONS)],
    "OTEL_C_FUNCTIONS_MAX_DEPTH": [
        ("1", same(names_of, {"outermost"}), FUNCTIONS), ("2", same(names_of, {"outermost", "middle"}),
                                                         FUNCTIONS),
        ("256", same(names_of, {"outermost", "middle", "innermost"}), FUNCTIONS)],
    "OTEL_C_FUNCTIONS_EXCLUDE": [
        ("mid*", all_of(same(names_of, {"outermost", "innermost"}), silent), FUNCTIONS),
        ("typo*,mid*", all_of(same(names_of, {"outermost", "innermost"}),
                              said('"typo*" matches no function')), FUNCTIONS)],
}


def broken_values(kind, allowed):
    """Values that the table refuses."""
    if kind in ("count", "duration", "timeout"):
        bounds = re.findall(r"\d+", allowed)
        least, most = int(bounds[0]), int(bounds[1]) if len(bounds) > 1 else None
        outside = [str(least - 1)] + ([str(most + 1)] if most is not None else [])
        return ["12x", "1.5", *outside]
    return {"boolean": ["yes"], "word": ["nonsense"], "list": ["nonsense"]}.get(kind, [])


def fault_of(case):
    """What is wrong with a row's case, as text; None: nothing."""
    name, value, check, more = case
    given = {key: word for key, word in more.items() if key not in ("receiver", name)}
    receiver = more.get("receiver")
    try:
        seen = check(Run(name, value, receiver=receiver() if receiver else None, **given))
    except Exception as bad:
        seen = repr(bad)
    return None if seen is True else f"{name}={value[:60]!r}: {seen}"


def fault_of_refused(case):
    """What is wrong after a value that the table refuses."""
    name, value = case
    exporter = "otlp" if name == "OTEL_TRACES_EXPORTER" else "none"
    run = Run(name, value, program="functions" if "FUNCTIONS" in name else "settings",
              OTEL_TRACES_EXPORTER=exporter)
    lines = [line for line in run.err.splitlines() if name in line]
    is_fine = run.code == 0 and len(lines) == 1 and f'warning: {name}="{value}"' in lines[0]
    return None if is_fine else f"{name}={value!r}: {run.code}, {run.err}"


class Settings(unittest.TestCase):
    """Several programs at a time: most of them wait for something."""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        certificates()
        cls.document = document()

    def assert_no_fault(self, look, cases):
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            faults = [fault for fault in pool.map(look, cases) if fault is not None]
        self.assertEqual(faults, [], "\n" + "\n".join(faults))

    def test_the_document_and_the_rows_have_the_same_variables(self):
        self.assertEqual(sorted(self.document), sorted(ROWS))

    def test_values_have_their_effects(self):
        self.assert_no_fault(fault_of, [(name, *case) for name, cases in ROWS.items()
                                        for case in cases])

    def test_what_the_table_refuses_is_one_warning(self):
        self.assert_no_fault(fault_of_refused,
                             [(name, value) for name, (kind, _, allowed) in self.document.items()
                              for value in broken_values(kind, allowed)])


if __name__ == "__main__":
    harness.main()

# SPDX-License-Identifier: Apache-2.0
"""Every variable of the table in docs/CONFIGURATION.md, and what it does as seen from outside.

The document decides which variables there are, and which values: ROWS has the smallest, the largest and
an ordinary one of each number, and each word of lists and words. What is broken, or just outside its
range, is taken from the table: it is one warning that names the variable and what is used instead, and
the program goes on."""
import concurrent.futures
import gzip
import http.server
import pathlib
import re
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

import harness
import servers
from spool_test import Program

http.server.ThreadingHTTPServer.handle_error = lambda *_: None  # peers break connections off

MOST, MOST_BYTES, MOST_LENGTH = str(2**31 - 1), str(2**40), str(2**63 - 1)
FOLDER = tempfile.TemporaryDirectory()
HERE = pathlib.Path(FOLDER.name)
GONE = "http://127.0.0.1:9"  # nothing listens there
HOUR = 3600


def document():
    places = [*harness.PREFIX.glob("share/doc/**/CONFIGURATION.md"),
              harness.SOURCES / "docs/CONFIGURATION.md"]
    found = re.findall(r"^\| `([A-Z_]+)` \| [^|]* \| (\w+) \| ([^|]*) \| ([^|]*) \|",
                       places[0].read_text(), re.M)
    return {name: (kind, default.strip("` "), allowed) for name, kind, default, allowed in found}


class Run:
    """A program with one setting, and all that can be seen of it. In values RECEIVER is the URL of the
    receiver and FOLDER a directory. `left`: so many seconds ago a program left a span in FOLDER."""

    def __init__(self, name, value, mode="rich", away=False, receiver=None, left=None, **env):
        folder = tempfile.mkdtemp(dir=HERE)
        settings = harness.program("settings")
        command = {"functions": ["functions"],
                   "terminal": ["script", "-qec", f"{settings} waiting", "/dev/null"]}.get(mode, [settings, mode])
        port = 0 if left is None else self.leave_span(folder, left)
        with receiver or harness.Receiver(port=port) as self.receiver:
            base = {"OTEL_EXPORTER_OTLP_ENDPOINT": GONE if away else "RECEIVER",
                    "OTEL_EXPORTER_OTLP_TIMEOUT": "300" if away else "10000", **env, name: value}
            done = harness.run(*command, env={
                key: text.replace("RECEIVER", self.receiver.endpoint).replace("FOLDER", folder)
                for key, text in base.items()})
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.files = [path for path in pathlib.Path(folder).glob("**/*") if path.is_file()]
        self.spans = self.receiver.spans()
        self.span = self.spans[0] if self.spans else None

    def leave_span(self, folder, seconds):
        """Returns the port of a receiver that has refused the span. One of its own: what a busy machine
        answers only after the program has ended is refused, too."""
        with harness.Receiver(lambda _: (503, {}, b"")) as refusing:
            program = Program(folder, refusing.port)
            program.tell(f"step -{seconds}")
            program.tell("span left")
            program.end()
        return refusing.port

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


def said(*texts):
    return lambda run: True if all(text in run.out + run.err for text in texts) else (
        f"not all of {texts!r}: {run.out}{run.err}")


def all_of(*checks):
    return lambda run: next((seen for seen in (check(run) for check in checks) if seen is not True), True)


def count(word, least, most=None):
    """What the statistics say."""
    return lambda run: least <= run.count(word) <= (least if most is None else most) or f"{word}: {run.out}"


def names(*wanted):
    return same(lambda run: sorted(span.name for span in run.spans), sorted(wanted))


def text_length(wanted):
    return same(lambda run: len(harness.attributes(run.span).get("k1", "")), wanted)


def injects(*wanted):
    return same(lambda run: sorted(re.findall("header (.*)", run.out.lower())), sorted(wanted))


def levels(*wanted):
    return same(lambda run: set(re.findall(r"^otel-c: (\w+):", run.err, re.M)), set(wanted))


def detects(*wanted):
    keys = {"process.pid": "process", "process.command_args": "process_command",
            "process.owner": "process_owner", "host.name": "host", "os.type": "os",
            "service.instance.id": "service"}
    return same(lambda run: {keys[key] for key in keys if key in run.resource}, set(wanted))


def clock(are_ticks):
    """Coarse: some span of a moment ended in the tick in which it began. Otherwise time passes in some."""
    return same(lambda run: any((span.start_time_unix_nano == span.end_time_unix_nano) == are_ticks
                                for span in run.spans)
                and abs(run.span.start_time_unix_nano / 1e9 - time.time()) < HOUR, True)


arrived = same(lambda run: len(run.spans), 1)
nothing = same(lambda run: len(run.spans), 0)
silent = same(lambda run: run.err, "")


def row(env, cases):
    return [(value, check, env) for value, check in cases.items()]


def rows_of_otlp(name, cases):
    """The same for the general variable and the one for traces."""
    return {f"OTEL_EXPORTER_OTLP_{name}": cases, f"OTEL_EXPORTER_OTLP_TRACES_{name}": cases}


def limits(part, **env):
    """Of a number of parts: 200 are there."""
    return row(env, {value: same(lambda run: len(part(run)), wanted)
                     for value, wanted in (("0", 0), ("1", 1), (MOST, 200))})


def lengths(**env):
    return row(env, {"0": text_length(0), "5": text_length(5), MOST_LENGTH: text_length(21)})


# --- receivers ---

def tls_receiver(newest, wants_client):
    receiver = harness.Receiver()
    context = servers.tls(HERE, "server", wants_client, maximum_version=newest)
    receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
    receiver.endpoint = receiver.endpoint.replace("http:", "https:")
    return receiver


def tls(cases, wants_client=False, newest=ssl.TLSVersion.TLSv1_3, **env):
    return [(value, check, {"receiver": lambda: tls_receiver(newest, wants_client), **env,
                            "OTEL_EXPORTER_OTLP_TIMEOUT": "30000" if check is arrived else "2000"})
            for value, check in cases.items()]


def together(wanted):
    """A receiver that answers nobody before so many requests are there at a time; .most were."""
    here, lock, all_here = [], threading.Lock(), threading.Event()

    def answer(_):
        with lock:
            here.append(None)
            receiver.most = max(receiver.most, len(here))
            if len(here) == wanted:
                all_here.set()
        all_here.wait(30)
        time.sleep(0.05)  # one more would come now
        with lock:
            here.pop()
        return 200, {}, b""

    receiver = harness.Receiver(answer)
    receiver.most = 0
    return receiver


# --- profiles ---

def profiles(run):
    return "/v1development/profiles" in run.paths or run.paths


def has_names(run):
    return any(b"burn" in body for path, _, body in run.receiver.heard if "profiles" in path)


def pprof(*wanted, without=()):
    """What the files have."""
    def look(run):
        data = b"".join(gzip.decompress(file.read_bytes()) for file in run.files)
        return all(word in data for word in wanted) and not any(word in data for word in without) or (
            run.files, run.out, run.err)
    return look


def period(hertz):
    """The field `period` of profile.proto, number 12."""
    nanoseconds, varint = round(1e9 / hertz), bytearray([12 << 3])
    while nanoseconds > 127:
        varint.append(nanoseconds & 127 | 128)
        nanoseconds >>= 7
    return bytes(varint) + bytes([nanoseconds])


YAML = HERE / "a.yaml"
YAML.write_text("""file_format: "1.0"
resource: {attributes: [{name: service.name, value: from a file}]}
tracer_provider:
  processors: [{batch: {exporter: {otlp_http: {endpoint: "${OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces"}}}}]
""")
MANY, LARGE, TAIL, INJECT, CONTEXT = ({"mode": word} for word in ("many", "large", "tail", "inject", "context"))
WAITING, HELD = {"mode": "waiting"}, {"mode": "held", "OTEL_C_TAIL_KEEP_SLOWER_THAN": "0"}
FUNCTIONS = {"mode": "functions", "OTEL_C_FUNCTIONS_MIN_DURATION": "0"}
BURN = {"mode": "burn", "OTEL_C_PROFILER": "signal", "OTEL_C_PROFILER_HZ": "500"}
PPROF = {**BURN, "OTEL_C_PROFILER_OUT": "FOLDER"}
SPOOL = {"away": True, "OTEL_C_SPOOL_DIR": "FOLDER"}
CA = {"OTEL_EXPORTER_OTLP_CERTIFICATE": f"{HERE}/ca.pem"}
PAIR = {**CA, "OTEL_EXPORTER_OTLP_CLIENT_KEY": f"{HERE}/client.key",
        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": f"{HERE}/client.pem"}
TRIO = ("outermost", "middle", "innermost")
TIMEOUTS = row({"receiver": lambda: harness.Receiver(lambda _: time.sleep(0.3) or (200, {}, b""))}, {
    "1": count("delivered", 0), **{value: count("delivered", 1) for value in ("0", "60000", MOST)}})


def left(seconds, **expected):
    """A span that was left so long ago, and what becomes of it."""
    return row({"OTEL_C_SPOOL_DIR": "FOLDER", "left": seconds}, {
        value: names("rich", "left") if is_kept else all_of(names("rich"), count("expired", 1))
        for value, is_kept in expected.items()})


ROWS = {
    "OTEL_LOG_LEVEL": row({**BURN, "away": True, "OTEL_TRACES_SAMPLER": "nonsense",
                           "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, {
        "none": levels(), "error": levels("error"), "WARN": levels("error", "warning"),
        "debug": levels("error", "warning", "info", "debug")}) + row({
            "OTEL_EXPORTER_OTLP_ENDPOINT": "", "OTEL_TRACES_SAMPLER": "always_off"}, {
                "info": levels("info"), "warn": levels()}),
    **{f"OTEL_{word}CONFIG_FILE": row({}, {
        str(YAML): resource("service.name", "from a file"),
        "/nowhere.yaml": said(f'OTEL_{word}CONFIG_FILE="/nowhere.yaml"')}) for word in ("", "EXPERIMENTAL_")},
    "OTEL_SDK_DISABLED": row({}, {"true": nothing, "TRUE": nothing, "false": arrived}),
    "OTEL_SERVICE_NAME": row({}, {"shop": resource("service.name", "shop"),
                                  "é" * 500: resource("service.name", "é" * 500),
                                  "": resource("service.name", "unknown_service:settings")}),
    "OTEL_RESOURCE_ATTRIBUTES": row({}, {
        "a=b,c=%20d": all_of(resource("a", "b"), resource("c", " d")),
        "a=b,nothing": all_of(resource("a", None), said("OTEL_RESOURCE_ATTRIBUTES is malformed"))}),
    "OTEL_PROPAGATORS": row(INJECT, {
        "none": injects(), "b3": injects("b3"), "jaeger": injects("uber-trace-id", "uberctx-k"),
        "tracecontext,baggage": injects("traceparent", "baggage"),
        "b3multi": injects("x-b3-traceid", "x-b3-spanid", "x-b3-sampled")}),
    "OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS": row({"mode": "http"}, {
        "GET,PURGE": names("PURGE"), "GET": names("HTTP"), "purge": names("HTTP"), "": names("HTTP")}),
    "OTEL_C_CLOCK": row(MANY, {"auto": clock(False), "tsc": clock(False), "monotonic": clock(False),
                               "coarse": clock(True)}),
    "OTEL_C_THREAD_CONTEXT": row(CONTEXT, {"on": said("threadlocal.schema_version"),
                                           "off": lambda run: "threadlocal" not in run.out or run.out}),
    "OTEL_C_THREAD_CONTEXT_SCHEMA": row(CONTEXT, {"my_schema": said("my_schema"), "": said("tlsdesc_v1_dev"),
                                                  "s" * 63: all_of(said("s" * 63), silent),
                                                  "s" * 64: said("is longer than 63 bytes; using its first 63")}),
    "OTEL_ENTITIES": row({}, {"thing{thing.id=7}": resource("thing.id", "7"),
                              "thing{": said("OTEL_ENTITIES:")}),
    "OTEL_C_RESOURCE_DETECTORS": row({}, {
        "none": detects(), "container": detects(), "host": detects("host", "os"),
        **{word: detects(word) for word in ("process", "process_command", "process_owner", "os", "service")}}),
    "OTEL_TRACES_SAMPLER": row({"OTEL_TRACES_SAMPLER_ARG": "0"}, {
        "always_on": arrived, "always_off": nothing, "traceidratio": nothing,
        "parentbased_always_on": arrived, "parentbased_always_off": nothing,
        "parentbased_traceidratio": nothing}) + row({"OTEL_LOG_LEVEL": "debug"}, {
            word: said(f"sampler {word}") for word in ("jaeger_remote", "parentbased_jaeger_remote")}),
    "OTEL_TRACES_SAMPLER_ARG": row({"OTEL_TRACES_SAMPLER": "traceidratio"}, {
        "0": nothing, "1": arrived, "most": all_of(arrived, said("OTEL_TRACES_SAMPLER_ARG=\"most\""))}),
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": lengths(),
    "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": lengths(OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT="9"),
    "OTEL_ATTRIBUTE_COUNT_LIMIT": limits(lambda run: run.span.attributes),
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": limits(lambda run: run.span.attributes, OTEL_ATTRIBUTE_COUNT_LIMIT="7"),
    "OTEL_SPAN_EVENT_COUNT_LIMIT": limits(lambda run: run.span.events),
    "OTEL_SPAN_LINK_COUNT_LIMIT": limits(lambda run: run.span.links),
    "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT": limits(lambda run: run.span.events[0].attributes),
    "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT": limits(lambda run: run.span.links[0].attributes),
    "OTEL_C_ATTRIBUTE_VALUE_DEPTH_LIMIT": row({}, {value: same(Run.depth, int(value))
                                                   for value in ("0", "1", "31")}),
    "OTEL_BSP_SCHEDULE_DELAY": row(WAITING, {"0": said("came by itself"), "20": said("came by itself"),
                                             MOST: all_of(said("did not come"), arrived)}),
    "OTEL_BSP_EXPORT_TIMEOUT": TIMEOUTS,
    "OTEL_BSP_MAX_QUEUE_SIZE": row(MANY, {"1": count("queue_full", 49), "20": count("queue_full", 30),
                                          MOST: count("delivered", 50)}),
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": row(MANY, {
        "1": count("batches", 50), "20": count("batches", 3),
        MOST: all_of(count("batches", 1), said("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"))}),
    "OTEL_C_QUEUE_MAX_BYTES": row(LARGE, {
        "1048576": count("delivered", 400, 550), "2097152": count("delivered", 900, 1100),
        MOST_BYTES: count("delivered", 1500)}),
    "OTEL_C_TAIL_KEEP_SLOWER_THAN": row(TAIL, {
        "0": names("fine", "failed", "slow", *["child"] * 3), "50000": names("slow", "child"),
        "50001": nothing, MOST: all_of(nothing, count("not_kept", 6))}),
    "OTEL_C_TAIL_KEEP_ERRORS": row(TAIL, {"true": names("failed", "child"),
                                          "false": names("fine", "failed", "slow", *["child"] * 3)}),
    "OTEL_C_HELD_MAX_BYTES": row(HELD, {
        "0": count("held_limit", 1500), "1048576": count("held_limit", 900, 1100),
        MOST_BYTES: count("delivered", 1501)}),
    "OTEL_TRACES_EXPORTER": row(WAITING, {
        "otlp": arrived, "none": nothing, "console": all_of(nothing, said("one of many")),
        "otlp/stdout": all_of(nothing, said('"resourceSpans"')),
        "console,otlp": all_of(arrived, said("one of many"))}),
    "OTEL_EXPORTER_OTLP_ENDPOINT": row({"OTEL_EXPORTER_OTLP_TIMEOUT": "1"}, {
        "nonsense": said("OTEL_EXPORTER_OTLP_ENDPOINT is")}) + row({}, {
            "RECEIVER/base": same(lambda run: run.paths, ["/base/v1/traces"])}),
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": row({}, {
        "RECEIVER/whole": same(lambda run: run.paths, ["/whole"]),
        "nonsense": all_of(arrived, said("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is"))}),
    **rows_of_otlp("HEADERS", row({}, {
        "x-one=a%20b,x-two=2": same(lambda run: (run.headers("x-one"), run.headers("x-two")), ({"a b"}, {"2"})),
        "nonsense": all_of(arrived, said("entry 1 is not name=value")),
        "x-good=1,no equals sign,x-bad=line%0Abreak": all_of(
            same(lambda run: (run.headers("x-good"), run.headers("x-bad")), ({"1"}, {None})),
            lambda run: "break" not in run.err or run.err)})),
    **rows_of_otlp("TIMEOUT", TIMEOUTS),
    **rows_of_otlp("PROTOCOL", row({}, {
        "http/protobuf": arrived,
        "http/json": same(lambda run: run.headers("content-type"), {"application/json"})}) + row(
            {"OTEL_LOG_LEVEL": "debug", "away": True}, {"grpc": said("otlp_grpc_span_exporter")})),
    **rows_of_otlp("COMPRESSION", row({}, {
        word: same(lambda run, wanted=wanted: run.headers("content-encoding"), {wanted})
        for word, wanted in (("none", None), ("gzip", "gzip"), ("zstd", "zstd"))})),
    **rows_of_otlp("CERTIFICATE", tls({f"{HERE}/ca.pem": arrived, f"{HERE}/client.pem": nothing,
                                       "/nowhere.pem": nothing})),
    **{f"OTEL_EXPORTER_OTLP_CLIENT_{mine}": tls({
        value: arrived, "": all_of(nothing, said(f"CLIENT_{other} is given without")),
        "/nowhere.pem": nothing}, True, **PAIR)
       for mine, other, value in (("KEY", "CERTIFICATE", f"{HERE}/client.key"),
                                  ("CERTIFICATE", "KEY", f"{HERE}/client.pem"))},
    **{f"OTEL_EXPORTER_OTLP_TRACES_CLIENT_{mine}": tls({value: arrived, "/nowhere.pem": nothing}, True, **{
        **PAIR, f"OTEL_EXPORTER_OTLP_CLIENT_{mine}": "/no"})
       for mine, value in (("KEY", f"{HERE}/client.key"), ("CERTIFICATE", f"{HERE}/client.pem"))},
    **rows_of_otlp("INSECURE", row({
        "OTEL_LOG_LEVEL": "debug", "away": True, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "127.0.0.1:9"}, {
            "true": said("spans go to http://127.0.0.1:9"), "false": said("spans go to https://127.0.0.1:9")})),
    "OTEL_C_OTLP_TLS_MIN": tls({"1.2": arrived, "1.3": nothing}, newest=ssl.TLSVersion.TLSv1_2, **CA)
                           + tls({"1.3": arrived}, **CA),
    "OTEL_C_OTLP_CONCURRENCY": [case for number in (1, 4, 16) for case in row(
        {"mode": "huge", "OTEL_EXPORTER_OTLP_TIMEOUT": "30000", "receiver": lambda number=number: together(number)},
        {str(number): all_of(same(lambda run: run.receiver.most, number), count("delivered", 20))})],
    "NO_COLOR": row({"mode": "terminal", "OTEL_TRACES_EXPORTER": "console"}, {
        "": said("\x1b["), "1": all_of(said("one of many"), lambda run: "\x1b[" not in run.out or run.out)}),
    "OTEL_C_PROFILER": row({"mode": "burn"}, {
        "off": same(lambda run: run.paths, ["/v1/traces"]), "signal": profiles, "on": profiles, "auto": profiles,
        "perf": lambda run: profiles(run) is True or said("perf")(run)}),
    "OTEL_C_PROFILER_HZ": row({**PPROF, "mode": "burn-long"}, {
        str(hertz): pprof(period(hertz)) for hertz in (1, 100, 10000)}),
    "OTEL_C_PROFILER_SIGNAL": row(BURN, {
        **{number: all_of(said(f"handles signal {number}\n"), profiles) for number in ("1", "12", "27", "64")},
        "9": all_of(said("cannot take this signal"), same(lambda run: run.paths, ["/v1/traces"]))}),
    "OTEL_C_PROFILER_OUT": row(BURN, {
        "otlp": profiles, "FOLDER": pprof(b"cpu"),
        "/nowhere": all_of(said("profiles cannot be written in /nowhere"), arrived)}),
    "OTEL_C_PROFILER_ENDPOINT": row(BURN, {
        "RECEIVER/mine": lambda run: "/mine" in run.paths or run.paths,
        "nonsense": all_of(profiles, said("OTEL_C_PROFILER_ENDPOINT is"))}),
    "OTEL_C_PROFILER_NAMES": row(BURN, {"auto": same(has_names, True), "on": same(has_names, True),
                                        "off": same(has_names, False)}),
    "OTEL_C_PPROF_LABEL_STYLE": row(PPROF, {
        "otel": pprof(b"trace_id"), "datadog": pprof(b"span id"), "pyroscope": pprof(without=[b"trace_id"])}),
    "OTEL_C_SPOOL_DIR": row(SPOOL, {
        "FOLDER": all_of(lambda run: run.files != [], count("spooled", 1)),
        "/nowhere": all_of(said("No such file or directory"), count("retry_exhausted", 1))}),
    "OTEL_C_SPOOL_MAX_BYTES": row({**SPOOL, **LARGE, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "100"}, {
        "65536": count("waiting", 0), "1048576": count("waiting", 400, 500),
        MOST_BYTES: all_of(count("spooled", 1500), count("waiting", 1500))}),
    "OTEL_C_SPOOL_MAX_AGE": [
        *left(8000 * HOUR, **{"0": True, MOST: False}), *left(60, **{"1": False, "3600000": True}),
        *left(2 * HOUR, **{"3600000": False, "": True}), *left(25 * HOUR, **{"": False, MOST: True})],
    "OTEL_C_FUNCTIONS_MIN_DURATION": row(FUNCTIONS, {
        "0": names(*TRIO, "slow"), MOST: nothing,
        "1000": lambda run: "slow" in [span.name for span in run.spans]}),
    "OTEL_C_FUNCTIONS_MAX_DEPTH": row(FUNCTIONS, {
        "1": names("outermost", "slow"), "2": names("outermost", "middle", "slow"), "256": names(*TRIO, "slow")}),
    "OTEL_C_FUNCTIONS_EXCLUDE": row(FUNCTIONS, {
        "mid*": all_of(names("outermost", "innermost", "slow"), silent),
        "typo*,mid*": all_of(names("outermost", "innermost", "slow"), said('"typo*" matches no function'))}),
}
ROWS["OTEL_EXPORTER_OTLP_TRACES_HEADERS"] = ROWS["OTEL_EXPORTER_OTLP_TRACES_HEADERS"] + row(
    {"OTEL_EXPORTER_OTLP_HEADERS": "x-general=1,x-both=general"}, {"x-both=traces": same(
        lambda run: (run.headers("x-general"), run.headers("x-both")), ({None}, {"traces"}))})


def values_of(kind, allowed):
    """Which values a row has to have, how many at least, and which values the table refuses."""
    if kind in ("count", "duration", "timeout"):
        least, most = (re.findall(r"\d+", allowed) + [MOST_LENGTH])[:2]
        return {least, most}, 3, ["12x", "1.5", str(int(least) - 1), str(int(most) + 1)]
    words, unsupported = (re.findall("`([^`]+)`", part) for part in allowed.partition("Not supported")[::2])
    return set(words), 2, [] if kind == "string" else ["nonsense", *unsupported]


def fault_of(case):
    """What is wrong with a row's case, as text; None: nothing."""
    name, value, check, env = case
    given = {key: word for key, word in env.items() if key not in ("receiver", name)}
    try:
        seen = check(Run(name, value, receiver=env["receiver"]() if "receiver" in env else None, **given))
    except Exception as bad:
        seen = repr(bad)
    return None if seen is True else f"{name}={value[:60]!r}: {seen}"


def fault_of_refused(case):
    """What is wrong after a value that the table refuses."""
    name, value, default = case
    exporter = "otlp" if name == "OTEL_TRACES_EXPORTER" else "none"
    run = Run(name, value, mode="functions" if "FUNCTIONS" in name else "rich", OTEL_TRACES_EXPORTER=exporter)
    lines = [line for line in run.err.splitlines() if name in line]
    instead = f"; using {default}" if default else "; it counts as unset"
    is_fine = (run.code == 0 and len(lines) == 1 and f'warning: {name}="{value}"' in lines[0]
               and lines[0].endswith(instead))
    return None if is_fine else f"{name}={value!r}: {run.code}, {run.err}"


class Settings(unittest.TestCase):
    """Several programs at a time: most of them wait for something."""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        harness.certificates(HERE)
        cls.document = document()

    def assert_no_fault(self, look, cases):
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            faults = [fault for fault in pool.map(look, cases) if fault is not None]
        self.assertEqual(faults, [], "\n" + "\n".join(faults))

    def test_the_document_and_the_rows_have_the_same_variables_and_values(self):
        self.assertEqual(sorted(self.document), sorted(ROWS))
        for name, (kind, _, allowed) in self.document.items():
            values = {value for value, _, _ in ROWS[name]}
            words = values.union(*(value.lower().split(",") for value in values))
            needed, least, _ = values_of(kind, allowed)
            self.assertLessEqual(needed, words, name)
            self.assertGreaterEqual(len(values), least, name)

    def test_values_have_their_effects(self):
        self.assert_no_fault(fault_of, [(name, *case) for name, cases in ROWS.items()
                                        for case in cases])

    def test_what_the_table_refuses_is_one_warning(self):
        self.assert_no_fault(fault_of_refused, [
            (name, value, default) for name, (kind, default, allowed) in self.document.items()
            for value in values_of(kind, allowed)[2]])


if __name__ == "__main__":
    harness.main()

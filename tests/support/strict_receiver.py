# SPDX-License-Identifier: Apache-2.0
"""A receiver that takes nothing but what OTLP says, over HTTP (protobuf and JSON) and gRPC.

    with tempfile.TemporaryDirectory() as folder:
        strict = StrictReceiver(folder, receiver.Certificates(folder, make_certificates))
        strict.start()
        ... export to strict.endpoint_of(protocol, mode) ...
        strict.stop()
        for request in strict.take(): ...

It is made of OpenTelemetry's messages, Google's protobuf and gRPC, Python's HTTP server and
TLS, and nothing of ours. What it refuses is in `faults`, in words. Ways to it ("modes") are
plain, tls, mtls and unix. gRPC connections go through a relay that counts bytes, because
gRPC for Python does not tell whether a message was compressed.

Run by the Python of receiver.run_with_peers.
"""
import base64
import concurrent.futures
import gzip
import http.server
import io
import json
import os
import pathlib
import re
import socket
import socketserver
import ssl
import threading
from urllib.parse import urlsplit

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would tell of clients that are refused
import grpc
import zstandard
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

import receiver

MODES = receiver.EveryWay.MODES
METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
MOST_BYTES = 64 << 20
AGENT = re.compile(r"OTel-OTLP-Exporter-C/\d+\.\d+\.\d+")
TYPES = {"application/x-protobuf": "http/protobuf", "application/json": "http/json"}
IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


class Fault(Exception):
    """What is wrong with a request."""


def demand(condition, words):
    if not condition:
        raise Fault(words)


class Request:
    """What came, and how."""

    def __init__(self, message, **facts):
        self.message = message
        self.facts = facts

    def as_json(self):
        """In OTLP's JSON, as the collector writes it."""
        found = json_format.MessageToDict(self.message, use_integers_for_enums=True)
        for _, _, span in receiver.spans_of(found):
            for part in [span, *span.get("links", [])]:
                for field in IDS.keys() & part.keys():
                    number = base64.b64decode(part[field])
                    part[field] = number.hex() if any(number) else ""
        return found


# --- Messages ----------------------------------------------------------------

def decompressed(body, encoding):
    if encoding is None:
        return body
    try:
        if encoding == "gzip":
            return gzip.decompress(body)
        if encoding == "zstd":
            stream = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(body))
            return stream.read()
    except (OSError, EOFError, ValueError, zstandard.ZstdError) as bad:
        raise Fault(f"this is no {encoding}: {bad}") from None
    raise Fault(f"Content-Encoding: {encoding}")


def parsed(body):
    try:
        message = service.ExportTraceServiceRequest.FromString(body)  # refuses what is no UTF-8
    except Exception as bad:  # DecodeError has moved between versions
        raise Fault(f"this is no ExportTraceServiceRequest: {bad}") from None
    without = service.ExportTraceServiceRequest()
    without.CopyFrom(message)
    without.DiscardUnknownFields()
    demand(without.ByteSize() == message.ByteSize(), "there are fields that nobody knows")
    return message


def _no_twins(pairs):
    found = dict(pairs)
    demand(len(found) == len(pairs), "a name is there twice in an object of JSON")
    return found


def _check_json(value, name=""):
    """What json_format does not mind, but OTLP does. Ids become what json_format reads."""
    if isinstance(value, list):
        for element in value:
            _check_json(element, name)
    elif isinstance(value, dict):
        for key, inner in value.items():
            demand("_" not in key, f"{key} is not lowerCamelCase")
            if key in IDS:
                demand(re.fullmatch("([0-9a-fA-F]{2})*", inner), f"{key} is {inner!r}")
                value[key] = base64.b64encode(bytes.fromhex(inner)).decode()
            elif key in ("kind", "code"):
                demand(isinstance(inner, int), f"the enumeration {key} is {inner!r}")
            elif key.endswith("UnixNano") or key == "intValue":
                demand(isinstance(inner, str), f"the 64-bit {key} is no string")
            else:
                _check_json(inner, key)


def parsed_json(body):
    try:
        value = json.loads(body.decode("utf-8"), object_pairs_hook=_no_twins,
                           parse_constant=lambda word: demand(False, f"{word} is no JSON"))
        _check_json(value)
        return json_format.ParseDict(value, service.ExportTraceServiceRequest())
    except (UnicodeDecodeError, ValueError, json_format.ParseError) as bad:
        raise Fault(f"this is no OTLP/JSON: {bad}") from None


def check_attributes(attributes, where):
    keys = [attribute.key for attribute in attributes]
    demand(len(set(keys)) == len(keys), f"a key is twice in {where}")
    demand("" not in keys, f"an empty key is in {where}")


def check_span(span):
    demand(len(span.trace_id) == 16 and any(span.trace_id), "a trace id is not valid")
    demand(len(span.span_id) == 8 and any(span.span_id), "a span id is not valid")
    demand(len(span.parent_span_id) in (0, 8), "a parent id is not valid")
    demand(1 <= span.kind <= 5, f"kind {span.kind}")
    demand(0 <= span.status.code <= 2, f"status {span.status.code}")
    demand(span.start_time_unix_nano and span.end_time_unix_nano, "a span without its times")
    check_attributes(span.attributes, "a span")
    for event in span.events:
        demand(event.time_unix_nano, "an event without its time")
        check_attributes(event.attributes, "an event")
    for link in span.links:
        demand(len(link.trace_id) in (0, 16) and len(link.span_id) in (0, 8), "ids of a link")
        check_attributes(link.attributes, "a link")


def check_message(message):
    demand(message.resource_spans, "a request without spans")
    for resource_group in message.resource_spans:
        check_attributes(resource_group.resource.attributes, "a resource")
        demand(resource_group.scope_spans, "a resource without spans")
        for scope_group in resource_group.scope_spans:
            check_attributes(scope_group.scope.attributes, "a scope")
            demand(scope_group.spans, "a scope without spans")
            for span in scope_group.spans:
                check_span(span)


# --- HTTP --------------------------------------------------------------------

class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one write

    def log_message(self, *_):
        pass

    def setup(self):
        self.request.settimeout(60)
        if self.server.tls is not None:  # here, where it holds up nobody else
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def finish(self):
        super().finish()
        self.request.close()

    def do_POST(self):
        content_type = self.headers.get("Content-Type")
        try:
            body = self._body()
            self._check_head()
            encoding = self.headers.get("Content-Encoding")
            plain = decompressed(body, encoding)
            message = (parsed if content_type == "application/x-protobuf" else parsed_json)(plain)
            check_message(message)
        except Fault as fault:
            self.server.strict.add_fault(f"{content_type}: {fault}")
            self._answer(400, "text/plain", str(fault).encode())
            return
        facts = {"protocol": TYPES[content_type], "mode": self.server.mode,
                 "compression": encoding or "none", "bytes": len(body), "plain_bytes": len(plain)}
        if self.server.tls is not None:
            facts.update(client=common_name(self.request.getpeercert()),
                         tls=self.request.version())
        self.server.strict.add(Request(message, **facts))
        answer = b"{}" if content_type == "application/json" else b""
        self._answer(200, content_type, answer)

    def do_GET(self):
        self.server.strict.add_fault(f"a {self.command} of {self.path}")
        self._answer(405, "text/plain", b"")

    do_PUT = do_HEAD = do_CONNECT = do_GET

    def _check_head(self):
        names = [name.lower() for name in self.headers.keys()]
        demand(len(set(names)) == len(names), f"a header is there twice: {names}")
        demand(self.request_version == "HTTP/1.1", self.request_version)
        demand(self.path == "/v1/traces", f"the path {self.path}")
        demand(self.headers.get("Content-Type") in TYPES,
               f"the type {self.headers.get('Content-Type')}")
        demand(AGENT.search(self.headers.get("User-Agent", "")),
               f"the agent {self.headers.get('User-Agent')}")
        demand("expect" not in names, "it expects 100-continue")
        host = self.headers.get("Host", "")
        demand(host == self.server.host, f"the host {host!r} and not {self.server.host!r}")

    def _body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            raise Fault("the body is chunked")
        length = int(self.headers.get("Content-Length", -1))
        demand(0 <= length <= MOST_BYTES, f"a body of {length} bytes")
        body = self.rfile.read(length)
        demand(len(body) == length, "the body is cut off")
        return body

    def _answer(self, status, content_type, body):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def common_name(certificate):
    return next((value for part in (certificate or {}).get("subject", ())
                 for name, value in part if name == "commonName"), None)


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, strict, mode, address, tls):
        self.address_family = socket.AF_UNIX if mode == "unix" else socket.AF_INET
        self.strict, self.mode, self.tls = strict, mode, tls
        super().__init__(address if mode == "unix" else ("127.0.0.1", address), _Handler)
        self.host = urlsplit(strict.endpoint_of("http/protobuf", mode)).netloc or "localhost"

    def server_bind(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)

    def handle_error(self, request, client_address):
        pass  # a connection that ends, or speaks no TLS, is the test's business

    def get_request(self):
        request, _ = super().get_request()
        return request, ("", 0)


# --- gRPC --------------------------------------------------------------------

class _Relay:
    """Hands the bytes of connections on, and counts those that go to the server."""

    def __init__(self, mode, address, to_address):
        self.family = socket.AF_UNIX if mode == "unix" else socket.AF_INET
        self.to_address = self._name(to_address)
        self.count = 0
        self.counting = threading.Lock()
        self.listener = socket.socket(self.family)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(self._name(address))
        self.listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _name(self, address):
        return str(address) if self.family == socket.AF_UNIX else ("127.0.0.1", address)

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, socket.socket(self.family) as server:
            server.connect(self.to_address)
            back = threading.Thread(target=self._copy, args=(server, client, False), daemon=True)
            back.start()
            self._copy(client, server, True)
            back.join()

    def _copy(self, one, other, counts):
        try:
            while piece := one.recv(1 << 18):
                if counts:
                    with self.counting:
                        self.count += len(piece)
                other.sendall(piece)
        except OSError:
            pass
        try:
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def stop(self):
        self.listener.close()


class _Service(grpc.GenericRpcHandler):
    def __init__(self, strict, mode, relay):
        self.strict, self.mode, self.relay = strict, mode, relay
        self.counted = 0

    def service(self, call):
        if call.method != METHOD:
            self.strict.add_fault(f"a call of {call.method}")
            return None
        return grpc.unary_unary_rpc_method_handler(self._export)

    def _export(self, body, context):
        metadata = list(context.invocation_metadata())
        try:
            agent = dict(metadata).get("user-agent", "")
            demand(AGENT.search(agent), f"the agent {agent!r}")
            message = parsed(body)
            check_message(message)
        except Fault as fault:
            self.strict.add_fault(f"grpc: {fault}")
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(fault))
        client = context.auth_context().get("x509_common_name", [b""])[0].decode()
        sent = self.relay.count
        self.strict.add(Request(message, protocol="grpc", mode=self.mode, client=client or None,
                                bytes=sent - self.counted, plain_bytes=len(body)))
        self.counted = sent
        return b""


# --- All of it ---------------------------------------------------------------

class StrictReceiver:
    def __init__(self, folder, certificates):
        folder = pathlib.Path(folder)
        self.certificates = certificates
        ports = receiver.free_ports(9)
        self.addresses = {(mode, kind): ports.pop() for mode in MODES[:3]
                          for kind in ("http", "grpc", "inner")}
        self.addresses.update({("unix", kind): folder / f"strict-{kind}.sock"
                               for kind in ("http", "grpc", "inner")})
        self.faults = []
        self._lock = threading.Lock()
        self._requests = []
        self._servers = []

    def endpoint_of(self, protocol, mode="plain"):
        return receiver.endpoint(
            mode, self.addresses[mode, "grpc" if protocol == "grpc" else "http"])

    def add(self, request):
        with self._lock:
            self._requests.append(request)

    def add_fault(self, words):
        with self._lock:
            self.faults.append(words)

    def take(self):
        """The requests since the last call."""
        with self._lock:
            taken, self._requests = self._requests, []
        return taken

    def start(self):
        for mode in MODES:
            tls = self._context(mode) if "tls" in mode else None
            server = _Server(self, mode, self.addresses[mode, "http"]
                             if mode != "unix" else str(self.addresses[mode, "http"]), tls)
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            self._servers.append(server)
            self._start_grpc(mode)

    def _context(self, mode):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificates.server, self.certificates.server_key)
        if mode == "mtls":
            context.load_verify_locations(self.certificates.authority)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _start_grpc(self, mode):
        inner = self.addresses[mode, "inner"]
        relay = _Relay(mode, self.addresses[mode, "grpc"], inner)
        server = grpc.server(
            concurrent.futures.ThreadPoolExecutor(2),
            handlers=[_Service(self, mode, relay)],
            options=[("grpc.max_receive_message_length", MOST_BYTES), ("grpc.so_reuseport", 0)])
        address = f"unix:{inner}" if mode == "unix" else f"127.0.0.1:{inner}"
        if "tls" in mode:
            pair = (self.certificates.server_key.read_bytes(),
                    self.certificates.server.read_bytes())
            server.add_secure_port(address, grpc.ssl_server_credentials(
                [pair], self.certificates.authority.read_bytes() if mode == "mtls" else None,
                mode == "mtls"))
        else:
            server.add_insecure_port(address)
        server.start()
        self._servers += [server, relay]

    def stop(self):
        for server in self._servers:
            if isinstance(server, _Server):
                server.shutdown()
                server.server_close()
            elif isinstance(server, _Relay):
                server.stop()
            else:
                server.stop(None)

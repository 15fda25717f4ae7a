# SPDX-License-Identifier: Apache-2.0
"""Servers for otel-doctor to look at, each broken in its own way, on loopback.

All of them answer from threads of this process and are there until it ends.
"""
import http.server
import socket
import ssl
import threading

OTLP = "application/x-protobuf"

_kept = []  # what stays open until the end

# The first frame of an HTTP/2 server: SETTINGS, empty.
SETTINGS = b"\0\0\0\x04\0\0\0\0\0"


class _Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def handle_error(self, request, client_address):
        """A client that hangs up is not worth a trace on stderr."""


def http_server(answer, context=None):
    """A port where `answer(path, body)` gives (status, headers, body). With a context of the
    module ssl it is one for TLS."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, content = answer(self.path, body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = _Quiet(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True,
                                            do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def unix_server(path, answer):
    """The same on a socket of this machine."""
    port = http_server(answer)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(16)

    def copy(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def run():
        while True:
            connection, _ = listener.accept()
            other = socket.create_connection(("127.0.0.1", port))
            for ends in ((connection, other), (other, connection)):
                threading.Thread(target=copy, args=ends, daemon=True).start()

    threading.Thread(target=run, daemon=True).start()


def listens(address, port):
    """Takes connections at an address of this machine, and no more than that."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(16)
    _kept.append(listener)


def says(status, body=b"", **headers):
    """An answer that is always the same."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda path, content: (status, named, body)


def accepts(path="/v1/traces"):
    """A receiver that takes what is sent to its path."""
    return lambda at, content: ((200, {"Content-Type": OTLP}, b"") if at == path
                                else (404, {"Content-Type": "text/plain"}, b"404 page not found"))


def rejects(message):
    """A receiver that takes requests, but of their spans none: partial success."""
    text = message.encode()
    partial = b"\x08\x01\x12" + bytes([len(text)]) + text
    body = b"\x0a" + bytes([len(partial)]) + partial
    return lambda path, content: (200, {"Content-Type": OTLP}, body if content else b"")


def raw_server(talk):
    """A port where `talk(connection)` is called for every connection."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(16)

    def run():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    threading.Thread(target=run, daemon=True).start()
    return listener.getsockname()[1]


def never_answers(connection):
    _kept.append(connection)


def hangs_up(connection):
    connection.recv(65536)
    connection.close()


def speaks_http2(connection):
    """As a server of gRPC does with somebody who speaks HTTP/1: says its SETTINGS, then goes."""
    try:
        connection.sendall(SETTINGS)
        connection.recv(65536)
    except OSError:
        pass
    connection.close()


def unused_port():
    """A port that nobody listens on: it stays bound, so that nobody else gets it."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    _kept.append(holder)
    return holder.getsockname()[1]


def tls(folder, name, **settings):
    """A context of a server with the certificate `name`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    for key, value in settings.items():
        setattr(context, key, value)
    return context


def demanding_tls(folder):
    """The same, and clients need a certificate of the authority."""
    context = tls(folder, "server")
    context.load_verify_locations(folder / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    return context

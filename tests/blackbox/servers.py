# SPDX-License-Identifier: Apache-2.0
"""Servers on loopback, most of which are broken in a way of their own.

All of them answer from threads of this process and are there until it ends.
"""
import http.server
import select
import socket
import socketserver
import ssl
import threading

OTLP = "application/x-protobuf"

_kept = []  # what stays open until the end


def http_server(answer, context=None, path=None):
    """A port where `answer(path, body)` gives (status, headers, body); with a context of the module
    ssl it is one for TLS. With a path it is a socket of this machine."""

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

    class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
        address_family = socket.AF_INET if path is None else socket.AF_UNIX
        daemon_threads = True
        request_queue_size = 16

        def handle_error(self, *_):
            """A client that hangs up is not worth a trace on stderr."""

    server = Server(("127.0.0.1", 0) if path is None else str(path), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1] if path is None else path


def listen(talk, address=("127.0.0.1", 0)):
    """A port where `talk(connection)` is called for every connection."""
    listener = socket.create_server(address)

    def run():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    threading.Thread(target=run, daemon=True).start()
    return listener.getsockname()[1]


def unused_port():
    """A port that nobody listens on: it stays bound, so that nobody else gets it."""
    _kept.append(socket.socket())
    _kept[-1].bind(("127.0.0.1", 0))
    return _kept[-1].getsockname()[1]


# --- answers of http_server ---

def says(status, body=b"", **headers):
    """An answer that is always the same."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda path, content: (status, named, body)


def accepts(at, content):
    """A receiver that takes what is sent to its path."""
    return ((200, {"Content-Type": OTLP}, b"") if at == "/v1/traces"
            else (404, {"Content-Type": "text/plain"}, b"404 page not found"))


def rejects(message):
    """A receiver that takes requests, but of their spans none: partial success."""
    text = message.encode()
    partial = b"\x08\x01\x12" + bytes([len(text)]) + text
    body = b"\x0a" + bytes([len(partial)]) + partial
    return lambda path, content: (200, {"Content-Type": OTLP}, body if content else b"")


# --- what `listen` may do with a connection ---

def never_answers(connection):
    try:
        while connection.recv(65536):
            pass
    except OSError:
        pass
    connection.close()


class Drips:
    """Gives a byte now and then for as long as somebody is there. `most`: to one connection."""

    def __init__(self):
        self.most = 0

    def __call__(self, connection):
        sent = 0
        connection.settimeout(0.05)
        try:
            while True:
                connection.sendall(b"x")
                sent += 1
                self.most = max(self.most, sent)
                try:
                    if not connection.recv(65536):
                        break
                except TimeoutError:
                    pass
        except OSError:
            pass
        connection.close()


def hangs_up(connection):
    """Goes when it has been asked."""
    try:
        connection.recv(65536)
    except OSError:
        pass
    connection.close()


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def field(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def grpc_receiver(connection, status=b"0"):
    """Answers each stream with an empty message and the status."""
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
                    frame(1, 5, number, field(b"grpc-status", status)))
    except OSError:
        pass
    finally:
        connection.close()


def proxy_of_tunnels(asked):
    """A proxy that knows nothing but CONNECT; the first lines of requests go to `asked`."""
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


# --- TLS, with the files of harness.certificates ---

def tls(folder, name, wants_client=False, **settings):
    """A context of a server with the certificate `name`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    if wants_client:
        context.load_verify_locations(folder / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    for key, value in settings.items():
        setattr(context, key, value)
    return context
